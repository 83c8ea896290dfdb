"""The graph as layers use it: row-stochastic CSR matrices and their transposes, prepared once."""

from __future__ import annotations

import operator
import weakref
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.utils import is_torch_sparse_tensor

from h2hgcn.geometry.numerics import safe_reciprocal
from h2hgcn.kernels.csr import SparseMatrix, is_differentiated, row_shares, row_sums, sorted_entries, transpose_pattern


def read_edges(
    edge_index: Any, edge_weight: Tensor | None, num_nodes: int | None
) -> tuple[Tensor, Tensor, Tensor, int]:
    """Receiving nodes, sending nodes, float64 weights, and the number of nodes."""
    num_nodes = None if num_nodes is None else operator.index(num_nodes)
    rows, columns, weights, size = _entries(edge_index, edge_weight, num_nodes)
    _check_edges(rows, columns, size)
    _check_weights(weights)
    return rows, columns, weights, size


def holds_integers(x: Tensor) -> bool:
    """Whether the dtype is one of the integers, of any width; booleans are not."""
    return not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)


def _entries(edge_index: Any, edge_weight: Tensor | None, num_nodes: int | None) -> tuple[Tensor, Tensor, Tensor, int]:
    if isinstance(edge_index, Tensor) and not is_torch_sparse_tensor(edge_index):
        if edge_index.dim() != 2 or edge_index.shape[0] != 2 or not holds_integers(edge_index):
            raise ValueError(
                f"edge_index must hold integers in the shape (2, edges), but has shape {tuple(edge_index.shape)} and "
                f"dtype {edge_index.dtype}; transpose or convert it"
            )
        index = edge_index.as_subclass(Tensor).long()
        columns, rows = index
        size = _default_size(index) if num_nodes is None else num_nodes
        weights = _given_weights(edge_weight, rows)
        return rows, columns, weights, size
    if edge_weight is not None:
        raise ValueError("edge_weight came with a sparse adjacency; put the weights into its values")
    rows, columns, values, shape = _sparse_entries(edge_index)
    if shape[0] != shape[1]:
        raise ValueError(f"the adjacency must be square, but is {shape[0]} x {shape[1]}")
    if num_nodes is not None and num_nodes != shape[0]:
        raise ValueError(f"the adjacency is {shape[0]} x {shape[0]}, but there are {num_nodes} nodes")
    return rows, columns, values.to(torch.float64), shape[0]


def _default_size(edge_index: Tensor) -> int:
    return int(edge_index.max()) + 1 if edge_index.numel() else 0


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


def _sparse_entries(matrix: Any) -> tuple[Tensor, Tensor, Tensor, tuple[int, int]]:
    if isinstance(matrix, Tensor):
        coo = matrix.to_sparse_coo().to(torch.float64).coalesce()  # repeated float32 entries may add up to infinity
        return *coo.indices(), coo.values(), (matrix.shape[0], matrix.shape[1])
    if hasattr(matrix, "coo") and hasattr(matrix, "sparse_sizes"):  # torch_sparse.SparseTensor
        rows, columns, values = matrix.coo()
        shape = matrix.sparse_sizes()
        return rows, columns, torch.ones(len(rows)) if values is None else values, (shape[0], shape[1])
    raise ValueError(
        f"edge_index is a {type(matrix).__name__}; pass a (2, edges) tensor, a torch sparse matrix, a torch_sparse "
        "SparseTensor, or what prepare_adjacency returned"
    )


def _check_edges(rows: Tensor, columns: Tensor, size: int) -> None:
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


def _check_weights(weights: Tensor) -> None:
    if not len(weights):
        return
    if not bool(weights.isfinite().all()):
        raise ValueError("edge_weight holds NaN or infinity; remove those edges or mend their weights")
    lowest, highest = weights.aminmax()
    if lowest < 0:
        raise ValueError(
            f"edge_weight holds {lowest.item():g}; the midpoint needs weights that are not negative: shift or clip them"
        )
    if highest == 0:
        raise ValueError("all edge weights are zero; leave edge_weight out for an unweighted graph")


NeighborWeights = Literal["symmetric", "uniform"]


