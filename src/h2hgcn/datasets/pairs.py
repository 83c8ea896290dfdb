"""Pairs of nodes as single numbers, so that sets of pairs are sorted arrays and every pair can be drawn."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.errors import DataError
from h2hgcn.jit import compiled

Pairs = NDArray[np.int64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class PairSpace:
    """All pairs of ``num_nodes`` nodes in row-major order, numbered from 0.

    Undirected pairs have the smaller node first; ``with_self`` adds pairs of a node with itself.
    """

    num_nodes: int
    directed: bool = False
    with_self: bool = False

    def __len__(self) -> int:
        others = self.num_nodes if self.with_self else self.num_nodes - 1
        both_ways = self.num_nodes * others
        if self.directed:
            return both_ways
        return (both_ways + self.num_nodes) // 2 if self.with_self else both_ways // 2

    def ordered(self, pairs: Pairs) -> Pairs:
        """The pairs, the smaller node first if direction does not count."""
        return pairs if self.directed else np.sort(pairs, axis=1)

    def ranks(self, pairs: Pairs) -> Ranks:
        """Numbers of pairs that lie in this space, with the smaller node first if direction does not count."""
        first, second = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
        if self.directed:
            skipped = 0 if self.with_self else (second > first)
            return self._row_starts()[first] + second - skipped
        return self._row_starts()[first] + second - first - (0 if self.with_self else 1)

    def pairs(self, ranks: Ranks) -> Pairs:
        """The pairs that have these numbers."""
        starts = self._row_starts()
        first = np.searchsorted(starts, ranks, side="right") - 1
        second = ranks - starts[first]
        if not self.directed:
            second = second + first + (0 if self.with_self else 1)
        elif not self.with_self:
            second = second + (second >= first)
        return np.stack([first, second], axis=1)

    def _row_starts(self) -> Ranks:
        nodes = np.arange(self.num_nodes, dtype=np.int64)
        width = self.num_nodes if self.with_self else self.num_nodes - 1
        return nodes * width if self.directed else nodes * width - nodes * (nodes - 1) // 2


def distinct_pairs(space: PairSpace, pairs: Pairs) -> Pairs:
    """The pairs that lie in the space, each once, in row-major order."""
    if not space.with_self:
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return space.pairs(np.unique(space.ranks(space.ordered(pairs))))


def nth_absent(sorted_ranks: Ranks, numbers: Ranks) -> Ranks:
    """The ranks of the ``numbers``-th pairs that are not among ``sorted_ranks``."""
    return numbers + np.searchsorted(_gaps_before(sorted_ranks), numbers, side="right")


def _gaps_before(sorted_ranks: Ranks) -> Ranks:
    """How many pairs before each of ``sorted_ranks`` are not among them."""
    return sorted_ranks - np.arange(len(sorted_ranks))


class AbsentPairs:
    """The pairs of a space that are not among given ones, to draw batches from."""

    def __init__(self, space: PairSpace, present: Pairs) -> None:
        self.space = space
        self.gaps_before = _gaps_before(np.sort(space.ranks(present)))

    def draw(self, count: int, random: np.random.RandomState, only: slice = slice(None)) -> Pairs:
        """``count`` pairs with replacement, ``only`` these of them, in row-major order."""
        absent = len(self.space) - len(self.gaps_before)
        if count and not absent:
            raise DataError(
                f"all {len(self.space)} pairs of nodes are edges, so that there is none to train against; use a graph "
                "that is not complete"
            )
        numbers = np.sort(random.randint(0, max(absent, 1), count, dtype=np.int64)[only])
        _skip_gaps(self.gaps_before, numbers)
        return self.space.pairs(numbers)


@compiled
def _skip_gaps(gaps_before: Any, numbers: Any) -> None:
    """``nth_absent`` of sorted numbers, in place: one pass over both, four times as fast as a search."""
    passed = 0
    for k in range(len(numbers)):
        while passed < len(gaps_before) and gaps_before[passed] <= numbers[k]:
            passed += 1
        numbers[k] += passed


def contains(sorted_ranks: Ranks, ranks: Ranks) -> NDArray[np.bool_]:
    """Whether each of ``ranks`` is among ``sorted_ranks``."""
    if not len(sorted_ranks):
        return np.zeros(len(ranks), dtype=bool)
    places = np.searchsorted(sorted_ranks, ranks).clip(max=len(sorted_ranks) - 1)
    return sorted_ranks[places] == ranks


# A stripe has so many first nodes that their rows, and those of their gradients, stay in a large cache while all second
# nodes pass by; second nodes are in groups of _NEAR.
_STRIPE, _NEAR = 1 << 15, 1 << 4

# Below this many stripes everything fits in the cache as it is.
_FEW = 4


def cache_order(pairs: Pairs, num_nodes: int) -> Pairs:
    """``pairs (k, 2)`` in an order that is fast to gather rows by: sorted by stripes of first nodes, and within one
    by groups of second nodes. Those of small graphs stay as they are.
    """
    if num_nodes < _FEW * _STRIPE:
        return pairs
    pairs = np.ascontiguousarray(pairs)
    by_stripe, result = np.empty_like(pairs), np.empty_like(pairs)
    ends = _counting_sort(pairs, 0, _STRIPE, num_nodes, by_stripe)
    for first, last in pairwise([0, *ends]):
        _counting_sort(by_stripe[first:last], 1, _NEAR, num_nodes, result[first:last])
    return result


@compiled
def _counting_sort(pairs: Any, column: int, width: int, num_nodes: int, result: Any) -> Any:
    """Sorts pairs, stably, by the group of ``width`` nodes that this column is in; returns where each group ends."""
    places = np.zeros(num_nodes // width + 2, np.int64)
    for p in range(len(pairs)):
        places[pairs[p, column] // width + 1] += 1
    for group in range(len(places) - 1):
        places[group + 1] += places[group]
    for p in range(len(pairs)):
        group = pairs[p, column] // width
        result[places[group], 0], result[places[group], 1] = pairs[p, 0], pairs[p, 1]
        places[group] += 1
    return places
