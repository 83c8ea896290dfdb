"""The model of a task: features, scaled once, an encoder and a head; and the points of nodes."""

from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from h2hgcn.datasets.tables import listed
from h2hgcn.errors import DataError
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import SparseFeatures, is_sparse, prepare_features
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.models.encoder import Encoder
from h2hgcn.models.row_blocks import can_go_by_blocks, points_by_blocks
from h2hgcn.tasks.checks import check_edges, edge_weight_of, node_features

# Features with more numbers than this are neither copied nor scaled as a whole; rows that are read at once.
_LARGE, _BLOCK = 1 << 27, 1 << 16

# Narrower or fuller features than these are as fast when dense (benchmarks/sparse_products.py).
_WIDE, _SPARSE_SHARE = 128, 0.15

# Up to this share of nonzeros, "auto" leaves features raw. Results depend on it, unlike on ``_SPARSE_SHARE``.
_MOSTLY_ZERO = 0.1

# From this many nodes on, points are computed by blocks. It does not depend on how a model was trained, so a loaded run
# has the points that it had.
LARGE = 1 << 18


def compact(x: Tensor, share: float = _SPARSE_SHARE) -> Tensor:
    """Wide features that are mostly 0 as a sparse tensor, which encoders multiply in a fraction of the time."""
    if is_sparse(x) or x.shape[1] < _WIDE or x.count_nonzero() > share * x.numel():
        return x
    return x.to_sparse_coo()


Scaling = Literal["raw", "row", "standard", "auto"]


class FeatureScaling(nn.Module):
    """``"raw"`` leaves features as they are, ``"row"`` divides each row by its sum, as HGCN does, and ``"standard"``
    gives every column mean 0 and each row a length of about ``length``. ``"auto"`` is ``"raw"`` for sparse features and
    ``"standard"`` for others.

    Mean and deviation are measured on ``x``, the features or, if a state is to be loaded, their number. They are saved
    with the model. Sparse features stay sparse and can only be ``"raw"`` or ``"row"``.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, scaling: Scaling, x: Any, length: float = 1.0) -> None:
        super().__init__()
        if scaling not in get_args(Scaling):
            raise DataError(f"feature scaling {scaling!r} is not known; use one of {', '.join(get_args(Scaling))}")
        self.scaling = scaling
        width = x if isinstance(x, int) else x.shape[1]
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        if isinstance(x, int) or scaling in ("raw", "row"):
            return
        if scaling == "standard" or not is_sparse(compact(x, _MOSTLY_ZERO)):
            self._measure(x, length)

    def _measure(self, x: Tensor, length: float) -> None:
        """Mean and scale of the columns, in double precision and block by block. The scale is 0 for a column that is
        constant up to single precision, whatever its unit.
        """
        _refuse_sparse(x)
        blocks, single = x.split(_BLOCK), torch.finfo(torch.float32)
        mean = torch.stack([block.double().sum(0) for block in blocks]).sum(0) / len(x)
        square = torch.stack([(block.double() - mean).square().sum(0) for block in blocks]).sum(0) / len(x)
        largest = torch.stack([block.abs().amax(0) for block in blocks]).amax(0).double()
        deviation = square.sqrt()
        scale = length / (deviation * x.shape[1] ** 0.5)
        varies = (deviation > single.eps * largest) & (2 * scale < single.max)
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(varies, scale, 0.0))

    def forward(self, x: Any) -> Any:
        if self.needs_dense():
            _refuse_sparse(x)
            # halves, since the difference of the largest numbers overflows
            return (x / 2 - self.mean.to(x.dtype) / 2) * (2 * self.scale.to(x.dtype))
        if self.scaling != "row":
            return x
        if not is_sparse(x):
            return x * _inverse(x.sum(1, keepdim=True))
        coo = x.to_sparse_coo().coalesce()
        rows = coo.indices()[0]
        sums = torch.zeros(len(x), dtype=coo.dtype, device=coo.device).index_add(0, rows, coo.values())
        values = coo.values() * _inverse(sums)[rows]
        return torch.sparse_coo_tensor(coo.indices(), values, coo.shape, is_coalesced=True, check_invariants=False)

    def extra_repr(self) -> str:
        return f"{len(self.mean)}, scaling={self.scaling!r}"

    def needs_dense(self) -> bool:
        """Whether features are standardized, after which few of them are 0."""
        if self.scaling == "auto":
            return bool((self.mean != 0).any() or (self.scale != 1).any())
        return self.scaling == "standard"

    def shaped(self, x: Any) -> Any:
        """Features in the form, dense or sparse, that is faster."""
        return x if self.needs_dense() else compact(x)


def _refuse_sparse(x: Any) -> None:
    if is_sparse(x):
        raise DataError("standardized features are not sparse any more; use raw or row scaling for sparse ones")


def _inverse(sums: Tensor) -> Tensor:
    """0 for a sum that is 0, or so small that its inverse overflows."""
    return torch.where(sums.abs() < torch.finfo(sums.dtype).tiny, 0.0, 1 / sums)


class ScaledFeatures:
    """Features, scaled once for all steps, since scaling is not learned."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self._kept: tuple[FeatureScaling, Any] | None = None
        self._prepared: SparseFeatures | None = None

    def to(self, device: torch.device | str) -> "ScaledFeatures":
        return ScaledFeatures(self.x.to(device))

    def of(self, scaling: FeatureScaling, prepared: bool = False) -> Any:
        """The scaled features; sparse ones ``prepared`` as our encoders multiply them, or as a tensor."""
        if self._kept is None or self._kept[0] is not scaling:
            self._kept, self._prepared = (scaling, scaling(scaling.shaped(self.x))), None
        whole = self._kept[1]
        if not prepared or not is_sparse(whole):
            return whole
        if self._prepared is None:
            self._prepared = prepare_features(whole)
        return self._prepared

    def rows(self, scaling: FeatureScaling, nodes: Tensor | slice) -> Any:
        """The scaled features of some nodes."""
        is_large = not is_sparse(self.x) and self.x.numel() > _LARGE
        by_rows = is_large and not is_sparse(scaling.shaped(self.x[:_BLOCK]))
        x = self.x if by_rows else self.of(scaling, prepared=True)
        nodes = nodes if isinstance(nodes, slice) else nodes.to(self.x.device)
        if isinstance(x, SparseFeatures):
            return x.rows(nodes)
        chosen = x[nodes] if isinstance(nodes, slice) else x.index_select(0, nodes)
        return scaling(chosen) if by_rows else chosen


