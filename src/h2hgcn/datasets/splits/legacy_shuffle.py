"""The first entries of a very long ``RandomState.shuffle``, without shuffling.

A shuffle swaps every place, from the last to the second, with a random one before it. Only the draws are needed to
follow a few places back to where their entries came from; no entry is moved, or even held.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.jit import compiled

_CHUNK = 1 << 20
_LARGEST = 2**32 - 1  # beyond it NumPy draws 64 bits at a time


def shuffle_head(random: np.random.RandomState, size: int, count: int) -> NDArray[np.int64]:
    """``x[:count]`` after ``x = np.arange(size); random.shuffle(x)``; ``random`` itself stays where it was."""
    if size > _LARGEST:
        raise ValueError(f"a shuffle of {size} entries is too long; at most {_LARGEST}")
    generator = np.random.MT19937()
    generator.state = random.get_state(legacy=False)  # type: ignore[assignment]  # it is what the setter takes
    partners = np.empty(size, dtype=np.uint32)
    place = size - 1
    while place > 0:
        place = _draw(generator.random_raw(_CHUNK), place, partners)
    places = np.arange(count, dtype=np.int64)
    _trace(partners, places, np.full(size // 64 + 1, 0, dtype=np.uint64))
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
