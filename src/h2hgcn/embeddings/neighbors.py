"""Which links a node is likeliest to miss: the nearest nodes that it is not linked to."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from h2hgcn.embeddings.coordinates import check_coordinates, check_points, lorentz_tensor
from h2hgcn.errors import DataError
from h2hgcn.geometry import lorentz


class Recommendations(NamedTuple):
    """The nearest first; of equally near nodes that with the smaller index. ``scores`` is None if none were asked."""

    nodes: NDArray[np.int64]
    distances: NDArray[np.float64]
    scores: NDArray[np.floating] | None


def recommend_links(
    points: Any,
    known_edges: Any,
    node: int,
    k: int = 10,
    score: Callable[[NDArray[np.float64]], Any] | None = None,
    *,
    space: str = "lorentz",
    name: Any = None,
) -> Recommendations:
    """The ``k`` nodes nearest to a node, without itself and those that ``known_edges`` (2 × edges) link it to.

    An edge counts in both directions. The search is exact. ``score`` turns distances into what a decoder makes of
    them, probabilities say; it does not change the order. ``name`` is what errors call the node by.
    """
    distances = _distances_from(points, node, check_coordinates(space))
    free = np.ones(len(distances), dtype=bool)
    free[_neighbors(check_edges(known_edges, len(distances)), node)] = False
    free[node] = False
    candidates = free.nonzero()[0]
    check_count(k)
    if not 1 <= k <= len(candidates):
        raise DataError(
            f"{k} links of node {node if name is None else name} were asked for; there are {len(candidates)} nodes "
            "that it is not linked to"
        )
    nearest = candidates[np.argsort(distances[candidates], kind="stable")[:k]]
    found = distances[nearest]
    return Recommendations(nearest, found, None if score is None else np.asarray(score(found)))


def check_count(k: Any) -> None:
    if not isinstance(k, int | np.integer):
        raise DataError(f"k={k!r} must be a whole number: how many nodes to find")


def check_edges(edges: Any, num_nodes: int) -> NDArray[np.int64]:
    """Edges as an array (2 × edges) of nodes that are there."""
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((2, 0), dtype=np.int64)
    if array.ndim != 2 or array.shape[0] != 2 or array.dtype.kind not in "iu":
        raise DataError(f"the edges are {array.dtype} of shape {array.shape}; pass integers of shape (2, edges)")
    if array.min() < 0 or array.max() >= num_nodes:
        raise DataError(f"the edges name nodes {array.min()} to {array.max()}, but there are {num_nodes} points")
    return array.astype(np.int64)


def _neighbors(edges: NDArray[np.int64], node: int) -> NDArray[np.int64]:
    source, target = edges
    return np.concatenate([target[source == node], source[target == node]])


def _distances_from(points: Any, node: int, space: str) -> NDArray[np.float64]:
    if space == "euclidean":
        array = check_points(points, "euclidean").astype(np.float64)
        _check_node(node, len(array))
        return np.linalg.norm(array - array[node], axis=1)
    lifted = lorentz_tensor(points, space)
    _check_node(node, len(lifted))
    with torch.no_grad():
        return lorentz.distance(lifted[node].expand_as(lifted), lifted).numpy()


def _check_node(node: int, count: int) -> None:
    if not 0 <= node < count:
        raise DataError(f"there is no node {node}; there are {count} points, counted from 0")
