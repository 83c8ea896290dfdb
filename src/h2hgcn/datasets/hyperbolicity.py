"""Gromov δ-hyperbolicity: how far a graph's distances are from those of a tree."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.shape import Components, SimpleGraph, blocks, connected_components, double_sweep, induced, walk
from h2hgcn.jit import compiled

MOST_QUADRUPLES = 1_000_000


class Spread(NamedTuple):
    """Of many quadruples: the mean δ with its standard error, and how many have δ = 0, ½, 1, …"""

    mean: float | None
    error: float | None
    histogram: tuple[int, ...]
    quadruples: int
    every_one: bool

    @property
    def twice_delta(self) -> int:
        """The largest 2δ seen."""
        return max(len(self.histogram) - 1, 0)


def spread_of_delta(distances: NDArray[np.int32], population: int, random: np.random.Generator) -> Spread:
    """The spread over quadruples of the sampled nodes whose distances ``(k, k)`` are given, of ``population`` nodes.

    Quadruples that share a node are not independent, so the error is the jackknife's, which leaves out one node at a
    time (Arvesen 1969); where all nodes were taken, only the drawing of quadruples is left of it.
    """
    sampled = len(distances)
    if sampled < 4:
        return Spread(None, None, (), 0, sampled == population)
    every_one = math.comb(sampled, 4) <= MOST_QUADRUPLES
    nodes = _all_quadruples(sampled) if every_one else _random_quadruples(sampled, random)
    twice = twice_delta_of(distances, nodes)
    variance = 0.0 if every_one else float(twice.var()) / len(twice)
    if sampled < population:
        variance += (1 - sampled / population) * _jackknife_variance(twice, nodes, sampled)
    histogram = tuple(np.bincount(twice).tolist())
    exhaustive = every_one and sampled == population
    return Spread(float(twice.mean()) / 2, math.sqrt(variance) / 2, histogram, len(twice), exhaustive)


def twice_delta_of(distances: NDArray[np.int32], nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """The difference of the two largest of the three sums, for each row of four nodes."""
    twice = np.empty(len(nodes), np.int32)
    _four_points(distances, nodes, twice)
    return twice


def _all_quadruples(count: int) -> NDArray[np.int32]:
    nodes = np.empty((math.comb(count, 4), 4), np.int32)
    _list_quadruples(count, nodes)
    return nodes


def _random_quadruples(count: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Four different nodes a row; the draws that repeat a node are dropped, so there are a few less than asked for."""
    nodes = random.integers(count, size=(MOST_QUADRUPLES, 4), dtype=np.int32)
    ordered = np.sort(nodes, axis=1)
    return nodes[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]


def _jackknife_variance(values: NDArray[np.int32], nodes: NDArray[np.int32], count: int) -> float:
    sums, sizes = np.zeros(count), np.zeros(count)
    for column in nodes.T:
        sums += np.bincount(column, values, count)
        sizes += np.bincount(column, minlength=count)
    if sizes.max() == len(values):  # four nodes only: nothing is left without one
        return 0.0
    without = (values.sum() - sums) / (len(values) - sizes)
    return float((count - 1) * without.var())


@compiled
def _four_points(distances: Any, nodes: Any, twice: Any) -> None:
    for i in range(len(nodes)):
        a, b, c, d = nodes[i]
        one = distances[a, b] + distances[c, d]
        two = distances[a, c] + distances[b, d]
        three = distances[a, d] + distances[b, c]
        smallest, largest = min(one, two, three), max(one, two, three)
        twice[i] = 2 * largest + smallest - (one + two + three)


@compiled
def _list_quadruples(count: int, nodes: Any) -> None:
    row = 0
    for a in range(count):
        for b in range(a + 1, count):
            for c in range(b + 1, count):
                for d in range(c + 1, count):
                    nodes[row, 0], nodes[row, 1], nodes[row, 2], nodes[row, 3] = a, b, c, d
                    row += 1


# Distances and pairs of a block take up to 30 bytes for every two of its nodes: 0.5 GB here.
LARGEST_BLOCK = 4_000


class Search(NamedTuple):
    """The largest 2δ seen, and whether nothing larger is left."""

    twice_delta: int
    finished: bool


def search_delta(graph: SimpleGraph, at_least: int = 0, budget: int = 1_000_000_000) -> Search:
    """Searches all blocks for a 2δ above ``at_least``, a value known to occur, looking at about ``budget`` numbers."""
    best = at_least
    names = np.full(graph.num_nodes, -1, np.int32)
    for nodes in blocks(graph):
        if len(nodes) // 2 <= best:
            break
        block = induced(graph, nodes, names)
        if block.num_edges == len(nodes) * (len(nodes) - 1) // 2:
            continue
        budget -= len(nodes) * (len(nodes) + 4 * block.num_edges)
        if len(nodes) > LARGEST_BLOCK or budget < 0:
            return Search(best, False)
        best, budget = _search_block(block, best, budget)
        if budget < 0:
            return Search(best, False)
    return Search(best, True)


