"""Features at the door: what every task and every new graph has to bring."""

from typing import Any

import torch
from torch import Tensor

from h2hgcn.datasets import DataError, task_features

# Bytes: PyTorch's allocator on the CPU.
_ALIGNMENT = 64

# Rows that are looked at together: what is written in passing would be as large as the features.
_CHECKED_ROWS = 1 << 16


def node_features(graph: Any, task: str, edge_index: Tensor | None = None) -> Tensor:
    """``task_features`` of a graph, known to be good."""
    check_features(graph)
    return _aligned(as_floats(task_features(graph, task, edge_index)))


def check_features(graph: Any, what: str = "the graph") -> None:
    """Raises unless a graph has features: a finite row of numbers for each node."""
    x = getattr(graph, "x", None)
    if x is None:
        raise DataError(f"{what} has no features (x); give it some, or let load_graph make them from the graph")
    if not isinstance(x, Tensor) or x.dim() != 2 or x.is_complex() or x.shape[1] < 1:
        shape = f" of shape {tuple(x.shape)}" if hasattr(x, "shape") else ""
        raise DataError(f"the features (x) of {what} are a {type(x).__name__}{shape}; pass a tensor (nodes, features)")
    if len(x) != graph.num_nodes:
        raise DataError(f"{what} has {graph.num_nodes} nodes, but {len(x)} rows of features (x); give each node one")
    values = x if x.layout == torch.strided else x.to_sparse_coo().coalesce().values()
    if not all(bool(block.isfinite().all()) for block in values.split(_CHECKED_ROWS)):
        where = f", first in row {int((~x.isfinite()).any(1).nonzero()[0])}" if x.layout == torch.strided else ""
        raise DataError(f"the features (x) of {what} hold NaN or infinity{where}; mend or drop them")


def check_same_columns(before: list[str] | None, given: Any) -> None:
    """Raises if features have other names or another order than in training, which a model could not notice."""
    now = getattr(given, "feature_names", None)
    if before is not None and now is not None and list(before) != list(now):
        raise DataError(
            f"the features of {getattr(given, 'name', None) or 'the graph'} are {listed(now)}; the run was trained "
            f"with {listed(before)}: give the same columns in the same order"
        )


def listed(names: list[str]) -> str:
    """The first names, for messages."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _aligned(x: Tensor) -> Tensor:
    """Features row by row, in memory as PyTorch allots it: products depend to the last bit on where and in which order
    their numbers lie, and those that come from NumPy lie anywhere.
    """
    if x.layout != torch.strided:
        return x
    x = x.contiguous()
    return x.clone() if x.data_ptr() % _ALIGNMENT else x


def as_floats(x: Tensor) -> Tensor:
    """Whole numbers and halves in single precision; a mean, say, could not be subtracted from whole numbers. Whatever
    features were made from is not trained.
    """
    return x.detach() if x.dtype in (torch.float32, torch.float64) else x.detach().float()
