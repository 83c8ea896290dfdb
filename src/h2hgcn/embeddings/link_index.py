"""Nearest points of many: an inner-product search, exact or by an index of FAISS.

Order by distance is order by inner product: on the hyperboloid, of ``(t, s)`` with ``(-t, s)``; of vectors, of
``(x, |x|²/2)`` with ``(x, -1)``. The graph of an HNSW index is made in the Poincaré ball, whose distances tell who is
near whom, and then searched by inner products of Lorentz points.
"""

import hashlib
import importlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from h2hgcn.embeddings.coordinates import check_coordinates, check_points, lorentz_tensor
from h2hgcn.errors import DataError

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
    index.train(vectors.data)
    index.add(vectors.data)
    return index


def _single(x: torch.Tensor) -> NDArray[np.float32]:
    return np.ascontiguousarray(x.float().numpy())