def _search_block(block: SimpleGraph, best: int, budget: int) -> tuple[int, int]:
    size = block.num_nodes
    distances, _ = walk(block, np.arange(size), size)
    pairs = _far_apart_pairs(block, distances, best)
    room = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(pairs.ravel(), minlength=size))])
    best = _try_middles(distances, pairs, best)
    best, budget = _search_pairs(distances, pairs, room, best, budget)
    return int(best), int(budget)


def _far_apart_pairs(block: SimpleGraph, distances: NDArray[np.int32], best: int) -> NDArray[np.int32]:
    """The far-apart pairs more than ``best`` apart, ``(pairs, 2)``, by decreasing distance."""
    far = np.empty(distances.shape, np.bool_)
    _mark_farthest(block.starts, block.neighbors, distances, far)
    far &= far.T
    far &= distances > best
    first, second = np.nonzero(np.triu(far))
    by_distance = np.argsort(-distances[first, second], kind="stable")
    return np.stack([first[by_distance], second[by_distance]], axis=1).astype(np.int32)


@compiled
def _mark_farthest(starts: Any, neighbors: Any, distances: Any, far: Any) -> None:
    for source in range(len(distances)):
        row = distances[source]
        for node in range(len(row)):
            far[source, node] = True
            for arc in range(starts[node], starts[node + 1]):
                if row[neighbors[arc]] > row[node]:
                    far[source, node] = False
                    break


@compiled
def _search_pairs(distances: Any, pairs: Any, room: Any, best: int, budget: int) -> Any:
    """Tries every pair with the pairs before it, which are kept as lists of partners, ``room`` for each node."""
    size = len(distances)
    partners, lengths = np.empty((2, room[-1]), np.int32)
    ends = room[:-1].copy()
    farthest_partner = np.zeros(size, np.int32)
    useful = np.zeros(size, np.bool_)
    for i in range(len(pairs)):
        x, y = pairs[i]
        from_x, from_y = distances[x], distances[y]
        apart = from_x[y]
        if apart <= best or budget < 0:
            break
        _mark_useful(from_x, from_y, farthest_partner, apart, best, useful)
        budget -= size
        for v in range(size):
            if not useful[v] or ends[v] == room[v]:
                continue
            by_both = (2 * best - apart + from_x[v] + from_y[v]) // 2
            by_farther = best + best // 2 + 1 - apart + max(from_x[v], from_y[v])
            too_near = max(by_both, by_farther)
            for k in range(room[v], ends[v]):
                budget -= 1
                if lengths[k] <= too_near:  # and so is the rest, as partners come by decreasing distance
                    break
                w = partners[k]
                if useful[w]:
                    across = max(from_x[v] + from_y[w], from_x[w] + from_y[v])
                    best = max(best, apart + lengths[k] - across)
        # the larger node of a pair lists the smaller, so that each pair is tried once
        partners[ends[y]], lengths[ends[y]] = x, apart
        ends[y] += 1
        farthest_partner[x], farthest_partner[y] = max(farthest_partner[x], apart), max(farthest_partner[y], apart)
    return best, budget


