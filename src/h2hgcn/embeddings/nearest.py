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
from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import INNER_PRODUCT_STEPS
from h2hgcn.kernels.distances import squared_distances_of_rows

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
    euclidean = check_coordinates(space) == "euclidean"
    lifted = vectors_of(points, space).points
    if not 0 <= node < len(lifted):
        raise DataError(f"there is no node {node}; there are {len(lifted)} points, counted from 0")
    taken = _neighbors(check_edges(known_edges, len(lifted)), node, check_direction(direction))
    check_count(k)
    found, distances = nearest_nodes(lifted, node, taken, k, euclidean=euclidean, rank=rank)
    if not len(found):
        raise DataError(
            f"node {node if name is None else name} is linked to all other nodes; there is no link to recommend"
        )
    return Recommendations(found, distances, None if score is None else np.asarray(score(distances)))


def nearest_nodes(
    points: torch.Tensor,
    node: int,
    taken: NDArray[Any],
    k: int,
    *,
    euclidean: bool = False,
    rank: Rank | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The ``k`` nodes nearest to one, or with ``rank`` the highest, and their distances; neither itself nor ``taken``.

    Hyperbolic inner products, which are quick, leave out what cannot be among the nearest even if they are off by
    rounding; stable distances put the rest in order.
    """
    free = np.ones(len(points), dtype=bool)
    free[taken] = False
    free[node] = False
    others = free.nonzero()[0]
    if rank is None and not euclidean and len(others) > k:
        own, array = points[node].numpy(), points.numpy()
        products = (array @ np.concatenate([own[:1], -own[1:]]))[others]
        steps = INNER_PRODUCT_STEPS + len(own)
        rounding = steps * np.finfo(np.float64).eps * own[0] * array[others, 0]
        limit = (products + rounding)[np.argpartition(products, k - 1)[:k]].max()
        others = others[products - rounding <= limit]
    if rank is not None:
        keys = -rank(np.stack([np.full_like(others, node), others], axis=1))
        others = others[keys.argsort(kind="stable")[:k]]
    with torch.no_grad():
        if euclidean:
            distances = (points[others] - points[node]).norm(dim=1).numpy()
        else:
            distances = lorentz.distance(points[[node]].expand(len(others), -1), points[others]).numpy()
    order = np.arange(len(others)) if rank is not None else distances.argsort(kind="stable")[:k]
    return others[order], distances[order]


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
    """Points as an inner-product search wants them; ``places`` is where nearness is told by Euclidean distance."""

    points: torch.Tensor
    data: NDArray[np.float32]
    queries: NDArray[np.float32]
    places: NDArray[np.float32]


def vectors_of(points: Any, space: str = "lorentz") -> Vectors:
    """``points`` are float64, on the hyperboloid or Euclidean."""
    if check_coordinates(space) == "euclidean":
        x = torch.from_numpy(check_points(points, "euclidean")).double()
        half = 0.5 * x.square().sum(1, keepdim=True)
        return Vectors(
            x, _single(torch.cat([x, half], 1)), _single(torch.cat([x, -torch.ones_like(half)], 1)), _single(x)
        )
    lifted = lorentz_tensor(points, check_coordinates(space)).double()
    time, part = lifted[:, :1], lifted[:, 1:]
    return Vectors(lifted, _single(lifted), _single(torch.cat([-time, part], 1)), _single(part / (1 + time)))


def identity_of(vectors: Vectors) -> str:
    """What tells whether an index is of these points."""
    return hashlib.sha256(np.ascontiguousarray(vectors.data).data).hexdigest()


class ExactSearch:
    """All inner products, in blocks."""

    kind: Kind = "exact"

    def __init__(self, vectors: Vectors) -> None:
        self._data = torch.from_numpy(vectors.data)
        self._queries = torch.from_numpy(vectors.queries)

    def search(self, nodes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """For each node, ``count`` points that are nearest, itself among them; -1 where there are fewer."""
        rows = max(1, _PRODUCTS // len(self._data))
        found = [
            (self._queries[part] @ self._data.mT).topk(min(count, len(self._data)), dim=1).indices
            for part in torch.from_numpy(nodes).split(rows)
        ]
        return torch.cat(found).numpy()


class ScoredSearch:
    """All scores ``terms[j] - slope · d(queries[i], points[j])² + of_rows([i])[0, j]``, in blocks: what a decoder makes
    of a node's links that goes by more than their distance. ``queries`` are of the kind of ``vectors.points``.
    """

    kind: Kind = "exact"

    def __init__(
        self,
        vectors: Vectors,
        queries: torch.Tensor,
        terms: torch.Tensor,
        slope: float,
        euclidean: bool = False,
        of_rows: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None = None,
    ) -> None:
        self._points = vectors.points
        self._queries = queries
        self._terms = terms
        self._of_rows = of_rows
        self._slope = slope
        self._euclidean = euclidean

    def search(self, nodes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """For each node, ``count`` points of the highest scores."""
        rows = max(1, _PRODUCTS // len(self._points))
        parts = torch.from_numpy(nodes).split(rows)
        return torch.cat([self._scores(part).topk(min(count, len(self._points))).indices for part in parts]).numpy()

    def _scores(self, nodes: torch.Tensor) -> torch.Tensor:
        scores = self._terms - self._slope * self._squares(self._queries[nodes])
        return scores if self._of_rows is None else scores.add_(torch.from_numpy(self._of_rows(nodes.numpy())))

    def _squares(self, queries: torch.Tensor) -> torch.Tensor:
        if self._euclidean:
            return torch.cdist(queries, self._points).square_()
        products = queries[:, :1] * self._points[:, 0] - queries[:, 1:] @ self._points[:, 1:].mT
        return products.clamp_min_(1).acosh_().square_()


class FaissSearch:
    """An index of FAISS. A ``width`` above 1 looks at so many times as many points, which takes longer and misses
    fewer.
    """

    def __init__(self, index: Any, kind: Kind, queries: NDArray[np.float32], width: int = 1) -> None:
        self.index = index
        self.kind = kind
        self.width = width
        self._queries = queries

    def search(self, nodes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        count = min(count, self.index.ntotal)
        if self.kind == "hnsw":
            self.index.hnsw.efSearch = self.width * max(_SEARCH_WIDTH, 2 * count)
        else:
            self.index.nprobe = min(self.index.nlist, self.width * max(1, self.index.nlist // _SHARE_OF_CELLS))
        found: NDArray[np.int64] = self.index.search(self._queries[nodes], count)[1]
        return found


class WidenedSearch:
    """What another search finds near a node, four times as many as are asked for, the points of the highest terms in
    the whole graph, which a decoder may prefer from afar, and what ``two_hops`` gives. All are as many times more as
    the other search is wide.
    """

    def __init__(
        self,
        search: FaissSearch,
        terms: NDArray[np.float64],
        two_hops: Callable[[NDArray[np.int64], int], NDArray[np.int64]] | None = None,
    ) -> None:
        self.kind = search.kind
        self.nearest = search
        self._two_hops = two_hops
        self._by_terms = np.argsort(-terms, kind="stable")

    def search(self, nodes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """For each node, at least ``count`` different points; -1 where there is none."""
        count *= 4 * self.nearest.width
        popular = self._by_terms[: POPULAR * self.nearest.width]
        parts = [self.nearest.search(nodes, count), np.broadcast_to(popular, (len(nodes), len(popular)))]
        if self._two_hops is not None:
            parts.append(self._two_hops(nodes, count))
        found = np.sort(np.hstack(parts), axis=1)
        found[:, 1:][found[:, 1:] == found[:, :-1]] = -1
        return found


def build_search(vectors: Vectors, kind: str) -> ExactSearch | FaissSearch:
    """A search of this kind over the points."""
    if kind not in get_args(Kind):
        raise DataError(f"index={kind!r} is not known; use one of {', '.join(get_args(Kind))}")
    if kind == "exact":
        return ExactSearch(vectors)
    built = _build_hnsw(vectors) if kind == "hnsw" else _build_ivf(vectors)
    return FaissSearch(built, kind, vectors.queries)  # type: ignore[arg-type]


def load_faiss() -> Any:
    """FAISS, which is an extra."""
    try:
        return importlib.import_module("faiss")
    except ImportError:
        raise DataError("an index needs FAISS; pip install 'h2hgcn[scale]', or search with --index exact") from None


def _build_hnsw(vectors: Vectors) -> Any:
    faiss = load_faiss()
    graph = faiss.IndexHNSWFlat(vectors.places.shape[1], _LINKS)
    graph.hnsw.efConstruction = _BUILD_WIDTH
    graph.add(vectors.places)
    index = faiss.IndexHNSWFlat(vectors.data.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw = graph.hnsw
    index.hnsw.is_similarity = True
    index.storage.add(vectors.data)
    index.ntotal = len(vectors.data)
    return index


def _build_ivf(vectors: Vectors) -> Any:
    """Cells of the inner-product form."""
    faiss = load_faiss()
    cells = max(1, min(int(4 * len(vectors.data) ** 0.5), len(vectors.data) // 39))
    index = faiss.index_factory(vectors.data.shape[1], f"IVF{cells},Flat", faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = 1  # or FAISS prints a warning for small graphs
    index.train(vectors.data)
    index.add(vectors.data)
    return index


def _single(x: torch.Tensor) -> NDArray[np.float32]:
    return np.ascontiguousarray(x.float().numpy())


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
