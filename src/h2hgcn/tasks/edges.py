"""Edges at the door: what every task and every new graph has to bring."""

from typing import Any

import torch
from torch import Tensor

from h2hgcn.datasets.edge_arrays import edge_ends
from h2hgcn.errors import DataError


def check_edges(graph: Any, what: str = "the graph") -> None:
    """Raises unless a graph has edges between its own nodes, with weights, if it has any, that can carry messages."""
    if not isinstance(getattr(graph, "edge_index", None), Tensor):
        raise DataError(f"{what} has no tensor edge_index; give it one, (2, 0) if there is no edge")
    try:
        edge_ends(graph)
    except DataError as error:
        raise DataError(f"{what}: {error}") from None
    weight = getattr(graph, "edge_weight", None)
    if weight is not None:
        _check_weight(weight, graph.edge_index.shape[1], what)


def edge_weight_of(graph: Any) -> Tensor | None:
    """The weights of a graph's edges, if it has any, as plain numbers: whatever they were made from is not trained."""
    weight = getattr(graph, "edge_weight", None)
    return None if weight is None else weight.detach().reshape(-1)


def check_some_weight(weight: Tensor, what: str = "the graph") -> None:
    """Raises if there are edges, but none of them carries anything."""
    if weight.numel() and not bool(weight.any()):
        raise DataError(f"all edge weights of {what} are zero; leave edge_weight out for an unweighted graph")


def _check_weight(weight: Any, num_edges: int, what: str) -> None:
    if not isinstance(weight, Tensor) or weight.shape not in ((num_edges,), (num_edges, 1)) or weight.is_complex():
        shape = f" of shape {tuple(weight.shape)}" if hasattr(weight, "shape") else ""
        raise DataError(
            f"edge_weight of {what} is a {type(weight).__name__}{shape}; pass a tensor with one number for each of its "
            f"{num_edges} edges"
        )
    if not bool(weight.to(torch.float32).isfinite().all()):
        raise DataError(f"edge_weight of {what} holds numbers that are not finite in float32; mend or drop them")
    if bool((weight < 0).any()):
        raise DataError(f"edge_weight of {what} holds {weight.min().item():g}; weights are not negative: shift or clip")
    check_some_weight(weight, what)
