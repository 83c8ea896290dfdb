"""The edges of a PyG graph as arrays that can be trusted: whole numbers of nodes that exist, and a weight for each."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from h2hgcn.errors import DataError


def edge_ends(graph: Any) -> NDArray[np.int64]:
    """The two ends of every edge, ``(2, edges)``."""
    edge_index = torch.as_tensor(graph.edge_index).detach().cpu()
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise DataError(f"edge_index is {edge_index.dtype}; name nodes by whole numbers (torch.int64)")
    if edge_index.dim() != 2 or len(edge_index) != 2:
        raise DataError(f"edge_index has shape {tuple(edge_index.shape)}; give one row of sources and one of targets")
    ends: NDArray[np.int64] = edge_index.numpy().astype(np.int64, copy=False)
    check_nodes(graph, "edge_index", ends)
    return ends


def check_nodes(graph: Any, name: str, nodes: NDArray[np.int64]) -> None:
    """Whether all of these nodes are nodes of the graph."""
    num_nodes = int(graph.num_nodes or 0)
    if nodes.size and (nodes.min() < 0 or nodes.max() >= num_nodes):
        wrong = nodes.min() if nodes.min() < 0 else nodes.max()
        raise DataError(f"{name} names node {wrong}, but the graph has {num_nodes} nodes; fix num_nodes or the edges")


def edge_weights(graph: Any) -> NDArray[np.float32] | None:
    """The weight of every edge, ``(edges)``, if the graph has any."""
    if getattr(graph, "edge_weight", None) is None:
        return None
    weights = torch.as_tensor(graph.edge_weight).detach().cpu()
    num_edges = graph.edge_index.shape[1]
    if weights.shape != (num_edges,):
        raise DataError(f"edge_weight has shape {tuple(weights.shape)}; give one number for each of {num_edges} edges")
    if not bool(weights.float().isfinite().all()):
        raise DataError("edge_weight holds numbers that are not finite in float32; mend or drop them")
    return weights.float().numpy()