@compiled
def _mark_useful(from_x: Any, from_y: Any, farthest_partner: Any, apart: int, best: int, useful: Any) -> None:
    """Whether a node can stand in a quadruple better than the best; without branches, for the processor's sake."""
    least_sum, least_far = np.int32(2 * best - apart), np.int32(best + best // 2 + 1 - apart)
    for v in range(len(useful)):
        near, far = min(from_x[v], from_y[v]), max(from_x[v], from_y[v])
        enough = 2 * near > best
        enough &= 2 * farthest_partner[v] - near - far > least_sum
        enough &= farthest_partner[v] - far > least_far  # the partner is more than best/2 from x and y
        useful[v] = enough


@compiled
def _try_middles(distances: Any, pairs: Any, best: int) -> int:
    """A first guess from below: of some pairs, the nodes halfway, of which the best two are likely far apart."""
    size = len(distances)
    middles = np.empty(64, np.int64)
    step = max(len(pairs) // 20_000, 1)
    for i in range(0, len(pairs), step):
        from_x, from_y = distances[pairs[i, 0]], distances[pairs[i, 1]]
        apart = from_x[pairs[i, 1]]
        found = 0
        for k in range(size):
            # begin elsewhere for every pair, or the first nodes alone would be tried
            v = (k + i) % size
            if abs(from_x[v] - from_y[v]) <= 1 and from_x[v] + from_y[v] <= apart + 1:
                middles[found] = v
                found += 1
                if found == len(middles):
                    break
        for v in middles[:found]:
            for w in middles[:found]:
                across = max(from_x[v] + from_y[w], from_x[w] + from_y[v])
                best = max(best, apart + distances[v, w] - across)
    return best


# A traversal touches every node and edge of its component, at a few nanoseconds each: some five seconds on one core.
TRAVERSAL_BUDGET = 1_000_000_000
# Numbers looked at when the largest δ is searched, at a few nanoseconds each.
SEARCH_BUDGET = 1_000_000_000
# All quadruples of 64 nodes are 635,376, enough to see rare ones; more nodes are taken where they cost little.
FEWEST_SOURCES, MOST_SOURCES = 64, 1_000


@dataclass(frozen=True)
class Hyperbolicity:
    """δ and diameter of a graph, the largest over its components. Mean, histogram and mean distance are those of the
    component with most nodes.

    ``histogram[i]`` counts the quadruples with δ = i/2. Unless ``exact``, ``delta`` is the largest seen, a lower bound,
    and with 95 % confidence at most ``share_above`` of the quadruples exceed it (the rule of three, 3/N for N
    quadruples; where they share nodes, N counts those that could be disjoint).

    ``relative`` is 2δ over the diameter, at most 1. ``relative_mean`` and ``relative_spread`` are twice the mean δ over
    the mean and over the standard deviation of the distances.
    """

    delta: float
    exact: bool
    share_above: float | None
    mean: float | None
    mean_error: float | None
    histogram: tuple[int, ...]
    quadruples: int
    sampled_nodes: int
    diameter: int
    diameter_exact: bool
    mean_distance: float | None
    distance_deviation: float | None
    relative: float | None
    relative_mean: float | None
    relative_spread: float | None


def measure_hyperbolicity(
    graph: SimpleGraph, components: Components | None = None, *, seed: int = 0, effort: float = 1.0
) -> Hyperbolicity:
    """δ over all four nodes where the search ends within its budget (``effort`` stretches it), else over a sample."""
    components = components or connected_components(graph)
    random = np.random.default_rng(seed)
    nodes = random.permutation(components.largest())
    sources = nodes[: _affordable_sources(graph, len(nodes), effort)]
    walks = walk(graph, sources, min(len(sources), MOST_SOURCES))
    spread = spread_of_delta(walks.distances, len(nodes), random)
    search = search_delta(graph, spread.twice_delta, int(effort * SEARCH_BUDGET))
    walked = _Longest(int(walks.eccentricities.max(initial=0)), len(sources) == len(nodes))
    diameter = _longest_distance(graph, components, walked, search.twice_delta, effort)
    mean_distance, deviation = _mean_and_deviation(walks.distances)
    delta = search.twice_delta / 2
    return Hyperbolicity(
        delta=delta,
        exact=search.finished,
        share_above=0.0 if search.finished else _share_above(spread, len(walks.distances), len(nodes)),
        mean=spread.mean,
        mean_error=spread.error,
        histogram=spread.histogram,
        quadruples=spread.quadruples,
        sampled_nodes=len(walks.distances),
        diameter=diameter.distance,
        diameter_exact=diameter.exact,
        mean_distance=mean_distance,
        distance_deviation=deviation,
        relative=_twice_over(delta, diameter.distance),
        relative_mean=_twice_over(spread.mean, mean_distance),
        relative_spread=_twice_over(spread.mean, deviation),
    )


class _Longest(NamedTuple):
    """The longest distance seen, and whether there is none longer."""

    distance: int
    exact: bool


def _longest_distance(
    graph: SimpleGraph, components: Components, largest: _Longest, twice_delta: int, effort: float
) -> _Longest:
    """The longest distance within any component, given that within the largest one; 2δ is a bound from below."""
    firsts = np.unique(components.labels, return_index=True)[1]
    seen = max(largest.distance, twice_delta, double_sweep(graph, firsts))
    if graph.num_edges == graph.num_nodes - len(components.sizes):  # a forest, where sweeps are exact
        return _Longest(seen, True)
    could_be_longer = components.sizes > seen + 1
    if len(components.sizes):
        could_be_longer[components.sizes.argmax()] = False
    nodes = np.flatnonzero(could_be_longer[components.labels])
    if len(nodes) * (len(nodes) + 2 * graph.num_edges) > effort * TRAVERSAL_BUDGET:
        return _Longest(seen, False)
    return _Longest(max(seen, int(walk(graph, nodes, 0).eccentricities.max(initial=0))), largest.exact)


def _affordable_sources(graph: SimpleGraph, nodes: int, effort: float) -> int:
    """All nodes where the budget allows, which tells the diameter; else no more than quadruples are drawn from."""
    affordable = int(effort * TRAVERSAL_BUDGET) // max(nodes + 2 * graph.num_edges, 1)
    return nodes if affordable >= nodes else min(nodes, max(FEWEST_SOURCES, min(affordable, MOST_SOURCES)))


def _share_above(spread: Spread, sampled: int, population: int) -> float:
    independent = spread.quadruples if sampled == population else sampled // 4
    return min(3 / max(independent, 1), 1.0)


def _mean_and_deviation(distances: NDArray[np.int32]) -> tuple[float | None, float | None]:
    between = distances[np.triu_indices(len(distances), 1)]
    return (float(between.mean()), float(between.std())) if len(between) else (None, None)


def _twice_over(delta: float | None, scale: float | None) -> float | None:
    return None if delta is None or not scale else 2 * delta / scale
