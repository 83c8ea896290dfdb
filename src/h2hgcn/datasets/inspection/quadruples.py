"""How δ is spread over quadruples of nodes."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
