"""The graph as layers use it: row-stochastic CSR matrices and their transposes, prepared once."""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric import EdgeIndex
from torch_geometric.utils import is_torch_sparse_tensor

from h2hgcn.geometry.numerics import safe_reciprocal
from h2hgcn.kernels import is_wrapped, untransformed
from h2hgcn.kernels.csr import (
    SparseMatrix,
    divided_by_row_sums,
    row_sums,
    scaled_columns,
    sorted_entries,
    transpose_pattern,
)


def holds_integers(x: Tensor) -> bool:
    """Whether the dtype is one of the integers, of any width; booleans are not."""
    return not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)


def _entries(edge_index: Any, edge_weight: Tensor | None, num_nodes: int | None) -> tuple[Tensor, Tensor, Tensor, int]:
    """Receiving nodes, sending nodes, float64 weights, and the number of nodes."""
    num_nodes = None if num_nodes is None else operator.index(num_nodes)
    if isinstance(edge_index, Tensor) and not is_torch_sparse_tensor(edge_index):
        if edge_index.dim() != 2 or edge_index.shape[0] != 2 or not holds_integers(edge_index):
            raise ValueError(
                f"edge_index must hold integers in the shape (2, edges), but has shape {tuple(edge_index.shape)} and "
                f"dtype {edge_index.dtype}; transpose or convert it"
            )
        index = (edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index).long()
        columns, rows = index
        if num_nodes is None:
            num_nodes = int(index.max()) + 1 if index.numel() else 0
        return rows, columns, _given_weights(edge_weight, rows), num_nodes
    if edge_weight is not None:
        raise ValueError("edge_weight came with a sparse adjacency; put the weights into its values")
    if isinstance(edge_index, Tensor):
        shape = tuple(edge_index.shape)
        coo = edge_index.to_sparse_coo().to(torch.float64).coalesce()  # repeated float32 entries may overflow
        (rows, columns), values = coo.indices(), coo.values()
    elif hasattr(edge_index, "coo") and hasattr(edge_index, "sparse_sizes"):  # torch_sparse.SparseTensor
        shape = tuple(edge_index.sparse_sizes())
        rows, columns, values = edge_index.coo()
        values = torch.ones(len(rows)) if values is None else values
    else:
        raise ValueError(
            f"edge_index is a {type(edge_index).__name__}; pass a (2, edges) tensor, a torch sparse matrix, a "
            "torch_sparse SparseTensor, or what prepare_adjacency returned"
        )
    if shape[0] != shape[1]:
        raise ValueError(f"the adjacency must be square, but is {shape[0]} x {shape[1]}")
    if num_nodes is not None and num_nodes != shape[0]:
        raise ValueError(f"the adjacency is {shape[0]} x {shape[0]}, but there are {num_nodes} nodes")
    return rows, columns, values.to(torch.float64), shape[0]


def _given_weights(edge_weight: Tensor | None, rows: Tensor) -> Tensor:
    if edge_weight is None:
        return torch.ones(len(rows), dtype=torch.float64, device=rows.device)
    if not isinstance(edge_weight, Tensor):
        raise ValueError(f"edge_weight is a {type(edge_weight).__name__}; pass a tensor with one number for each edge")
    if edge_weight.shape not in ((len(rows),), (len(rows), 1)):
        raise ValueError(
            f"edge_weight has shape {tuple(edge_weight.shape)}, but there are {len(rows)} edges; "
            "pass one number for each"
        )
    return edge_weight.reshape(-1).to(torch.float64)


def _check_entries(rows: Tensor, columns: Tensor, weights: Tensor, size: int) -> None:
    if not len(rows):
        return
    lowest = int(torch.minimum(rows.min(), columns.min()))
    highest = int(torch.maximum(rows.max(), columns.max()))
    if highest >= size:
        raise ValueError(
            f"edge_index names node {highest}, but there are {size} nodes; pass num_nodes or fix the edges"
        )
    if lowest < 0:
        raise ValueError(f"edge_index names node {lowest}; nodes are counted from 0")
    if not bool(weights.isfinite().all()):
        raise ValueError("edge_weight holds NaN or infinity; remove those edges or fix their weights")
    least, most = weights.detach().aminmax()
    if least < 0:
        raise ValueError(
            f"edge_weight holds {least.item():g}; the midpoint needs weights that are not negative: shift or clip them"
        )
    if most == 0:
        raise ValueError("all edge weights are zero; leave edge_weight out for an unweighted graph")


