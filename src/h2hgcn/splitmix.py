"""Random numbers for compiled loops: SplitMix64 (Steele, Lea and Flood 2014), whose state is one word, here in an array
of one so that the loops can change it. A stream depends on nothing but the numbers that it is seeded with: neither on
the machine, nor on numba's or NumPy's streams.
"""

from typing import Any

import numpy as np

from h2hgcn.compiled import compiled, inlined

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_11, _27, _30, _31, _32 = (np.uint64(bits) for bits in (11, 27, 30, 31, 32))


@inlined
def random_word(state: Any) -> Any:
    """The next 64 random bits."""
    state[0] += _STEP
    word = state[0]
    word = (word ^ (word >> _30)) * _FIRST_FACTOR
    word = (word ^ (word >> _27)) * _SECOND_FACTOR
    return word ^ (word >> _31)


@compiled
def random_state(*seeds: int) -> Any:
    """The state of a stream of its own for every choice of numbers."""
    state = np.zeros(1, np.uint64)
    for seed in seeds:
        state[0] = random_word(state) ^ np.uint64(seed)
    state[0] = random_word(state)
    return state


@inlined
def random_below(bound: int, state: Any) -> int:
    """An integer from 0 to ``bound - 1``; for bounds of a few thousand its bias is a millionth."""
    return np.int64(((random_word(state) >> _32) * np.uint64(bound)) >> _32)  # type: ignore[return-value]


@inlined
def random_uniform(state: Any) -> float:
    """A number in [0, 1), a multiple of 2⁻⁵³."""
    return np.float64(random_word(state) >> _11) * 2.0**-53
