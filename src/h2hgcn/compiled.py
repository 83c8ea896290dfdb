"""Compiled loops over rows, shared out over PyTorch's number of threads.

Numba's own threads are not used: they would stand beside PyTorch's, and its portable pool must not be entered from
two threads, as autograd does. The loops release the interpreter's lock, so plain threads do.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numba
import torch

# Below this many numbers a thread costs more than it saves.
_GRAIN = 1 << 16

# Sums may be taken in any order, as every BLAS does; NaN and infinity keep their meaning.
_FASTMATH = {"reassoc", "contract", "arcp", "nsz"}

_pool: ThreadPoolExecutor | None = None


Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(function: Loop) -> Loop:
    """Compiles a loop when it is first called, and keeps the code on disk where it can."""
    return _compiled(function, {})


def inlined(function: Loop) -> Loop:
    """What compiled loops call: becomes a part of each of them.

    A function of its own would be compiled once by itself and once with its caller, maybe to other instructions, which
    round differently; and which of the two is called depends on whether the caller has just been compiled or was read
    from disk. So a run would not end as it did the first time.
    """
    return _compiled(function, {"forceinline": True})


def _compiled(function: Loop, more: dict[str, Any]) -> Loop:
    options = {"nogil": True, "error_model": "numpy", "fastmath": _FASTMATH, **more}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return numba.njit(**options)(function)


def run_on_rows(loop: Callable[..., None], shape: tuple[int, ...], *arguments: Any) -> None:
    """Calls ``loop(first, last, *arguments)`` for all rows of an array of this shape."""
    rows, width = shape
    threads = min(torch.get_num_threads(), max(rows * width // _GRAIN, 1), max(rows, 1))
    if threads == 1:
        loop(0, rows, *arguments)
        return
    bounds = [rows * i // threads for i in range(threads + 1)]
    parts = [_threads().submit(loop, first, last, *arguments) for first, last in pairwise(bounds[1:])]
    loop(0, bounds[1], *arguments)
    for part in parts:
        part.result()


def _threads() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="h2hgcn")
    return _pool


def _forget_threads() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)  # threads do not come along