NeighborWeights = Literal["symmetric", "uniform"]

Kind = Literal["symmetric", "uniform", "gcn", "mean", "sum", "count"]


class Transpose(NamedTuple):
    """The pattern of a transpose, and which entry of the matrix each of its entries is."""

    crow: Tensor
    col: Tensor
    order: Tensor


class Adjacency:
    """A graph with self-loops, coalesced and sorted: the pattern of a CSR matrix. ``matrix`` gives its weighted forms.

    Row ``i`` holds the neighborhood N̂(i) of node ``i``: the nodes whose messages it receives, and itself.

    Args:
        crow, col: Row pointers and columns, int32.
        weights: Of the entries, in float64; None if all are 1.
        nodes: Of a reordered graph, the node that each row stands for, on the CPU.
    """

    def __init__(
        self, crow: Tensor, col: Tensor, weights: Tensor | None = None, *, nodes: Tensor | None = None
    ) -> None:
        self.crow = crow
        self.col = col
        self._weights = weights
        self._nodes = nodes
        self._cache: dict[Any, Any] = {}

    @property
    def num_nodes(self) -> int:
        return len(self.crow) - 1

    @property
    def device(self) -> torch.device:
        return self.col.device

    @property
    def weights(self) -> Tensor:
        """A weight for each entry, in float64."""
        return self._default_weights if self._weights is None else self._weights

    @cached_property
    def _default_weights(self) -> Tensor:
        return torch.ones(len(self.col), dtype=torch.float64, device=self.device)

    @cached_property
    def transpose(self) -> Transpose:
        with self._for_cache():
            return Transpose(*transpose_pattern(self.crow, self.col))

    @property
    def nodes(self) -> Tensor | None:
        """The node that each row stands for, if rows are not all nodes in order."""
        return self._nodes

    @cached_property
    def places(self) -> Tensor:
        """The row of each node of a reordered graph."""
        assert self._nodes is not None
        return inverse_order(self._nodes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_nodes={self.num_nodes}, num_edges={len(self.col)} with self-loops)"

    def to(self, device: torch.device | str) -> Adjacency:
        """This adjacency on another device, with the matrices it has computed; the same object at every call."""
        device = torch.device(device)
        if device.type == self.device.type and (device.type == "cpu" or device.index in (None, self.device.index)):
            return self
        adjacency: Adjacency | None = self._cache.get(("to", device))
        if adjacency is None:
            adjacency = copy.copy(self)
            moves = {name: part for name, part in vars(self).items() if name not in ("_nodes", "places")}
            vars(adjacency).update({name: _moved(part, device) for name, part in moves.items()})
            self._cache["to", device] = adjacency
        return adjacency

    def matrix(self, kind: Kind, dtype: torch.dtype) -> SparseMatrix:
        """The graph as a matrix, cached unless gradients have to flow to the weights.

        ``"symmetric"`` is ``w_ij / sqrt(d_i d_j)`` as in the authors' code and ``"uniform"`` is ``w_ij`` as the paper
        writes it, both divided by the sum of a row, to which the midpoint is indifferent. ``"gcn"`` is
        ``w_ij / sqrt(d_i d_j)`` (Kipf and Welling 2017). Without self-loops, ``"mean"`` is the weighted mean over
        neighbors, 0 for a node that has none, ``"sum"`` their weighted sum, and ``"count"`` that without weights.
        """
        matrix: SparseMatrix | None = self._cache.get((kind, dtype))
        if matrix is None:
            with self._for_cache():
                matrix = self.with_values(self.values(kind, dtype))
            if _is_plain(matrix.values):
                self._cache[kind, dtype] = matrix
        return matrix

    def values(self, kind: Kind, dtype: torch.dtype) -> Tensor:
        """A weight for each entry; see ``matrix``."""
        weights = self.weights
        if kind in ("mean", "sum", "count"):
            kept = self.receivers != self.col
            weights = kept.to(weights.dtype) if kind == "count" else weights * kept
        if kind == "mean":
            weights = weights * self._of_rows(safe_reciprocal(row_sums(self.crow, weights)))
        elif kind == "gcn":
            scale = row_sums(self.crow, weights).rsqrt()
            weights = scaled_columns(self.col, scale, weights) * self._of_rows(scale)
        elif kind in get_args(NeighborWeights):
            if kind == "symmetric":  # d_i is common to row i and goes with the division
                weights = scaled_columns(self.col, row_sums(self.crow, weights).rsqrt(), weights)
            weights = divided_by_row_sums(self.crow, weights)
        return weights.to(dtype)

    def with_values(self, values: Tensor) -> SparseMatrix:
        """A matrix with one value for each of the ``edges()``."""
        crow, col, order = self.transpose
        return SparseMatrix(self.crow, self.col, values, crow, col, values.index_select(0, order))

    def layer_graphs(self, count: int) -> list[Adjacency]:
        """What each of ``count`` layers works on; see ``first_rows``."""
        return [self] * count

    @cached_property
    def receivers(self) -> Tensor:
        """The node that receives, for every entry."""
        with self._for_cache():
            return torch.repeat_interleave(self.crow.diff(), output_size=len(self.col))

    @cached_property
    def loop_entries(self) -> Tensor:
        """Which entry is the self-loop of each node."""
        with self._for_cache():
            return (self.col == self.receivers).nonzero().squeeze(1)

    @cached_property
    def unweighted(self) -> bool:
        """Whether all weights are 1, and stay so."""
        weights = self._weights
        return weights is None or (not weights.requires_grad and bool((weights == 1).all()))

    def edges(self, self_loops: bool = True) -> tuple[Tensor, Tensor]:
        """The graph as PyG's convolutions take it: sources and targets ``(2, edges)``, and weights.

        Sorted by target; the same tensors on every call, unless gradients have to flow to the weights.
        """
        if ("edges", self_loops) not in self._cache:
            with self._for_cache():
                index, weights = torch.stack([self.col.long(), self.receivers]), self.weights
                if not self_loops:
                    kept = index[0] != index[1]
                    index, weights = index[:, kept], weights[kept]
            if not _is_plain(weights):
                return index, weights
            self._cache["edges", self_loops] = index, weights
        edges: tuple[Tensor, Tensor] = self._cache["edges", self_loops]
        return edges

    @contextmanager
    def _for_cache(self) -> Iterator[None]:
        """What is cached must serve training, too, and outlive a transform of ``torch.func``."""
        with torch.inference_mode(False), untransformed(self.col if self._weights is None else self._weights):
            yield

    def _of_rows(self, numbers: Tensor) -> Tensor:
        """For every entry, the number of its row."""
        return torch.repeat_interleave(numbers, self.crow.diff(), output_size=len(self.col))


