"""How well the distances of an embedding reconstruct a graph: mean average precision, mean rank, distortion."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.sparse import csgraph
from torch import Tensor

from h2hgcn.errors import NonFiniteError
from h2hgcn.geometry import lorentz
from h2hgcn.layers.spaces import Space, as_lorentz

# Distances that are computed at once.
_BLOCK_ELEMENTS = 1 << 20


def link_matrix(edge_index: Any, num_nodes: int, directed: bool) -> sp.csr_array:
    """The links of a graph as a matrix of ones without self-loops; both ways unless ``directed``."""
    rows, columns = np.asarray(edge_index)
    kept = rows != columns
    rows, columns = rows[kept], columns[kept]
    if not directed:
        rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    matrix = sp.csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=(num_nodes, num_nodes))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def rank_metrics(
    points: Tensor, space: Space, links: sp.csr_array, nodes: NDArray[np.int64] | None = None, count_self: bool = False
) -> dict[str, float]:
    """``map`` and ``mean_rank`` (Nickel and Kiela 2017, section 4.1).

    The neighbors of a node, those in its row of ``links``, are ranked by distance among all nodes that are not its
    neighbors. The mean rank is over all links, at best 1; average precision is averaged over the nodes that have a
    neighbor. Equal distances share the mean rank, so points that coincide gain nothing.

    Args:
        points: Rows ``(num_nodes, ...)`` in ``space``.
        nodes: The nodes to rank for; None takes all.
        count_self: Whether a node counts among the others that its neighbors are ranked with, at distance 0. gensim's
            ``ReconstructionEvaluation`` does so; its mean rank is then 2 at best and its precision below 1.
    """
    chosen = np.arange(len(points)) if nodes is None else nodes
    chosen = chosen[np.diff(links.indptr)[chosen] > 0]
    size = max(1, _BLOCK_ELEMENTS // len(points))
    ranks, precisions = [], []
    for first in range(0, len(chosen), size):
        block = chosen[first : first + size]
        distances = distances_from(points, space, block)
        neighbors = [links.indices[links.indptr[node] : links.indptr[node + 1]] for node in block]
        known = [row[columns] for row, columns in zip(distances, neighbors, strict=True)]
        for row, columns, node in zip(distances, neighbors, block, strict=True):
            row[columns] = np.inf
            row[node] = 0.0 if count_self else np.inf
        distances.sort(axis=1)
        for row, near in zip(distances, known, strict=True):
            closer = np.searchsorted(row, near, side="left")
            equal = np.searchsorted(row, near, side="right") - closer
            rank = np.sort(1 + closer + equal / 2)
            hits = np.arange(len(rank))
            ranks.append(rank)
            precisions.append(float(((hits + 1) / (rank + hits)).mean()))
    return {"map": float(np.mean(precisions)), "mean_rank": float(np.concatenate(ranks).mean())}


def distances_from(points: Tensor, space: Space, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Distances ``(len(nodes), num_nodes)`` from some nodes to all, in float64."""
    points = points.detach().double()
    chosen = points[torch.from_numpy(nodes).to(points.device)]
    if space == "euclidean":
        distances = torch.cdist(chosen, points, compute_mode="donot_use_mm_for_euclid_dist")
    else:
        with torch.no_grad():
            distances = lorentz.pairwise_distance(as_lorentz(chosen, space), as_lorentz(points, space))
    if not bool(distances.isfinite().all()):
        raise NonFiniteError("the distances hold NaN or infinity")
    found: NDArray[np.float64] = distances.cpu().numpy()
    return found


class GraphDistances(NamedTuple):
    """Numbers of edges on shortest paths ``hops (len(sources), num_nodes)``; -1 where there is no path."""

    sources: NDArray[np.int64]
    hops: NDArray[np.int32]


def graph_distances(links: sp.csr_array, sources: NDArray[np.int64]) -> GraphDistances:
    """Distances along links, whichever way they point."""
    hops = np.empty((len(sources), links.shape[0]), dtype=np.int32)
    for row, source in zip(hops, sources, strict=True):
        found = csgraph.dijkstra(links, directed=False, indices=int(source), unweighted=True)
        row[:] = np.where(np.isfinite(found), found, -1)
    return GraphDistances(sources, hops)


def distortion_metrics(points: Tensor, space: Space, graph: GraphDistances) -> dict[str, float]:
    """``distortion``, the mean of ``|s·d - h| / h`` at the scale ``s`` that minimizes it, and ``worst_distortion``, the
    largest ratio ``d / h`` over the smallest (Sala et al. 2018), of distances ``d`` and distances in the graph ``h``.

    The worst distortion is infinite if two nodes have the same point; it is left out then, since JSON has no infinity.
    """
    ratios = []
    for source, hops in zip(graph.sources, graph.hops, strict=True):
        reached = hops > 0
        ratios.append(distances_from(points, space, np.array([source]))[0, reached] / hops[reached])
    ratio = np.sort(np.concatenate(ratios))
    if not len(ratio) or ratio[-1] == 0:
        return {}
    # a sum of |s·r - 1| = r·|s - 1/r| is least at the weighted median of 1/r, with weights r
    weight = np.cumsum(ratio)
    scale = 1 / ratio[np.searchsorted(weight, weight[-1] / 2)]
    metrics = {"distortion": float(np.abs(scale * ratio - 1).mean())}
    return metrics if ratio[0] == 0 else metrics | {"worst_distortion": float(ratio[-1] / ratio[0])}
