"""HGCN's splits bit for bit, as its figures were published: self-pairs among negatives, nodes in several parts."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import UNLABELLED, check_nodes
from h2hgcn.datasets.pairs import Pairs, PairSpace, Ranks, nth_absent
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.jit import compiled

Indices = NDArray[np.int64]


def removed_loops(graph: Any) -> Pairs:
    """The self-loops that a reader left out of the edges, and that HGCN counts among them."""
    loops = getattr(graph, "self_loops", None)
    if loops is None:
        return np.empty((0, 2), dtype=np.int64)
    nodes = loops.cpu().numpy().astype(np.int64)
    check_nodes(graph, "self_loops", nodes)
    return np.stack([nodes, nodes], axis=1)


def draw_legacy_negatives(random: np.random.RandomState, space: PairSpace, edges: Ranks, count: int) -> Ranks:
    """The first of all shuffled pairs without an edge."""
    absent = len(space) - len(edges)
    if absent >= 2**32:  # beyond it NumPy draws 64 bits at a time
        raise DataError(
            f"the legacy protocol shuffles every pair of nodes, of which {space.num_nodes} nodes have {len(space)}; "
            "use protocol='clean'"
        )
    return nth_absent(edges, shuffle_head(random, absent, count))


def split_legacy_nodes(
    labels: Indices, val: float, test: float, random: np.random.RandomState
) -> tuple[Indices, Indices, Indices]:
    """HGCN's function for two classes; a warning counts the nodes that it puts into several parts."""
    labelled = np.flatnonzero(labels != UNLABELLED)
    # meant for labels 0 and 1; of others, all but 1 count as negative, and as positive, too
    positive, negative = labelled[labels[labelled] != 0], labelled[labels[labelled] != 1]
    random.shuffle(positive)
    random.shuffle(negative)
    smaller = min(len(positive), len(negative))
    first, second = round(val * smaller), round(val * smaller) + round(test * smaller)
    parts = (slice(second, None), slice(first), slice(first, second))
    train, validation, tested = (np.concatenate([positive[part], negative[part]]) for part in parts)
    distinct_val, distinct_test = np.unique(validation), np.unique(tested)
    in_train, in_val = np.isin(distinct_test, train).sum(), np.isin(distinct_test, validation).sum()
    val_in_train = np.isin(distinct_val, train).sum()
    if in_train or in_val or val_in_train:
        warnings.warn(
            f"of {len(distinct_test)} distinct test nodes, {in_train} are also training nodes and {in_val} validation "
            f"nodes; of {len(distinct_val)} distinct validation nodes, {val_in_train} are also training nodes: the "
            "legacy split is made for labels 0 and 1. Figures on it are too good; protocol='clean' has disjoint parts",
            DataWarning,
            stacklevel=3,
        )
    return train, validation, tested


_CHUNK = 1 << 20


def shuffle_head(random: np.random.RandomState, size: int, count: int) -> Indices:
    """``x[:count]`` after ``x = np.arange(size); random.shuffle(x)``, of less than 2³² entries; ``random`` itself stays
    where it was.
    """
    generator = np.random.MT19937()
    generator.state = random.get_state(legacy=False)  # type: ignore[assignment]  # it is what the setter takes
    partners = np.empty(size, dtype=np.uint32)
    place = size - 1
    while place > 0:
        place = _draw(generator.random_raw(_CHUNK), place, partners)
    places = np.arange(count, dtype=np.int64)
    _trace(partners, places, np.zeros(size // 64 + 1, dtype=np.uint64))
    return places


@compiled
def _draw(raw: Any, place: int, partners: Any) -> int:
    """Fills ``partners[place], partners[place - 1], ...`` as long as there are random numbers."""
    mask = 1
    while mask < place:
        mask = 2 * mask + 1
    for value in raw:
        while place <= mask >> 1:
            mask >>= 1
        partner = value & np.uint64(mask)
        if partner <= place:
            partners[place] = partner
            place -= 1
            if place == 0:
                break
    return place


@compiled
def _trace(partners: Any, places: Any, occupied: Any) -> None:
    """Takes back the swaps, the last one first, for the entries at ``places`` (0, 1, ... at the start)."""
    owner = dict()  # noqa: C408, numba does not know the type of {}
    for entry in range(len(places)):
        owner[np.int64(entry)] = np.int64(entry)
        occupied[entry >> 6] |= np.uint64(1) << np.uint64(entry & 63)
    for place in range(1, len(partners)):
        partner = np.int64(partners[place])
        here = (occupied[place >> 6] >> np.uint64(place & 63)) & np.uint64(1)
        there = (occupied[partner >> 6] >> np.uint64(partner & 63)) & np.uint64(1)
        if partner == place or (here == 0 and there == 0):
            continue
        if here == there:
            owner[np.int64(place)], owner[partner] = owner[partner], owner[np.int64(place)]
            continue
        source, target = (np.int64(place), partner) if here else (partner, np.int64(place))
        owner[target] = owner.pop(source)
        occupied[place >> 6] ^= np.uint64(1) << np.uint64(place & 63)
        occupied[partner >> 6] ^= np.uint64(1) << np.uint64(partner & 63)
    for origin in owner:
        places[owner[origin]] = origin
