"""The likeliest missing links: nearest points, exact or by an index."""

import hashlib
import importlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.embeddings.coordinates import check_coordinates, check_points, lorentz_tensor
from h2hgcn.errors import DataError
from h2hgcn.geometry.numerics import INNER_PRODUCT_STEPS
from h2hgcn.kernels.distances import squared_distances_of_rows

Nodes = NDArray[np.int64]
Distances = NDArray[np.float64]

# Links from a node, or links to it; None counts an edge both ways.
Direction = Literal["out", "in"]

# What a decoder makes of pairs (node, other), k × 2: the higher, the likelier a link.
Rank = Callable[[Nodes], NDArray[np.floating]]


class Recommendations(NamedTuple):
    """The nearest first; of equally near nodes that with the smaller index. ``scores`` is None if none were asked."""

    nodes: Nodes
    distances: Distances
    scores: NDArray[np.floating] | None


def recommend_links(
    points: Any,
    known_edges: Any,
    node: int,
    k: int = 10,
    score: Callable[[Distances], Any] | None = None,
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
    vectors = vectors_of(points, space)
    count = len(vectors.points)
    if not 0 <= node < count:
        raise DataError(f"there is no node {node}; there are {count} points, counted from 0")
    check_count(k)
    source, target = check_edges(known_edges, count)
    targets, sources = target[source == node], source[target == node]
    taken = {"out": targets, "in": sources, None: np.concatenate([targets, sources])}[check_direction(direction)]
    found, distances = nearest_nodes(vectors.points, node, taken, k, euclidean=vectors.euclidean, rank=rank)
    if not len(found):
        raise DataError(
            f"node {node if name is None else name} is linked to all other nodes; there is no link to recommend"
        )
    return Recommendations(found, distances, None if score is None else np.asarray(score(distances)))


def nearest_nodes(
    points: torch.Tensor, node: int, taken: NDArray[Any], k: int, *, euclidean: bool = False, rank: Rank | None = None
) -> tuple[Nodes, Distances]:
    """The ``k`` nodes nearest to one, or with ``rank`` the highest, and their distances; neither itself nor ``taken``.

    Hyperbolic inner products, which are quick, leave out what cannot be among the nearest even if they are off by
    rounding; stable distances put the rest in order.
    """
    free = np.ones(len(points), dtype=bool)
    free[taken] = False
    free[node] = False
    others = free.nonzero()[0]
    if rank is not None:
        keys = -rank(np.stack([np.full_like(others, node), others], axis=1))
        others = others[keys.argsort(kind="stable")[:k]]
    elif not euclidean and len(others) > k:
        own, array = points[node].numpy(), points.numpy()
        products = (array @ np.concatenate([own[:1], -own[1:]]))[others]
        steps = INNER_PRODUCT_STEPS + len(own)
        rounding = steps * np.finfo(np.float64).eps * own[0] * array[others, 0]
        limit = (products + rounding)[np.argpartition(products, k - 1)[:k]].max()
        others = others[products - rounding <= limit]
    distances = _distances(points, np.array([node]), others[None], euclidean)[0]
    order = slice(k) if rank is not None else distances.argsort(kind="stable")[:k]
    return others[order], distances[order]


def check_count(k: Any) -> None:
    """Raises unless ``k`` is a positive integer."""
    if not isinstance(k, int | np.integer):
        raise DataError(f"k={k!r} must be a whole number: how many nodes to find")
    if k < 1:
        raise DataError(f"k={k} must be at least 1: how many nodes to find")


def check_edges(edges: Any, num_nodes: int) -> Nodes:
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
    if direction not in (None, *get_args(Direction)):
        raise DataError(f"direction={direction!r} is not known; use 'out' (links from a node) or 'in' (links to it)")
    return direction  # type: ignore[return-value]


def as_links(pairs: Nodes, direction: Direction | None) -> Nodes:
    """Pairs (node, other) as links (source, target)."""
    return pairs[:, ::-1] if direction == "in" else pairs


Kind = Literal["exact", "hnsw", "ivf"]

# Of HNSW: links of a point, candidates kept while it is built, and while it is searched for each wanted point.
_LINKS, _BUILD_WIDTH, _SEARCH_WIDTH = 32, 80, 64

# Of IVF: one of so many cells is searched.
_SHARE_OF_CELLS = 6

# Points of the highest terms that every search by an index looks at, if a decoder has such terms.
POPULAR = 256

# Of an exact search: inner products that are held at once.
_PRODUCTS = 1 << 25


class Vectors(NamedTuple):
    """Points as an inner-product search wants them; ``places`` is where nearness is measured by Euclidean distance."""

    points: torch.Tensor
    data: NDArray[np.float32]
    queries: NDArray[np.float32]
    places: NDArray[np.float32]
    euclidean: bool


def vectors_of(points: Any, space: str = "lorentz") -> Vectors:
    """Vectors whose inner products are the greater, the nearer the points are."""
    euclidean = check_coordinates(space) == "euclidean"
    if euclidean:
        lifted = torch.from_numpy(check_points(points, "euclidean")).double()
        half = 0.5 * lifted.square().sum(1, keepdim=True)
        data, queries, places = torch.cat([lifted, half], 1), torch.cat([lifted, -torch.ones_like(half)], 1), lifted
    else:
        lifted = lorentz_tensor(points, space)
        time, part = lifted[:, :1], lifted[:, 1:]
        data, queries, places = lifted, torch.cat([-time, part], 1), part / (1 + time)
    single = [np.ascontiguousarray(x.float().numpy()) for x in (data, queries, places)]
    return Vectors(lifted, single[0], single[1], single[2], euclidean)


def identity_of(vectors: Vectors) -> str:
    """What tells whether an index is of these points."""
    return hashlib.sha256(np.ascontiguousarray(vectors.data).data).hexdigest()


class ExactSearch:
    """The points of the highest inner products."""

    def __init__(self, vectors: Vectors) -> None:
        self._points = vectors.points
        self._data, self._queries = torch.from_numpy(vectors.data), torch.from_numpy(vectors.queries)

    def search(self, nodes: Nodes, count: int) -> Nodes:
        """For each node, ``count`` points of the highest scores, itself among them."""
        size = len(self._points)
        parts = torch.from_numpy(nodes).split(max(1, _PRODUCTS // size))
        return torch.cat([self._scores(part).topk(min(count, size), dim=1).indices for part in parts]).numpy()

    def _scores(self, nodes: torch.Tensor) -> torch.Tensor:
        return self._queries[nodes] @ self._data.mT


class ScoredSearch(ExactSearch):
    """All scores ``own[p, i] + terms[p, j] - slopes[p] · d(queries[i], points[j])² + of_rows([i])[p, 0, j]``, the
    largest over ``p``, in blocks: what a decoder makes of a node's links that goes by more than their distance.
    ``queries`` are of the kind of ``vectors.points``.
    """

    def __init__(
        self,
        vectors: Vectors,
        queries: torch.Tensor,
        own: Distances,
        terms: Distances,
        slopes: Distances,
        of_rows: Callable[[Nodes], Distances] | None = None,
    ) -> None:
        self._points, self._euclidean = vectors.points, vectors.euclidean
        self._queries, self._of_rows = queries, of_rows
        self._own, self._terms, self._slopes = map(torch.from_numpy, (own, terms, slopes))

    def _scores(self, nodes: torch.Tensor) -> torch.Tensor:
        queries, points = self._queries[nodes], self._points
        if self._euclidean:
            squares = torch.cdist(queries, points).square_()
        else:
            products = queries[:, :1] * points[:, 0] - queries[:, 1:] @ points[:, 1:].mT
            squares = products.clamp_min_(1).acosh_().square_()
        scores = self._own[:, nodes, None] + self._terms[:, None] - self._slopes[:, None, None] * squares
        if self._of_rows is not None:
            scores += torch.from_numpy(self._of_rows(nodes.numpy()))
        return scores.amax(0)


class FaissSearch:
    """An index of FAISS. A ``width`` above 1 looks at so many times as many points: slower, but it misses fewer."""

    def __init__(self, index: Any, kind: Kind, queries: NDArray[np.float32], width: int = 1) -> None:
        self.index, self.kind, self.width = index, kind, width
        self._queries = queries

    def search(self, nodes: Nodes, count: int) -> Nodes:
        """For each node, ``count`` points that may be nearest; -1 where there are fewer."""
        count = min(count, self.index.ntotal)
        if self.kind == "hnsw":
            self.index.hnsw.efSearch = self.width * max(_SEARCH_WIDTH, 2 * count)
        else:
            self.index.nprobe = min(self.index.nlist, self.width * max(1, self.index.nlist // _SHARE_OF_CELLS))
        return self.index.search(self._queries[nodes], count)[1]


class WidenedSearch:
    """What another search finds near a node, four times as many as are asked for, the points of the highest terms in
    the whole graph, which a decoder may prefer from afar, and what ``two_hops`` gives. All are as many times more as
    the other search is wide.
    """

    def __init__(
        self, search: FaissSearch, terms: Distances, two_hops: Callable[[Nodes, int], Nodes] | None = None
    ) -> None:
        self.nearest, self._two_hops = search, two_hops
        self._by_terms = np.argsort(-terms, axis=1, kind="stable")

    def search(self, nodes: Nodes, count: int) -> Nodes:
        """For each node, at least ``count`` different points; -1 where there is none."""
        count *= 4 * self.nearest.width
        popular = np.unique(self._by_terms[:, : POPULAR * self.nearest.width])
        parts = [self.nearest.search(nodes, count), np.broadcast_to(popular, (len(nodes), len(popular)))]
        if self._two_hops is not None:
            parts.append(self._two_hops(nodes, count))
        found = np.sort(np.hstack(parts), axis=1)
        found[:, 1:][found[:, 1:] == found[:, :-1]] = -1
        return found


Search = ExactSearch | FaissSearch | WidenedSearch


def load_faiss() -> Any:
    """FAISS, which is an extra."""
    try:
        return importlib.import_module("faiss")
    except ImportError:
        raise DataError("an index needs FAISS; pip install 'h2hgcn[scale]', or search with --index exact") from None


def build_search(vectors: Vectors, kind: str) -> ExactSearch | FaissSearch:
    """A search of this kind over the points."""
    if kind == "exact":
        return ExactSearch(vectors)
    if kind not in get_args(Kind):
        raise DataError(f"index={kind!r} is not known; use one of {', '.join(get_args(Kind))}")
    faiss = load_faiss()
    count, width = vectors.data.shape
    if kind == "hnsw":  # links come from places, the search goes by inner products
        graph = faiss.IndexHNSWFlat(vectors.places.shape[1], _LINKS)
        graph.hnsw.efConstruction = _BUILD_WIDTH
        graph.add(vectors.places)
        index = faiss.IndexHNSWFlat(width, _LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw = graph.hnsw
        index.hnsw.is_similarity = True
        index.storage.add(vectors.data)
        index.ntotal = count
    else:
        cells = max(1, min(int(4 * count**0.5), count // 39))
        index = faiss.index_factory(width, f"IVF{cells},Flat", faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1  # or FAISS prints a warning for small graphs
        index.train(vectors.data)
        index.add(vectors.data)
    return FaissSearch(index, kind, vectors.queries)  # type: ignore[arg-type]


# Points that are looked for beyond those that are wanted: inner products in single precision do not tell close ones
# apart, distances do.
_SPARE = 10

# Nodes that are worked on at once, what is found of them, and nodes whose recall is measured.
_BLOCK, _FOUND, _MEASURED = 1 << 14, 1 << 24, 500


class ManyLinks(NamedTuple):
    """For each node, the nearest nodes that it is not linked with ``(nodes, k)``, and their distances; -1 and infinity
    where fewer are left.
    """

    others: Nodes
    distances: Distances


def recommend_many(
    vectors: Vectors,
    known_edges: Any,
    nodes: Nodes,
    k: int,
    search: Search,
    *,
    direction: Direction | None = None,
    rank: Rank | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ManyLinks:
    """The ``k`` nearest of each node, without itself and those that ``known_edges`` (2 × edges) link it with, in either
    direction or in the one that is given; fewer where fewer are left. What the search finds is put in order by stable
    distances, or by ``rank``, the highest first; of equals the first by number comes first.
    """
    check_count(k)
    size = len(vectors.points)
    linked = link_matrix(known_edges, size, direction)
    free = size - 1 - np.diff(linked.indptr)[nodes]
    others = np.full((len(nodes), min(k, size)), -1, np.int64)
    distances = np.full(others.shape, np.inf)
    for first in range(0, len(nodes), _BLOCK):
        open_rows, count = first + np.flatnonzero(free[first : first + _BLOCK]), min(k + _SPARE + 1, size)
        while len(open_rows):  # more and more points, where links take the place of others
            missing = []
            for rows in np.array_split(open_rows, -(-len(open_rows) * count // _FOUND)):
                found = search.search(nodes[rows], count)
                if count == size:  # an index may lose some; then all are looked at
                    found = np.broadcast_to(np.arange(count), (len(rows), count))
                best, measured = _first_free(vectors, linked, nodes[rows], found, others.shape[1], rank)
                done = (best >= 0).sum(1) >= np.minimum(k, free[rows])
                others[rows[done], : best.shape[1]] = best[done]
                distances[rows[done], : best.shape[1]] = measured[done]
                missing.append(rows[~done])
            open_rows, count = np.concatenate(missing), min(4 * count, size)
        progress(min(first + _BLOCK, len(nodes)), len(nodes))
    return ManyLinks(others, distances)


def _first_free(
    vectors: Vectors, linked: sp.csr_array, nodes: Nodes, found: Nodes, k: int, rank: Rank | None
) -> ManyLinks:
    """Of what was found for each node, the first ``k`` that are neither itself nor linked with it."""
    size, rows = len(vectors.points), linked[nodes]
    links = np.sort(np.repeat(np.arange(len(nodes)), np.diff(rows.indptr)) * size + rows.indices)
    pairs = np.arange(len(nodes))[:, None] * size + found
    known = links.take(np.searchsorted(links, pairs), mode="clip") == pairs if len(links) else False
    measured = _distances(vectors.points, nodes, found, vectors.euclidean)
    keys = measured.copy()
    if rank is not None:
        keys[:] = -rank(_pairs(nodes, found)).reshape(found.shape)
    keys[known | (found < 0) | (found == nodes[:, None])] = np.inf
    order = np.lexsort((found, keys), axis=1)[:, :k]
    there = np.isfinite(np.take_along_axis(keys, order, 1))
    best, measured = np.take_along_axis(found, order, 1), np.take_along_axis(measured, order, 1)
    return ManyLinks(np.where(there, best, -1), np.where(there, measured, np.inf))


def measured_recall(
    vectors: Vectors, known_edges: Any, search: Search, k: int = 10, *, exact: Search | None = None, **options: Any
) -> float:
    """The share of what an exact search finds (the nearest, by default) that another one finds, over some nodes;
    ``options`` are those of ``recommend_many``.
    """
    count = len(vectors.points)
    nodes = np.sort(np.random.RandomState(0).permutation(count)[:_MEASURED])
    linked = link_matrix(known_edges, count, options.get("direction"))
    nodes = nodes[count - 1 - np.diff(linked.indptr)[nodes] > k]
    if not len(nodes):
        raise DataError(f"no node has {k} others that it is not linked with; the graph is too small for an index")
    found, true = (
        recommend_many(vectors, known_edges, nodes, k, each, **options).others
        for each in (search, exact or ExactSearch(vectors))
    )
    return shared_fraction(found, true)


def shared_fraction(found: Nodes, true: Nodes) -> float:
    """The mean share of the rows of ``true`` that the rows of ``found`` have, too."""
    return float(np.mean([len(np.intersect1d(a, b)) for a, b in zip(found, true, strict=True)])) / true.shape[1]


def _distances(points: torch.Tensor, nodes: Nodes, found: Nodes, euclidean: bool) -> Distances:
    pairs = torch.from_numpy(_pairs(nodes, found))
    with torch.no_grad():
        if euclidean:
            square = (points[pairs[:, 0]] - points[pairs[:, 1]]).square().sum(1)
        else:
            square = squared_distances_of_rows(points, pairs)
    return square.sqrt().double().numpy().reshape(found.shape)


def _pairs(nodes: Nodes, found: Nodes) -> Nodes:
    """Each node with what was found for it; -1, which is nothing, as 0."""
    return np.stack([np.repeat(nodes, found.shape[1]), np.maximum(found, 0).ravel()], axis=1)


def link_matrix(edges: Any, size: int, direction: Direction | None = None) -> sp.csr_array:
    """Who is linked with whom by edges (2 × edges), in both directions or in one; nobody with itself."""
    source, target = pairs = check_edges(edges, size)
    pairs = pairs[:, source != target]
    ways = {"out": [pairs], "in": [pairs[::-1]], None: [pairs, pairs[::-1]]}[direction]
    rows, columns = np.concatenate(ways, axis=1)
    matrix = sp.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=(size, size))
    matrix.sum_duplicates()
    return matrix