class Model(nn.Module):
    """Features, encoder and head of a task, as one module with one state."""

    encoder: Any
    head: Any

    def __init__(self, scaling: FeatureScaling, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.scaling = scaling
        self.encoder = encoder
        self.head = head

    @property
    def dim(self) -> int:
        """The dimension of the encoder's space."""
        return int(self.encoder.dim)

    @property
    def distance_scale(self) -> Any:
        """The encoder's factor for distances, if its curvature is not -1."""
        is_unit = getattr(self.encoder, "has_unit_curvature", False)
        return 1.0 if is_unit else getattr(self.encoder, "distance_scale", 1.0)

    @property
    def scale(self) -> float:
        """``distance_scale`` as a number."""
        return float(torch.as_tensor(self.distance_scale).detach())


def encoded(model: Model, features: ScaledFeatures, graph: Adjacency, nodes: Tensor | None = None) -> Tensor:
    """What the encoder gives for the rows of a graph. Of a sampled one only the seeds, which come first, are of use.

    ``nodes`` are the training nodes that the rows stand for, for encoders with ``NodeVectors``; None for all in order.
    """
    part = graph.nodes if isinstance(graph, Adjacency) else None  # other encoders may have graphs of their own
    if part is None:
        x = features.of(model.scaling, isinstance(model.encoder, Encoder))
    else:
        x = features.rows(model.scaling, part)
    nodes = part if nodes is None else nodes
    takes_nodes = nodes is not None and node_vectors_of(model.encoder) is not None
    return model.encoder(x, graph, nodes=nodes) if takes_nodes else model.encoder(x, graph)


def all_points(model: Model, features: ScaledFeatures, graph: Adjacency, nodes: Tensor | None = None) -> Tensor:
    """The points of all nodes; of a large graph by blocks of rows, if the encoder's layers allow for it: as exact."""
    learns = model.training or torch.is_grad_enabled()
    if learns or not can_go_by_blocks(model.encoder) or graph.num_nodes < LARGE:
        return encoded(model, features, graph, nodes)
    return points_by_blocks(model.encoder, partial(features.rows, model.scaling), graph, nodes=nodes)


@torch.no_grad()
def encode_nodes(model: Model, data: Any, task_name: str, in_features: int, nodes: Tensor | None = None) -> Tensor:
    """Points of all nodes of a graph, known or new; all of its edges carry messages. For ``nodes`` see ``encoded``."""
    return all_points(model, *encoder_inputs(model, data, task_name, in_features), nodes)


def encoder_inputs(model: Model, data: Any, task_name: str, in_features: int) -> tuple[ScaledFeatures, Adjacency]:
    """The features and the edges of a graph, known or new, where the model is."""
    check_edges(data)
    x = node_features(data, task_name, data.edge_index)
    if x.shape[1] != in_features:
        names = getattr(data, "feature_names", None)
        given = f": {listed(names)}" if names else ""
        raise DataError(
            f"the graph has {x.shape[1]} features a node{given}; the model was trained with {in_features}; "
            "give the same columns in the same order"
        )
    device = next(model.parameters()).device
    adjacency = prepare_adjacency(data.edge_index, edge_weight_of(data), data.num_nodes)
    return ScaledFeatures(x).to(device), adjacency.to(device)
