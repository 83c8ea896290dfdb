"""Reading a graph from whatever PyG calls one, with every check that keeps a bad graph out."""

import operator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils import is_torch_sparse_tensor


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
