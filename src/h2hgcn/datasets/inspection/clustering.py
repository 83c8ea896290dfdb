"""How often two neighbors of a node are neighbors: counted where that is quick, else sampled."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.inspection.simple_graph import SimpleGraph
from h2hgcn.jit import compiled

# Pairs of neighbors looked at when triangles are counted, at a few nanoseconds each.
COUNTING_BUDGET = 1_000_000_000
# Pairs of neighbors drawn otherwise; the standard error is then at most 0.001.
SAMPLES = 250_000


@dataclass(frozen=True)
class Clustering:
    """The mean over nodes (0 for less than two neighbors), and the share of all pairs of neighbors that are joined."""

    average: float | None
    average_error: float | None
    transitivity: float | None
    transitivity_error: float | None
    sampled: bool


def measure_clustering(graph: SimpleGraph, *, seed: int = 0, effort: float = 1.0) -> Clustering:
    if not graph.num_nodes:
        return Clustering(None, None, None, None, False)
    degrees = graph.degrees
    wedges = degrees * (degrees - 1) / 2
    if not wedges.any():
        return Clustering(0.0, 0.0, 0.0, 0.0, False)
    # a node's rank by degree; edges point to the higher rank, so that hubs have few to point at
    ranks = np.empty(graph.num_nodes, np.int32)
    ranks[np.argsort(degrees, kind="stable")] = np.arange(graph.num_nodes, dtype=np.int32)
    if _pairs_to_check(graph.starts, graph.neighbors, ranks) > effort * COUNTING_BUDGET:
        return _sampled(graph, wedges, np.random.default_rng(seed))
    triangles = np.zeros(graph.num_nodes, np.int64)
    _count_triangles(graph.starts, graph.neighbors, ranks, triangles)
    average = float((triangles / np.maximum(wedges, 1)).mean())
    return Clustering(average, 0.0, float(triangles.sum() / wedges.sum()), 0.0, False)


def _sampled(graph: SimpleGraph, wedges: NDArray[np.float64], random: np.random.Generator) -> Clustering:
    """Draws two neighbors of random nodes (Schank and Wagner 2005)."""
    centers = np.flatnonzero(wedges)
    uniform = random.choice(centers, SAMPLES)
    by_wedges = np.searchsorted(wedges.cumsum(), random.random(SAMPLES) * wedges.sum(), side="right")
    average, average_error = _share_joined(graph, uniform, random)
    transitivity, transitivity_error = _share_joined(graph, by_wedges, random)
    part = len(centers) / graph.num_nodes
    return Clustering(part * average, part * average_error, transitivity, transitivity_error, True)


def _share_joined(graph: SimpleGraph, centers: NDArray[Any], random: np.random.Generator) -> tuple[float, float]:
    degrees = graph.starts[centers + 1] - graph.starts[centers]
    first = random.integers(degrees)
    second = (first + random.integers(1, degrees)) % degrees
    ends = [graph.neighbors[graph.starts[centers] + offset] for offset in (first, second)]
    share = float(_count_joined(graph.starts, graph.neighbors, *ends)) / len(centers)
    return share, math.sqrt(share * (1 - share) / len(centers))


@compiled
def _pairs_to_check(starts: Any, neighbors: Any, ranks: Any) -> float:
    upward = np.zeros(len(ranks), np.int64)
    for node in range(len(ranks)):
        for arc in range(starts[node], starts[node + 1]):
            upward[node] += ranks[neighbors[arc]] > ranks[node]
    pairs = 0.0
    for node in range(len(ranks)):
        for arc in range(starts[node], starts[node + 1]):
            if ranks[neighbors[arc]] > ranks[node]:
                pairs += upward[neighbors[arc]]
    return pairs


@compiled
def _count_triangles(starts: Any, neighbors: Any, ranks: Any, triangles: Any) -> None:
    upward = np.empty(len(neighbors) // 2, np.int32)
    bounds = np.zeros(len(starts), np.int64)
    for node in range(len(ranks)):
        bounds[node + 1] = bounds[node]
        for arc in range(starts[node], starts[node + 1]):
            if ranks[neighbors[arc]] > ranks[node]:
                upward[bounds[node + 1]] = neighbors[arc]
                bounds[node + 1] += 1
    marked_by = np.full(len(ranks), -1, np.int32)
    for low in range(len(ranks)):
        for arc in range(bounds[low], bounds[low + 1]):
            marked_by[upward[arc]] = low
        for arc in range(bounds[low], bounds[low + 1]):
            middle = upward[arc]
            for top in upward[bounds[middle] : bounds[middle + 1]]:
                if marked_by[top] == low:
                    triangles[low] += 1
                    triangles[middle] += 1
                    triangles[top] += 1


@compiled
def _count_joined(starts: Any, neighbors: Any, first: Any, second: Any) -> int:
    joined = 0
    for i in range(len(first)):
        low, end = starts[first[i]], starts[first[i] + 1]
        position = low + np.searchsorted(neighbors[low:end], second[i])
        joined += position < end and neighbors[position] == second[i]
    return joined
