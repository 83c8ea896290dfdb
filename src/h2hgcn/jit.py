"""Numba: compiled loops, and random numbers for them."""

import threading
from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, TypeVar

import numpy as np

# Sums may be taken in any order, as every BLAS does; NaN and infinity keep their meaning.
_FASTMATH = {"reassoc", "contract", "arcp", "nsz"}

Loop = TypeVar("Loop", bound=Callable[..., Any])

_listeners: list[Callable[[], None]] = []
_lock = threading.RLock()


def compiled(function: Loop) -> Loop:
    """Compiles a loop when it is first called, and keeps the code on disk where it can."""
    return _Compiled(function, {})  # type: ignore[return-value]


def inlined(function: Loop) -> Loop:
    """What compiled loops call: becomes a part of each of them. A second copy might round differently, and Numba calls
    one or the other depending on whether the loop was just compiled or read from disk.
    """
    return _Compiled(function, {"forceinline": True})  # type: ignore[return-value]


def on_compilation(notify: Callable[[], None]) -> None:
    """Calls ``notify`` when code has to be compiled that is not on disk yet, once in this process."""
    _listeners.append(notify)


class _Compiled:
    """Numba's function, made at the first call: to import Numba takes half a second."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._options = {"nogil": True, "error_model": "numpy", "fastmath": _FASTMATH, **options}
        self._made: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self.made()(*arguments)

    def made(self) -> Callable[..., Any]:
        with _lock:
            if self._made is None:
                njit = _numba().njit
                try:
                    self._made = njit(cache=True, **self._options)(self._function)
                except RuntimeError:  # neither the package's folder nor the user's cache can be written
                    self._made = njit(**self._options)(self._function)
                # Numba looks for what a loop calls among the globals of its module, and so do later calls
                names = self._function.__globals__
                for name, value in list(names.items()):
                    if isinstance(value, _Compiled):
                        names[name] = value.made()
            return self._made


@cache
def _numba() -> Any:
    import numba
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]  # Numba is not annotated
        """Numba calls it when it compiles, but not when it reads code from disk."""

        def on_start(self, event: Any) -> None:
            while _listeners:
                _listeners.pop()()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())
    return numba


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
