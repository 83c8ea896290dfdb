"""The likeliest links of a whole graph: the pairs of nodes with the highest scores, by exact search.

All pairs are looked at, in blocks of rows, but few are scored: an upper bound, which takes an inner product, rules out
those that cannot be among the best of what was found before.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.datasets import EdgeSplit
from h2hgcn.datasets.pairs import Pairs, PairSpace, contains, distinct_pairs
from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import INNER_PRODUCT_STEPS
from h2hgcn.jit import compiled, run_on_rows
from h2hgcn.kernels.distances import squared_distances_of_rows
from h2hgcn.layers.spaces import Space, as_lorentz
from h2hgcn.tasks.metrics import Metrics, Scores
from h2hgcn.tasks.neighborhoods import Neighborhoods, shared_neighbors

Nodes = NDArray[np.int64]

# Inner products, and paths of two steps, that are held at once.
_BLOCK = 1 << 22

# Pairs that are collected before they are sorted.
_PENDING = 1 << 16

# Scores that differ by less than this are taken for rounded ones of the same pair.
_ROUNDING = 1e-9

# Precision is that of so many pairs, and is measured on graphs of up to so many nodes, where it takes seconds.
_K_OF_PRECISION, _MOST_NODES = 100, 20_000


class LinkSearch(NamedTuple):
    """The logit of a link between node ``i`` and another ``j`` is ``terms[j] - slope · d(queries[i], points[j])²``,
    plus ``of_rows([i])[0, j]`` if that is there, and a number that all links of ``i`` share. ``d`` is the distance at
    curvature -1. ``two_hops`` gives others that a node shares neighbors with.
    """

    queries: Tensor
    terms: Tensor
    slope: float
    of_rows: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None = None
    two_hops: Callable[[NDArray[np.int64], int], NDArray[np.int64]] | None = None


class LinkScores:
    """``sources[i] + targets[j] - slope · d(queries[i], points[j])² + <weights, log(1 + s)>`` of all pairs of nodes.

    ``s`` are the sums over shared neighbors that ``Neighborhoods.features`` has. ``d`` is the distance at curvature -1.
    That is the logit of a link but for a constant (see ``LinkHead.pair_scores``).

    Args:
        sources, targets: Terms of the nodes ``(n,)``.
        points, queries: Of ``space``, ``(n, ...)``; without points the distance counts for nothing.
        slope: Not negative.
        graph, weights: Who shares neighbors, and the weights ``(3,)`` of the sums.
    """

    def __init__(
        self,
        sources: Scores,
        targets: Scores,
        points: Tensor | None = None,
        queries: Tensor | None = None,
        space: Space = "lorentz",
        slope: float = 1.0,
        graph: Neighborhoods | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.sources, self.targets = (np.ascontiguousarray(terms, np.float64) for terms in (sources, targets))
        self.num_nodes = len(self.sources)
        self.slope = 0.0 if points is None else slope
        self.euclidean = space == "euclidean"
        self.graph = graph
        self.weights = np.zeros(3) if weights is None else weights[:3].astype(np.float64)
        if points is None:
            points = torch.zeros(self.num_nodes, 1)
            self.euclidean = True
        own = _lifted(points, space, self.euclidean)
        asked = own if queries is None or queries is points else _lifted(queries, space, self.euclidean)
        self._moved = asked is not own
        self._rows = torch.cat([asked, own]) if self._moved else own
        # nearness is an inner product, whose rounding grows with the sizes of both
        if self.euclidean:
            squares, theirs = asked.square().sum(1), own.square().sum(1, keepdim=True)
            self._queries = torch.cat([asked, -torch.ones_like(asked[:, :1])], 1)
            self._points = torch.cat([own, 0.5 * theirs], 1)
            self._squares = squares.numpy()
            self._sizes = (1 + squares).numpy(), (1 + theirs[:, 0]).numpy()
        else:
            self._queries = torch.cat([-asked[:, :1], asked[:, 1:]], 1)
            self._points = own
            self._squares = np.zeros(self.num_nodes)
            self._sizes = asked[:, 0].numpy().copy(), own[:, 0].numpy().copy()
        self._rounding = (INNER_PRODUCT_STEPS + self._points.shape[1]) * np.finfo(np.float64).eps

    def of(self, pairs: Pairs) -> Scores:
        """The scores of pairs ``(k, 2)``, source first."""
        total: Scores = self.sources[pairs[:, 0]] + self.targets[pairs[:, 1]]
        if self.slope:
            total -= self.slope * self.squared_distances(pairs)
        if self.graph is not None:
            sums = shared_neighbors(self.graph.graph, self.graph.weights, pairs)
            total += np.log1p(sums.round(12)) @ self.weights  # the order of a sum must not part what is equal
        return total

    def squared_distances(self, pairs: Pairs) -> Scores:
        """Of the queries of sources to the points of targets."""
        ends = torch.from_numpy(pairs + np.array([0, self.num_nodes * self._moved]))
        if self.euclidean:
            found = (self._rows[ends[:, 0]] - self._rows[ends[:, 1]]).square().sum(1)
        else:
            with torch.no_grad():
                found = squared_distances_of_rows(self._rows, ends)
        return found.double().numpy()

    def near(self, rows: Nodes, columns: Nodes | slice, least: float, upper: bool = False) -> Pairs:
        """All pairs of different nodes of ``rows`` and ``columns`` whose score without shared neighbors may be
        ``least`` or more; with ``upper`` those whose second number is the larger one.
        """
        numbers = np.arange(self.num_nodes)[columns]
        products = (self._queries[torch.from_numpy(rows)] @ self._points[columns].mT).numpy()
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            farthest = (self.sources[rows] + self.targets[numbers].max() - least + _ROUNDING) / self.slope
            limits = 0.5 * (self._squares[rows] - farthest) if self.euclidean else -np.cosh(np.sqrt(farthest))
        limits[~(farthest >= 0)] = np.inf
        run_on_rows(
            _bound_products, products.shape, products, rows, numbers, self.sources[rows], self.targets[numbers],
            self._squares[rows], self._sizes[0][rows], self._sizes[1][numbers], limits, self._rounding, self.slope,
            least - _ROUNDING, self.euclidean, upper,
        )  # fmt: skip
        first, second = np.nonzero(products > -np.inf)
        return np.column_stack([rows[first], numbers[second]])

    def near_popular(self, count: int, least: Callable[[], float], directed: bool) -> Iterator[Pairs]:
        """Blocks of pairs, as ``near`` has them, one of whose nodes is among the ``count`` with the highest terms."""
        for rows in _blocks(highest(self.sources, count), self.num_nodes):
            yield self.near(rows, slice(None), least())
        if directed:
            targets = highest(self.targets, count)
            for rows in _blocks(np.arange(self.num_nodes), len(targets)):
                yield self.near(rows, targets, least())

    def sharing(self, rows: Nodes, least: float, upper: bool = False, most: int | None = None) -> Pairs:
        """All pairs of ``rows`` and others that they share neighbors with whose score may be ``least`` or more; with
        ``upper`` as in ``near``. Neighbors with a degree above ``most`` count for nothing.
        """
        assert self.graph is not None
        graph, most = self.graph.graph, self.num_nodes if most is None else most
        paths = np.minimum(self._paths(most)[rows], self.num_nodes)
        places = np.concatenate([np.zeros(1, np.int64), np.cumsum(paths)])
        found = np.full(places[-1], -1, np.int64)
        run_on_rows(
            _find_sharing, (len(rows), max(1, len(found) // max(len(rows), 1))), rows, places, graph.indptr,
            graph.indices, most, self.graph.weights, self.weights, self.sources, self.targets, self._queries.numpy(),
            self._points.numpy(), self._squares, self._sizes[0], self._sizes[1], self._rounding, self.slope,
            least - _ROUNDING, self.euclidean, upper, found,
        )  # fmt: skip
        pairs = np.column_stack([np.repeat(rows, paths), found])
        return pairs[found >= 0]

    def sharing_blocks(self, most: int | None = None) -> list[Nodes]:
        """All nodes in blocks for ``sharing``, of about as many paths each."""
        ends = np.cumsum(np.minimum(self._paths(self.num_nodes if most is None else most), self.num_nodes))
        return [block for block in np.split(np.arange(self.num_nodes), _cuts(ends)) if len(block)]

    def _paths(self, most: int) -> Nodes:
        """Paths of two steps that begin at each node."""
        assert self.graph is not None
        degrees = np.diff(self.graph.graph.indptr).astype(np.float64)
        return (self.graph.graph @ np.where(degrees <= most, degrees, 0)).astype(np.int64)

    def share_neighbors(self, pairs: Pairs) -> NDArray[np.bool_]:
        if self.graph is None:
            return np.zeros(len(pairs), dtype=bool)
        return shared_neighbors(self.graph.graph, self.graph.weights[:, :1], pairs)[:, 0] > 0


class BestPairs:
    """The ``k`` pairs of the highest scores among those that are added, without ``known`` ones and each once; of equal
    scores the first by number.
    """

    def __init__(self, scores: LinkScores, space: PairSpace, known: Pairs, k: int) -> None:
        self._of, self._space, self._k = scores, space, k
        self._known = np.sort(space.ranks(known))
        self._ranks = np.empty(0, np.int64)
        self._scores = np.empty(0)
        self._pending: list[tuple[Nodes, Scores]] = []
        self._count = 0
        self.least = -np.inf
        self.tied = 0  # pairs that are left out although their score is that of the last one

    @property
    def available(self) -> int:
        """How many pairs there are that are not known."""
        return len(self._space) - len(self._known)

    def add(self, pairs: Pairs) -> None:
        """Adds pairs that lie in the space. They must be new unless ``tied`` does not matter."""
        ranks = self._space.ranks(pairs)
        pairs = pairs[~contains(self._known, ranks)]
        scores = self._of.of(pairs)
        ranks, scores = self._space.ranks(pairs)[scores >= self.least], scores[scores >= self.least]
        self._pending.append((ranks, scores))
        self._count += len(ranks)
        if self._count >= max(_PENDING, self._k) or self.least == -np.inf:
            self._settle()

    def found(self) -> tuple[Pairs, Scores]:
        """The pairs, the highest score first, and their scores."""
        self._settle()
        return self._space.pairs(self._ranks), self._scores

    def _settle(self) -> None:
        ranks = np.concatenate([self._ranks, *(part for part, _ in self._pending)])
        scores = np.concatenate([self._scores, *(part for _, part in self._pending)])
        self._pending, self._count = [], 0
        ranks, first = np.unique(ranks, return_index=True)
        scores = scores[first]
        order = np.argsort(-scores, kind="stable")
        ranks, scores = ranks[order], scores[order]
        if len(ranks) >= self._k:
            last = scores[self._k - 1]
            left_out = int((scores[self._k :] == last).sum())
            self.tied = left_out + (self.tied if last == self.least else 0)
            self.least = float(last)
        self._ranks, self._scores = ranks[: self._k], scores[: self._k]


def best_pairs(
    scores: LinkScores,
    known: Pairs,
    k: int,
    directed: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> BestPairs:
    """The ``k`` pairs of the highest scores that are not ``known``; unordered pairs unless ``directed``."""
    space = PairSpace(scores.num_nodes, directed)
    best = BestPairs(scores, space, distinct_pairs(space, known), k)
    if scores.graph is not None:
        for rows in scores.sharing_blocks():
            best.add(scores.sharing(rows, best.least, not directed))
    if scores.slope:
        done = 0
        # a small block first, since nothing is ruled out yet
        start = -(-max(_PENDING, k) // scores.num_nodes)
        everybody = np.arange(scores.num_nodes)
        for rows in [everybody[:start], *_blocks(everybody[start:], scores.num_nodes)]:
            pairs = scores.near(rows, slice(0 if directed else int(rows[0]), None), best.least, not directed)
            best.add(pairs[~scores.share_neighbors(pairs)])  # those that do are there
            done += len(rows)
            progress(done, scores.num_nodes)
    return best


def precision_of(scores: LinkScores, split: EdgeSplit, part: str = "test") -> Metrics:
    """``precision@100``: the share of held-out links among the 100 pairs of the highest scores, of all pairs that are
    links of no earlier part; ``precision@K`` if only K links are held out. Where several pairs have the score of the
    last one, the mean over their orders. Nothing for graphs of more than 20,000 nodes.

    Scores without points are those of pairs that share neighbors; those of all others are 0.
    """
    space, links = PairSpace(split.num_nodes, split.directed), getattr(split, part)
    links = distinct_pairs(space, links)
    k = min(_K_OF_PRECISION, len(links))
    if split.num_nodes > _MOST_NODES or not k:
        return {}
    known = np.concatenate([split.train] if part == "val" else [split.train, split.val])
    best = best_pairs(scores, known, k, split.directed)
    pairs, found = best.found()
    wanted, of_links = np.sort(space.ranks(links)), scores.of(links)
    if len(found) < k:  # all others are equal
        last, above, equal = 0.0, len(found), best.available - len(found)
    else:
        last, above = best.least, int((found > best.least).sum())
        equal = len(found) - above + best.tied
    hits = contains(wanted, space.ranks(pairs[:above])).sum()
    share = (of_links == last).sum() / max(equal, 1)
    return {f"precision@{k}": float((hits + (k - above) * share) / k)}


def highest(terms: Scores, count: int) -> Nodes:
    """The nodes of the highest terms, sorted by number."""
    return np.sort(np.argsort(-terms, kind="stable")[:count])


def _lifted(points: Tensor, space: Space, euclidean: bool) -> Tensor:
    points = points.detach().cpu().double()
    return points if euclidean else lorentz.project(as_lorentz(points, space))


def _blocks(nodes: Nodes, width: int) -> list[Nodes]:
    size = max(1, _BLOCK // max(width, 1))
    return [nodes[first : first + size] for first in range(0, len(nodes), size)]


def _cuts(ends: Nodes) -> Nodes:
    """Where to cut rows, whose numbers of entries end at ``ends``, into blocks."""
    return np.unique(np.searchsorted(ends, np.arange(_BLOCK, ends[-1], _BLOCK))) if len(ends) else ends


@compiled
def _bound_products(
    first: int, last: int, products: Any, rows: Any, columns: Any, sources: Any, targets: Any, squares: Any, sizes: Any,
    others: Any, limits: Any, rounding: float, slope: float, least: float, euclidean: bool, upper: bool,
) -> None:  # fmt: skip
    """Replaces inner products by upper bounds of scores, and by -inf where these are below ``least``."""
    for r in range(first, last):
        row, limit, error = rows[r], limits[r], rounding * sizes[r]
        for c in range(len(columns)):
            product = products[r, c] + error * others[c]
            products[r, c] = -np.inf
            if product < limit or columns[c] == row or (upper and columns[c] < row):
                continue
            if euclidean:
                square = max(squares[r] - 2 * product, 0.0)
            else:
                distance = np.arccosh(max(-product, 1.0))
                square = distance * distance
            bound = sources[r] + targets[c] - slope * square
            if bound >= least:
                products[r, c] = bound


@compiled
def _find_sharing(
    first: int, last: int, rows: Any, places: Any, starts: Any, neighbors: Any, most: int, counts: Any, weights: Any,
    sources: Any, targets: Any, queries: Any, points: Any, squares: Any, sizes: Any, others: Any, rounding: float,
    slope: float, least: float, euclidean: bool, upper: bool, found: Any,
) -> None:  # fmt: skip
    """Sums over the neighbors of a row's neighbors, and writes those whose scores may be ``least`` or more."""
    sums = np.zeros((len(sources), 3))
    touched = np.empty(len(sources), np.int64)
    for r in range(first, last):
        row, count, place = rows[r], 0, places[r]
        for step in range(starts[row], starts[row + 1]):
            middle = neighbors[step]
            if starts[middle + 1] - starts[middle] > most:
                continue
            for end in range(starts[middle], starts[middle + 1]):
                other = neighbors[end]
                if other == row or (upper and other < row):
                    continue
                if sums[other, 0] == 0:
                    touched[count] = other
                    count += 1
                for kind in range(3):
                    sums[other, kind] += counts[middle, kind]
        for k in range(count):
            other = touched[k]
            bound = sources[row] + targets[other]
            for kind in range(3):
                bound += weights[kind] * np.log1p(sums[other, kind])
                sums[other, kind] = 0.0
            if bound >= least and slope > 0:  # the distance only takes away
                product = rounding * sizes[row] * others[other]
                for axis in range(queries.shape[1]):
                    product += queries[row, axis] * points[other, axis]
                if euclidean:
                    square = max(squares[row] - 2 * product, 0.0)
                else:
                    distance = np.arccosh(max(-product, 1.0))
                    square = distance * distance
                bound -= slope * square
            if bound >= least:
                found[place] = other
                place += 1
