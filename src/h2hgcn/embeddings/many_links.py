"""The likeliest missing links of many nodes at once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.embeddings.link_index import ExactSearch, FaissSearch, ScoredSearch, Vectors, WidenedSearch
from h2hgcn.embeddings.neighbors import Direction, Rank, check_count, check_edges
from h2hgcn.errors import DataError
from h2hgcn.kernels.distances import squared_distances_of_rows

Search = ExactSearch | FaissSearch | ScoredSearch | WidenedSearch

# Points that are looked for beyond those that are wanted: inner products in single precision do not tell close ones
# apart, distances do.
_SPARE = 10

# Nodes that are worked on at once, what is found of them, and nodes whose recall is measured.
_BLOCK, _FOUND, _MEASURED = 1 << 14, 1 << 24, 500


class ManyLinks(NamedTuple):
    """For each node, the nearest nodes that it is not linked with ``(nodes, k)``, and their distances; -1 and infinity
    where fewer are left.
    """

    nodes: NDArray[np.int64]
    others: NDArray[np.int64]
    distances: NDArray[np.float64]


def recommend_many(
    vectors: Vectors,
    known_edges: Any,
    nodes: NDArray[np.int64],
    k: int,
    search: Search,
    *,
    euclidean: bool = False,
    direction: Direction | None = None,
    rank: Rank | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ManyLinks:
    """The ``k`` nearest of each node, without itself and those that ``known_edges`` (2 × edges) link it with, in either
    direction or in the one that is given; fewer where fewer are left. What the search finds is put in order by stable
    distances, or by ``rank``, the highest first; of equals the first by number comes first.
    """
    linked = _linked(check_edges(known_edges, len(vectors.points)), len(vectors.points), direction)
    check_count(k)
    k = min(k, len(vectors.points))
    parts = []
    for first in range(0, len(nodes), _BLOCK):
        block = nodes[first : first + _BLOCK]
        parts.append(_recommend_block(vectors, linked, block, k, search, euclidean, rank))
        progress(first + len(block), len(nodes))
    others, distances = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    return ManyLinks(nodes, others, distances)


def measured_recall(
    vectors: Vectors,
    known_edges: Any,
    search: Search,
    k: int = 10,
    *,
    exact: Search | None = None,
    euclidean: bool = False,
    direction: Direction | None = None,
    rank: Rank | None = None,
) -> float:
    """The share of what an exact search finds (the nearest, by default) that another one finds, over some nodes."""
    count = len(vectors.points)
    nodes = np.sort(np.random.RandomState(0).permutation(count)[:_MEASURED])
    linked = _linked(check_edges(known_edges, count), count, direction)
    nodes = nodes[count - np.diff(linked.indptr)[nodes] > k]
    if not len(nodes):
        raise DataError(f"no node has {k} others that it is not linked with; the graph is too small for an index")
    found, true = (
        recommend_many(vectors, known_edges, nodes, k, each, euclidean=euclidean, direction=direction, rank=rank).others
        for each in (search, ExactSearch(vectors) if exact is None else exact)
    )
    return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(found, true, strict=True)]))


def _recommend_block(
    vectors: Vectors,
    linked: sp.csr_array,
    nodes: NDArray[np.int64],
    k: int,
    search: Search,
    euclidean: bool,
    rank: Rank | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Looks for more and more points where links take the place of others."""
    others = np.full((len(nodes), k), -1, np.int64)
    distances = np.full((len(nodes), k), np.inf)
    free = linked.shape[0] - np.diff(linked.indptr)[nodes]
    open_rows, count = np.flatnonzero(free), min(k + _SPARE + 1, len(vectors.points))
    while len(open_rows):
        missing = []
        for rows in np.array_split(open_rows, -(-len(open_rows) * count // _FOUND)):
            found = search.search(nodes[rows], count)
            if count == len(vectors.points):  # an index may lose some; then all are looked at
                found = np.broadcast_to(np.arange(count), (len(rows), count))
            measured = _distances(vectors, nodes[rows], found, euclidean)
            keys = measured.copy()
            if rank is not None:
                keys = -rank(_pairs(nodes[rows], found)).astype(np.float64).reshape(found.shape)
            keys[_is_taken(linked, nodes[rows], found)] = np.inf
            order = np.lexsort((found, keys), axis=1)[:, :k]
            there = np.isfinite(np.take_along_axis(keys, order, 1))
            done = there.sum(1) >= np.minimum(k, free[rows])
            width = order.shape[1]
            others[rows[done], :width] = np.where(there, np.take_along_axis(found, order, 1), -1)[done]
            distances[rows[done], :width] = np.where(there, np.take_along_axis(measured, order, 1), np.inf)[done]
            missing.append(rows[~done])
        open_rows, count = np.concatenate(missing), min(4 * count, len(vectors.points))
    return others, distances


def _distances(
    vectors: Vectors, nodes: NDArray[np.int64], found: NDArray[np.int64], euclidean: bool
) -> NDArray[np.float64]:
    pairs = torch.from_numpy(_pairs(nodes, found))
    with torch.no_grad():
        if euclidean:
            square = (vectors.points[pairs[:, 0]] - vectors.points[pairs[:, 1]]).square().sum(1)
        else:
            square = squared_distances_of_rows(vectors.points, pairs)
    return square.sqrt().double().numpy().reshape(found.shape)


def _pairs(nodes: NDArray[np.int64], found: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each node with what was found for it; -1, which is nothing, as 0."""
    return np.stack([np.repeat(nodes, found.shape[1]), np.maximum(found, 0).ravel()], axis=1)


def _is_taken(linked: sp.csr_array, nodes: NDArray[np.int64], found: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a point is the node itself, linked with it, or none."""
    size, width = linked.shape[0], found.shape[1]
    rows = linked[nodes]
    keys = np.repeat(np.arange(len(nodes)), np.diff(rows.indptr)) * size + rows.indices
    keys.sort()
    wanted = (np.arange(len(nodes))[:, None] * size + found).ravel()
    places = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return ((keys[places] == wanted) | (found.ravel() < 0)).reshape(len(nodes), width)


def _linked(edges: NDArray[np.int64], size: int, direction: Direction | None) -> sp.csr_array:
    """Who is linked with whom, in both directions or in one, and each node with itself."""
    ways = {"out": [edges], "in": [edges[::-1]], None: [edges, edges[::-1]]}[direction]
    rows, columns = np.concatenate([*ways, np.tile(np.arange(size), (2, 1))], axis=1)
    matrix = sp.csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(size, size))
    matrix.sum_duplicates()
    return matrix
