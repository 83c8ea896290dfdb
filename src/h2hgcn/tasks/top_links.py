"""The likeliest links of a whole graph: the pairs of nodes with the highest scores, by exact search.

All pairs are looked at, in blocks of rows, but few are scored: an upper bound, which takes an inner product, rules out
those that cannot be among the best of what was found before.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.datasets import EdgeSplit
from h2hgcn.datasets.pairs import Pairs, PairSpace, contains, distinct_pairs
from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import INNER_PRODUCT_STEPS
from h2hgcn.kernels.distances import squared_distances_of_rows
from h2hgcn.layers.spaces import Space, as_lorentz
from h2hgcn.tasks.metrics import Metrics, Scores
from h2hgcn.tasks.neighborhoods import Neighborhoods, shared_neighbors

Nodes = NDArray[np.int64]

# Inner products, and paths of two steps, that are held at once. Pairs that are collected before they are sorted.
_BLOCK, _PENDING = 1 << 22, 1 << 16

# Scores that differ by less than this are taken for rounded ones of the same pair.
_ROUNDING = 1e-9

# Precision is that of so many pairs, and is measured on graphs of up to so many nodes, where it takes seconds.
_K_OF_PRECISION, _MOST_NODES = 100, 20_000


class LinkSearch(NamedTuple):
    """The logit of a link between node ``i`` and another ``j`` is the largest over ``p`` of ``own[p, i] + terms[p, j] -
    slopes[p] · d(queries[i], points[j])²``, plus ``of_rows([i])[p, 0, j]`` if that is there. ``d`` is the distance at
    curvature -1. ``two_hops`` gives others that a node shares neighbors with.
    """

    queries: Tensor
    own: NDArray[np.float64]
    terms: NDArray[np.float64]
    slopes: NDArray[np.float64]
    of_rows: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None = None
    two_hops: Callable[[NDArray[np.int64], int], NDArray[np.int64]] | None = None


class LinkScores:
    """Of all pairs of nodes the largest over ``p`` of ``sources[p, i] + targets[p, j] - slopes[p] · d(queries[i],
    points[j])² + <weights[p], log(1 + s)>``, which is the logit of a link (see ``LinkHead.pair_scores``).

    ``s`` are the sums over shared neighbors that ``Neighborhoods.features`` has. ``d`` is the distance at curvature -1.

    Args:
        sources, targets: Terms of the nodes, ``(p, n)`` or ``(n,)``.
        points, queries: Of ``space``, ``(n, ...)``; without points the distance counts for nothing.
        slopes: ``(p,)`` or one for all, positive.
        graph, weights: Who shares neighbors, and the weights of the sums, ``(p, 3)`` or ``(3,)``.
    """

    def __init__(
        self,
        sources: NDArray[np.float64],
        targets: NDArray[np.float64],
        points: Tensor | None = None,
        queries: Tensor | None = None,
        space: Space = "lorentz",
        slopes: Scores | float = 1.0,
        graph: Neighborhoods | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        self.sources, self.targets = (np.atleast_2d(terms).astype(np.float64) for terms in (sources, targets))
        self.num_nodes = self.sources.shape[1]
        self.slopes = np.zeros((1, 1)) if points is None else np.reshape(slopes, (-1, 1))
        self.graph = graph
        self.weights = np.zeros((1, 3)) if weights is None else np.atleast_2d(weights)[:, :3].astype(np.float64)
        self.euclidean = points is None or space == "euclidean"
        points = torch.zeros(self.num_nodes, 1) if points is None else points
        queries = points if queries is None else queries
        own = self._lifted(points, space)
        asked = own if queries is points else self._lifted(queries, space)
        self._rows = own if asked is own else torch.cat([asked, own])
        self._offset = len(self._rows) - self.num_nodes
        # nearness is an inner product; its last axis adds the most that rounding can take away, which grows with the
        # sizes of both points
        squares = torch.zeros(self.num_nodes, dtype=torch.float64)
        if self.euclidean:
            squares, half = asked.square().sum(1), 0.5 * own.square().sum(1, keepdim=True)
            left, right = torch.cat([asked, -torch.ones_like(half)], 1), torch.cat([own, half], 1)
            sizes = 1 + squares[:, None], 1 + 2 * half
        else:
            left, right = torch.cat([-asked[:, :1], asked[:, 1:]], 1), own
            sizes = asked[:, :1], own[:, :1]
        rounding = (INNER_PRODUCT_STEPS + 1 + right.shape[1]) * torch.finfo(torch.float64).eps
        self._queries, self._points = torch.cat([left, rounding * sizes[0]], 1), torch.cat([right, sizes[1]], 1)
        self._squares = squares.numpy()

    def _lifted(self, points: Tensor, space: Space) -> Tensor:
        points = points.detach().cpu().double()
        return points if self.euclidean else lorentz.project(as_lorentz(points, space))

    def of(self, pairs: Pairs) -> Scores:
        """The scores of pairs ``(k, 2)``, source first."""
        total = self._terms(pairs)
        if self.slopes.any():
            total -= self.slopes * self.squared_distances(pairs)
        if self.graph is not None:
            sums = shared_neighbors(self.graph.graph, self.graph.weights, pairs)
            total += self.weights @ np.log1p(sums.round(12)).T  # the order of a sum must not part what is equal
        scores: Scores = total.max(0)
        return scores

    def _terms(self, pairs: Pairs) -> NDArray[np.float64]:
        return self.sources[:, pairs[:, 0]] + self.targets[:, pairs[:, 1]]

    def squared_distances(self, pairs: Pairs) -> Scores:
        """Of the queries of sources to the points of targets."""
        ends = torch.from_numpy(pairs + np.array([0, self._offset]))
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
            terms = self.sources[:, rows] + self.targets[:, numbers].max(1, keepdims=True)
            farthest = ((terms - least + _ROUNDING) / self.slopes).max(0)
            limits = 0.5 * (self._squares[rows] - farthest) if self.euclidean else -np.cosh(np.sqrt(farthest))
        limits[~(farthest >= 0)] = np.inf
        first, second = np.nonzero(products >= limits[:, None])
        pairs, products = np.column_stack([rows[first], numbers[second]]), products[first, second]
        bounds = self._bounds(pairs, products, self._terms(pairs))
        return pairs[(bounds >= least - _ROUNDING) & _wanted(pairs, upper)]

    def _bounds(self, pairs: Pairs, products: Scores, terms: NDArray[np.float64]) -> Scores:
        """The highest scores that inner products allow, ``terms`` being all but the distance."""
        if self.euclidean:
            squares = (self._squares[pairs[:, 0]] - 2 * products).clip(0)
        else:
            squares = np.arccosh((-products).clip(1)) ** 2
        bounds: Scores = (terms - self.slopes * squares).max(0)
        return bounds

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
        degrees = np.diff(graph.indptr)
        between = graph[rows] * ((degrees > 1) & (degrees <= most)).astype(np.float64)  # degree 1 only leads back
        between.eliminate_zeros()
        counts = (between @ graph).tocoo()
        pairs = np.column_stack([rows[counts.coords[0]], counts.coords[1]])
        bounds = self._terms(pairs) + self.weights[:, :1] * np.log1p(counts.data)
        for kind in np.flatnonzero(self.weights[:, 1:].any(0)) + 1:
            sums = (between * self.graph.weights[:, kind]).tocsr() @ graph  # the same entries in the same order
            bounds += self.weights[:, kind : kind + 1] * np.log1p(sums.data)
        kept = (bounds.max(0) >= least - _ROUNDING) & _wanted(pairs, upper)  # the distance only takes away
        pairs, bounds = pairs[kept], bounds[:, kept]
        if not self.slopes.any():
            return pairs
        parts = np.array_split(pairs, 1 + len(pairs) // _PENDING)  # of all at once, coordinates take gigabytes
        products = [(self._queries[part[:, 0]] * self._points[part[:, 1]]).sum(1).numpy() for part in parts]
        return pairs[self._bounds(pairs, np.concatenate(products), bounds) >= least - _ROUNDING]

    def sharing_blocks(self, most: int | None = None) -> list[Nodes]:
        """All nodes in blocks for ``sharing``, of about as many paths each."""
        ends = np.cumsum(np.minimum(self._paths(self.num_nodes if most is None else most), self.num_nodes))
        cuts = np.unique(np.searchsorted(ends, np.arange(_BLOCK, ends[-1], _BLOCK)))
        return [block for block in np.split(np.arange(self.num_nodes), cuts) if len(block)]

    def _paths(self, most: int) -> Nodes:
        """Paths of two steps that begin at each node."""
        assert self.graph is not None
        degrees = np.diff(self.graph.graph.indptr).astype(np.float64)
        return (self.graph.graph @ np.where(degrees <= most, degrees, 0)).astype(np.int64)


class BestPairs:
    """The ``k`` pairs of the highest scores among those that are added, without ``known`` ones and each once; of equal
    scores the first by number. ``tied`` pairs are left out although their score is that of the last one, ``least``.
    """

    def __init__(self, scores: LinkScores, space: PairSpace, known: Pairs, k: int) -> None:
        self._of, self._space, self._k = scores, space, k
        self._known = np.sort(space.ranks(known))
        self._parts: list[tuple[Nodes, Scores]] = [(np.empty(0, np.int64), np.empty(0))]  # the first is sorted
        self.least = -np.inf
        self.tied = 0

    @property
    def available(self) -> int:
        """How many pairs there are that are not known."""
        return len(self._space) - len(self._known)

    def add(self, pairs: Pairs) -> None:
        """Adds pairs that lie in the space. They must be new unless ``tied`` does not matter."""
        ranks = self._space.ranks(pairs)
        is_new = ~contains(self._known, ranks)
        ranks, scores = ranks[is_new], self._of.of(pairs[is_new])
        self._parts.append((ranks[scores >= self.least], scores[scores >= self.least]))
        if sum(len(part) for part, _ in self._parts[1:]) >= max(_PENDING, self._k) or self.least == -np.inf:
            self._settle()

    def found(self) -> tuple[Pairs, Scores]:
        """The pairs, the highest score first, and their scores."""
        ranks, scores = self._settle()
        return self._space.pairs(ranks), scores

    def _settle(self) -> tuple[Nodes, Scores]:
        ranks, scores = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        ranks, first = np.unique(ranks, return_index=True)
        order = np.argsort(-scores[first], kind="stable")
        ranks, scores = ranks[order], scores[first][order]
        if len(ranks) >= self._k:
            last = scores[self._k - 1]
            left_out = int((scores[self._k :] == last).sum())
            self.tied = left_out + (self.tied if last == self.least else 0)
            self.least = float(last)
        self._parts = [(ranks[: self._k], scores[: self._k])]
        return self._parts[0]


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
    if scores.slopes.any():
        done = 0
        # a small block first, since nothing is ruled out yet
        start = -(-max(_PENDING, k) // scores.num_nodes)
        everybody = np.arange(scores.num_nodes)
        for rows in [everybody[:start], *_blocks(everybody[start:], scores.num_nodes)]:
            pairs = scores.near(rows, slice(0 if directed else int(rows[0]), None), best.least, not directed)
            if scores.graph is not None:  # those that share neighbors are there
                graph = scores.graph
                pairs = pairs[shared_neighbors(graph.graph, graph.weights[:, :1], pairs)[:, 0] == 0]
            best.add(pairs)
            done += len(rows)
            progress(done, scores.num_nodes)
    return best


def precision_of(scores: LinkScores, split: EdgeSplit, part: str = "test") -> Metrics:
    """``precision@100``: the share of held-out links among the 100 pairs of the highest scores, of all pairs that are
    links of no earlier part; ``precision@K`` if only K links are held out. Where several pairs have the score of the
    last one, the mean over their orders. Nothing for graphs of more than 20,000 nodes.

    Scores without points are those of pairs that share neighbors; those of all others are 0.
    """
    space = PairSpace(split.num_nodes, split.directed)
    links = distinct_pairs(space, getattr(split, part))
    k = min(_K_OF_PRECISION, len(links))
    if split.num_nodes > _MOST_NODES or not k:
        return {}
    known = np.concatenate([split.train] if part == "val" else [split.train, split.val])
    best = best_pairs(scores, known, k, split.directed)
    pairs, found = best.found()
    if len(found) < k:  # all others are equal
        last, above, equal = 0.0, len(found), best.available - len(found)
    else:
        last, above = best.least, int((found > best.least).sum())
        equal = len(found) - above + best.tied
    hits = contains(np.sort(space.ranks(links)), space.ranks(pairs[:above])).sum()
    share = (scores.of(links) == last).sum() / max(equal, 1)
    return {f"precision@{k}": float((hits + (k - above) * share) / k)}


def highest(terms: NDArray[np.float64], count: int) -> Nodes:
    """The nodes of the highest terms of each row, sorted by number."""
    return np.unique(np.argsort(-terms, axis=1, kind="stable")[:, :count])


def _blocks(nodes: Nodes, width: int) -> list[Nodes]:
    size = max(1, _BLOCK // max(width, 1))
    return [nodes[first : first + size] for first in range(0, len(nodes), size)]


def _wanted(pairs: Pairs, upper: bool) -> NDArray[np.bool_]:
    """Whether a pair is of two nodes, and with ``upper`` has the larger one second."""
    return pairs[:, 0] < pairs[:, 1] if upper else pairs[:, 0] != pairs[:, 1]