@dataclass(frozen=True, repr=False, eq=False)
class Adjacency:
    """A graph with self-loops, coalesced and sorted; ``matrix`` gives its weighted forms.

    Row ``i`` holds the neighbourhood N̂(i) of node ``i``: the nodes whose messages it receives, and itself.
    """

    crow: Tensor
    col: Tensor
    weights: Tensor
    transpose_crow: Tensor
    transpose_col: Tensor
    transpose_order: Tensor
    _matrices: dict[tuple[str, torch.dtype], SparseMatrix] = field(default_factory=dict)
    _edges: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        return len(self.crow) - 1

    @property
    def device(self) -> torch.device:
        return self.col.device

    def __repr__(self) -> str:
        return f"Adjacency(num_nodes={self.num_nodes}, num_edges={len(self.col)} with self-loops)"

    def to(self, device: torch.device | str) -> Adjacency:
        """This adjacency on another device."""
        if torch.device(device) == self.device:
            return self
        return Adjacency(
            self.crow.to(device), self.col.to(device), self.weights.to(device),
            self.transpose_crow.to(device), self.transpose_col.to(device), self.transpose_order.to(device),
        )  # fmt: skip

    def matrix(self, neighbor_weights: NeighborWeights, dtype: torch.dtype) -> SparseMatrix:
        """The neighbour weights of every node, divided by their sum, to which the midpoint is indifferent.

        ``"symmetric"``: ``w_ij / sqrt(d_i d_j)``, as in the authors' code; ``"uniform"``: ``w_ij``, as the paper
        writes it. Kept for the next call, unless gradients have to flow to the weights.
        """
        return self.kept_matrix(neighbor_weights, dtype)

    def gcn_matrix(self, dtype: torch.dtype) -> SparseMatrix:
        """The weights ``w_ij / sqrt(d_i d_j)`` of a graph convolution (Kipf and Welling 2017), self-loops included."""
        return self.kept_matrix("gcn", dtype)

    def mean_matrix(self, dtype: torch.dtype) -> SparseMatrix:
        """The weights of a mean over the neighbours of a node, without itself; 0 for one that has none."""
        return self.kept_matrix("mean", dtype)

    def kept_matrix(self, kind: str, dtype: torch.dtype) -> SparseMatrix:
        """The matrix of the ``values`` of a kind."""
        if (kind, dtype) in self._matrices:
            return self._matrices[kind, dtype]
        with torch.inference_mode(False):  # what is kept must serve training, too
            matrix = self.with_values(self.values(kind, dtype))
        if not self.weights.requires_grad:
            self._matrices[kind, dtype] = matrix
        return matrix

    def values(self, kind: str, dtype: torch.dtype) -> Tensor:
        """A weight for each entry, of a kind: ``"symmetric"``, ``"uniform"``, ``"gcn"`` or ``"mean"``."""
        if kind == "gcn":
            return self.gcn_edges(self.weights.dtype)[1].to(dtype)
        return (self._mean_weights() if kind == "mean" else self._weighted(kind)).to(dtype)

    def steps(self, count: int) -> list[Adjacency]:
        """What each of ``count`` layers works on; see ``first_rows``."""
        return [self] * count

    @cached_property
    def loop_entries(self) -> Tensor:
        """Which entry is the self-loop of each node."""
        return (self.col == self._rows()).nonzero().squeeze(1)

    @cached_property
    def unweighted(self) -> bool:
        """Whether all weights are 1, and stay so."""
        return not is_differentiated(self.weights) and bool((self.weights == 1).all())

    def edges(self, self_loops: bool = True) -> tuple[Tensor, Tensor]:
        """The graph as PyG's convolutions take it: sources and targets ``(2, edges)``, and weights.

        Sorted by target; the same tensors on every call, unless gradients have to flow to the weights.
        """
        if self.weights.requires_grad:
            return self._edge_list(self_loops)
        key = "all" if self_loops else "no loops"
        if key not in self._edges:
            with torch.inference_mode(False):
                self._edges[key] = self._edge_list(self_loops)
        return self._edges[key]

    def gcn_edges(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """``edges()`` with the weights ``w_ij / sqrt(d_i d_j)`` of a graph convolution (Kipf and Welling 2017)."""
        key = f"gcn {dtype}"
        if key not in self._edges:
            index, weights = self.edges()
            scale = self._row_sums(weights).rsqrt()
            scaled = (weights * scale[index[0]] * scale[index[1]]).to(dtype)
            if self.weights.requires_grad:
                return index, scaled
            self._edges[key] = (index, scaled)
        return self._edges[key]

    def with_values(self, values: Tensor) -> SparseMatrix:
        """A matrix with one value for each of the ``edges()``."""
        return SparseMatrix(
            self.crow, self.col, values, self.transpose_crow, self.transpose_col,
            values.index_select(0, self.transpose_order),
        )  # fmt: skip

    def _edge_list(self, self_loops: bool) -> tuple[Tensor, Tensor]:
        index = torch.stack([self.col.long(), self._rows()])
        if self_loops:
            return index, self.weights
        kept = index[0] != index[1]
        return index[:, kept], self.weights[kept]

    def _weighted(self, neighbor_weights: str) -> Tensor:
        weights = self.weights
        if weights.is_cpu and not is_differentiated(weights):
            return row_shares(self.crow, self.col, weights, by_degrees=neighbor_weights == "symmetric")
        if neighbor_weights == "symmetric":
            # d_i is common to row i and goes with the division below
            weights = weights * self._row_sums(weights).rsqrt()[self.col]
        return weights / self._row_sums(weights).repeat_interleave(self.crow.diff())

    def _mean_weights(self) -> Tensor:
        weights = self.weights * (self._rows() != self.col)
        return weights * safe_reciprocal(self._row_sums(weights)).repeat_interleave(self.crow.diff())

    def _row_sums(self, weights: Tensor) -> Tensor:
        return row_sums(self.crow, weights)

    def _rows(self) -> Tensor:
        return torch.arange(self.num_nodes, device=self.device).repeat_interleave(self.crow.diff())


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
    crow, col, weights = sorted_entries(*read_edges(edge_index, edge_weight, num_nodes))
    _check_row_sums(row_sums(crow, weights))
    return Adjacency(crow, col, weights, *transpose_pattern(crow, col))


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


def _check_row_sums(sums: Tensor) -> None:
    if not len(sums):
        return
    lowest, highest = sums.aminmax()
    if lowest <= 0:
        raise ValueError(
            f"all neighbour weights of node {int(sums.argmin())} are zero, its self-loop's too; give it a positive "
            "weight"
        )
    if highest.isinf():
        raise ValueError(
            f"the weights of node {int(sums.argmax())}'s neighbourhood add up to infinity; divide all edge weights by "
            "a common factor, which changes the midpoint only against the weight 1 of an added self-loop"
        )


def adjacency_of(edge_index: Any, edge_weight: Tensor | None, num_nodes: int) -> Adjacency:
    """``prepare_adjacency``, remembered for as long as the ``edge_index`` tensor lives and is not changed."""
    if isinstance(edge_index, Adjacency):
        return reused(edge_index, edge_weight, num_nodes)
    return _remembered_adjacency(edge_index, edge_weight, num_nodes)


@torch.compiler.disable  # type: ignore[untyped-decorator]  # sorting a graph is not for a compiled graph
def _remembered_adjacency(edge_index: Any, edge_weight: Tensor | None, num_nodes: int) -> Adjacency:
    if not _can_be_remembered(edge_index, edge_weight):
        return prepare_adjacency(edge_index, edge_weight, num_nodes)
    known = _remembered.get(edge_index)
    if known is None or not known.fits(edge_index, edge_weight, num_nodes):
        with torch.inference_mode(False):  # what is kept must serve training, too
            adjacency = prepare_adjacency(edge_index, edge_weight, num_nodes)
        weight = None if edge_weight is None else (weakref.ref(edge_weight), edge_weight._version)
        known = _Remembered(adjacency, edge_index._version, weight)
        _remembered[edge_index] = known
    return known.adjacency


class _Remembered(NamedTuple):
    adjacency: Adjacency
    edge_version: int
    weight: tuple[weakref.ref[Tensor], int] | None

    def fits(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> bool:
        if edge_weight is None or self.weight is None:
            same_weight = edge_weight is None and self.weight is None
        else:
            same_weight = self.weight[0]() is edge_weight and self.weight[1] == edge_weight._version
        return same_weight and self.edge_version == edge_index._version and self.adjacency.num_nodes == num_nodes


_remembered: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _can_be_remembered(edge_index: Any, edge_weight: Tensor | None) -> bool:
    tensors = [edge_index] if edge_weight is None else [edge_index, edge_weight]
    return all(
        isinstance(tensor, Tensor)
        and not is_torch_sparse_tensor(tensor)
        and not tensor.is_inference()
        and not tensor.requires_grad
        for tensor in tensors
    )


def neighbor_sums(adjacency: Adjacency, dtype: torch.dtype, weighted: bool = False) -> SparseMatrix:
    """The matrix whose product with ``x`` has the sum of ``x_j``, or of ``w_ij x_j``, over the neighbours ``j ≠ i``."""
    weights = adjacency.weights if weighted else torch.ones_like(adjacency.weights)
    return adjacency.with_values(weights.to(dtype) * ~is_loop(adjacency))


def neighbor_means(adjacency: Adjacency, dtype: torch.dtype) -> SparseMatrix:
    """The weighted mean over the neighbours ``j ≠ i``; 0 for a node that has none."""
    return adjacency.mean_matrix(dtype)


def rows_of(adjacency: Adjacency) -> Tensor:
    """The node that receives, for every entry."""
    return torch.repeat_interleave(adjacency.crow.diff())


def is_loop(adjacency: Adjacency) -> Tensor:
    return rows_of(adjacency) == adjacency.col