def inverse_order(order: Tensor) -> Tensor:
    """The place of each number in an order of all numbers."""
    return torch.empty_like(order).index_copy_(0, order, torch.arange(len(order), device=order.device))


def _is_plain(x: Tensor) -> bool:
    return not x.requires_grad and not is_wrapped(x)


def _moved(part: Any, device: torch.device) -> Any:
    """A part of an adjacency on a device."""
    if isinstance(part, Tensor):
        return part.to(device, non_blocking=True)
    if isinstance(part, tuple):
        moved = (_moved(each, device) for each in part)
        return type(part)(*moved) if hasattr(part, "_fields") else tuple(moved)
    if isinstance(part, dict):
        return {key: _moved(value, device) for key, value in part.items() if key[0] != "to"}
    return part


def prepare_adjacency(edge_index: Any, edge_weight: Tensor | None = None, num_nodes: int | None = None) -> Adjacency:
    """Turns a graph into the form that every layer and epoch can share.

    ``edge_index`` is a ``(2, edges)`` tensor of sources and targets as in PyG (messages go from the first row to the
    second), or a sparse matrix (torch, or PyG's ``SparseTensor``) whose rows receive, which is PyG's ``adj_t``.
    Weights of repeated edges are added up. A node without a self-loop gets one of weight 1; one that is given keeps
    its weight. Weights that require gradients get them; like any graph of autograd, the result then serves one
    backward pass.
    """
    if isinstance(edge_index, Adjacency):
        return reused(edge_index, edge_weight, num_nodes)
    entries = _entries(edge_index, edge_weight, num_nodes)
    _check_entries(*entries)
    crow, col, weights = sorted_entries(*entries)
    sums = row_sums(crow, weights)
    if len(sums):
        lowest, highest = sums.detach().aminmax()
        if lowest <= 0:
            raise ValueError(
                f"all neighbor weights of node {int(sums.argmin())} are zero, its self-loop's too; give it a positive "
                "weight"
            )
        if highest.isinf():
            raise ValueError(
                f"the weights of node {int(sums.argmax())}'s neighborhood add up to infinity; divide all edge weights "
                "by a common factor, which changes the midpoint only against the weight 1 of an added self-loop"
            )
    return Adjacency(crow, col, weights)


