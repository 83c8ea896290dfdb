"""Which links a node is likeliest to miss: the nearest nodes that it is not linked to."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from h2hgcn.embeddings.coordinates import check_coordinates, check_points, lorentz_tensor
from h2hgcn.errors import DataError
from h2hgcn.geometry import lorentz

# Links from a node, or links to it; None counts an edge both ways.
Direction = Literal["out", "in"]

# What a decoder makes of pairs (node, other), k × 2: the higher, the likelier a link.
Rank = Callable[[NDArray[np.int64]], NDArray[np.floating]]


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
    direction: Direction | None = None,
    rank: Rank | None = None,
) -> Recommendations:
    """The ``k`` nodes nearest to a node, without itself and those that ``known_edges`` (2 × edges) link it to; fewer if
    fewer are left.

    An edge counts in both directions, or with ``direction`` only if it leaves (``"out"``) or enters (``"in"``) the
    node. The search is exact. ``score`` turns distances into what a decoder makes of them, probabilities say; it does
    not change the order. With ``rank`` the highest come first instead of the nearest. ``name`` is what errors call the
    node by.
    """
    distances = _distances_from(points, node, check_coordinates(space))
    free = np.ones(len(distances), dtype=bool)
    free[_neighbors(check_edges(known_edges, len(distances)), node, check_direction(direction))] = False
    free[node] = False
    candidates = free.nonzero()[0]
    check_count(k)
    if not len(candidates):
        raise DataError(
            f"node {node if name is None else name} is linked to all other nodes; there is no link to recommend"
        )
    order = distances[candidates].argsort(kind="stable")
    if rank is not None:
        order = (-rank(np.stack([np.full_like(candidates, node), candidates], axis=1))).argsort(kind="stable")
    nearest = candidates[order[:k]]
    found = distances[nearest]
    return Recommendations(nearest, found, None if score is None else np.asarray(score(found)))


def check_count(k: Any) -> None:
    if not isinstance(k, int | np.integer):
        raise DataError(f"k={k!r} must be a whole number: how many nodes to find")
    if k < 1:
        raise DataError(f"k={k} must be at least 1: how many nodes to find")


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


def check_direction(direction: str | None) -> Direction | None:
    """The argument itself, if it is known."""
    for known in (None, *get_args(Direction)):
        if direction == known:
            return known
    raise DataError(f"direction={direction!r} is not known; use 'out' (links from a node) or 'in' (links to it)")


def as_links(pairs: NDArray[np.int64], direction: Direction | None) -> NDArray[np.int64]:
    """Pairs (node, other) as links (source, target)."""
    return pairs[:, ::-1] if direction == "in" else pairs


def _neighbors(edges: NDArray[np.int64], node: int, direction: Direction | None) -> NDArray[np.int64]:
    source, target = edges
    found = {"out": target[source == node], "in": source[target == node]}
    return np.concatenate(list(found.values())) if direction is None else found[direction]


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
