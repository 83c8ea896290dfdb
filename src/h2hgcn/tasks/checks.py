"""Checks of the graphs that tasks get: edges, weights and features."""

from typing import Any

import torch
from torch import Tensor

from h2hgcn.datasets import task_features
from h2hgcn.datasets.arrays import edge_ends
from h2hgcn.datasets.tables import listed
from h2hgcn.errors import DataError
from h2hgcn.kernels.csr import is_sparse

# Rows of features that are checked at once, and the alignment in bytes of PyTorch's CPU allocator.
_BLOCK, _ALIGNMENT = 1 << 16, 64


def check_edges(graph: Any, what: str = "the graph") -> None:
    """Raises unless a graph has edges between its own nodes, with usable weights if it has any."""
    if not isinstance(getattr(graph, "edge_index", None), Tensor):
        raise DataError(f"{what} has no tensor edge_index; give it one, (2, 0) if there is no edge")
    try:
        edge_ends(graph)
    except DataError as error:
        raise DataError(f"{what}: {error}") from None
    weight, num_edges = getattr(graph, "edge_weight", None), graph.edge_index.shape[1]
    if weight is None:
        return
    if not isinstance(weight, Tensor) or weight.shape not in ((num_edges,), (num_edges, 1)) or weight.is_complex():
        raise DataError(
            f"edge_weight of {what} is a {_described(weight)}; pass a tensor with one number for each of its "
            f"{num_edges} edges"
        )
    if not bool(weight.to(torch.float32).isfinite().all()):
        raise DataError(f"edge_weight of {what} holds numbers that are not finite in float32; fix or drop them")
    if bool((weight < 0).any()):
        raise DataError(f"edge_weight of {what} holds {weight.min().item():g}; weights are not negative: shift or clip")
    check_some_weight(weight, what)


def check_some_weight(weight: Tensor, what: str = "the graph") -> None:
    """Raises if there are edges and all have weight 0."""
    if weight.numel() and not bool(weight.any()):
        raise DataError(f"all edge weights of {what} are zero; leave edge_weight out for an unweighted graph")


def edge_weight_of(graph: Any) -> Tensor | None:
    """The edge weights of a graph, if it has any, detached and flat."""
    weight = getattr(graph, "edge_weight", None)
    return None if weight is None else weight.detach().reshape(-1)


def check_graph_features(graph: Any, what: str = "the graph") -> None:
    """Raises unless a graph has features: a finite row of numbers for each node."""
    x = getattr(graph, "x", None)
    if x is None:
        raise DataError(f"{what} has no features (x); give it some, or let load_graph make them from the graph")
    if not isinstance(x, Tensor) or x.dim() != 2 or x.is_complex() or x.shape[1] < 1:
        raise DataError(f"the features (x) of {what} are a {_described(x)}; pass a tensor (nodes, features)")
    if len(x) != graph.num_nodes:
        raise DataError(f"{what} has {graph.num_nodes} nodes, but {len(x)} rows of features (x); give each node one")
    values = x.to_sparse_coo().coalesce().values() if is_sparse(x) else x
    if not all(bool(block.isfinite().all()) for block in values.split(_BLOCK)):
        where = "" if is_sparse(x) else f", first in row {int((~x.isfinite()).any(1).nonzero()[0])}"
        raise DataError(f"the features (x) of {what} hold NaN or infinity{where}; fix or drop them")


def _described(value: Any) -> str:
    shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
    return f"{type(value).__name__}{shape}"


def check_same_columns(before: list[str] | None, given: Any) -> None:
    """Raises if features have other names or another order than in training, which a model could not notice."""
    now = getattr(given, "feature_names", None)
    if before is not None and now is not None and list(before) != list(now):
        raise DataError(
            f"the features of {getattr(given, 'name', None) or 'the graph'} are {listed(now)}; the run was trained "
            f"with {listed(before)}: give the same columns in the same order"
        )


def node_features(graph: Any, task: str, edge_index: Tensor | None = None) -> Tensor:
    """``task_features`` of a graph, checked. Dense ones are contiguous and aligned as PyTorch's own tensors, since the
    last bits of products depend on it.
    """
    check_graph_features(graph)
    x = as_floats(task_features(graph, task, edge_index))
    if is_sparse(x):
        return x
    x = x.contiguous()
    return x.clone() if x.data_ptr() % _ALIGNMENT else x


def as_floats(x: Tensor) -> Tensor:
    """Features in single or double precision, detached."""
    return x.detach() if x.dtype in (torch.float32, torch.float64) else x.detach().float()