def first_rows(x: Any, graph: Adjacency) -> Any:
    """What a layer takes of the rows that the one before it gave: of a sampled graph, each needs a first part."""
    return x if x.shape[0] == graph.num_nodes else x[: graph.num_nodes]


def check_neighbor_weights(neighbor_weights: str) -> NeighborWeights:
    """The argument itself, if it is one of the known schemes."""
    for known in get_args(NeighborWeights):
        if neighbor_weights == known:
            return known
    raise ValueError(f"neighbor_weights={neighbor_weights!r} is not known; use one of {get_args(NeighborWeights)}")


def reused(adjacency: Adjacency, edge_weight: Tensor | None, num_nodes: int | None) -> Adjacency:
    """One that was prepared before, if nothing that came with it says otherwise."""
    if edge_weight is not None:
        raise ValueError("edge_weight came with an adjacency that is already prepared; pass it to prepare_adjacency")
    if num_nodes is not None and num_nodes != adjacency.num_nodes:
        raise ValueError(
            f"the adjacency was prepared for {adjacency.num_nodes} nodes, but there are {num_nodes}; "
            "prepare it again with num_nodes"
        )
    return adjacency


def adjacency_of(edge_index: Any, edge_weight: Tensor | None, num_nodes: int) -> Adjacency:
    """``prepare_adjacency``, cached for as long as the ``edge_index`` tensor lives and is not changed."""
    if isinstance(edge_index, Adjacency):
        return reused(edge_index, edge_weight, num_nodes)
    return _cached_adjacency(edge_index, edge_weight, num_nodes)


@torch.compiler.disable  # type: ignore[untyped-decorator]  # sorting a graph is not for a compiled graph
def _cached_adjacency(edge_index: Any, edge_weight: Tensor | None, num_nodes: int) -> Adjacency:
    tensors = [edge_index] if edge_weight is None else [edge_index, edge_weight]
    if not all(map(_can_be_cached, tensors)):
        return prepare_adjacency(edge_index, edge_weight, num_nodes)
    versions = [tensor._version for tensor in tensors]
    adjacency, weight, known = _cache.get(edge_index, (None, None, None))
    if known == versions and adjacency.num_nodes == num_nodes and (edge_weight is None or weight() is edge_weight):
        return adjacency
    with torch.inference_mode(False), untransformed():  # what is cached must serve training, too
        adjacency = prepare_adjacency(edge_index, edge_weight, num_nodes)
    _cache[edge_index] = adjacency, None if edge_weight is None else weakref.ref(edge_weight), versions
    return adjacency


# Of each edge_index: its adjacency, the weights that came with it, and the versions of both.
_cache: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _can_be_cached(tensor: Any) -> bool:
    is_dense = isinstance(tensor, Tensor) and not is_torch_sparse_tensor(tensor)
    return is_dense and not tensor.is_inference() and _is_plain(tensor)
