"""Gromov δ-hyperbolicity: how far a graph's distances are from those of a tree.

Of four nodes take the three sums of opposite distances, such as ``d(a, b) + d(c, d)``; δ is half the difference of the
two largest. It is 0 for all four nodes of a tree, and at most half the diameter in any graph, so a graph of few steps
has a small δ whatever its shape: compare δ with the distances.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.inspection.delta_search import search_delta
from h2hgcn.datasets.inspection.distances import double_sweep, walk
from h2hgcn.datasets.inspection.quadruples import Spread, spread_of_delta
from h2hgcn.datasets.inspection.simple_graph import Components, SimpleGraph, connected_components

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
