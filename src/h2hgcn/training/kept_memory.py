"""Memory that a step of training frees is kept for what is allocated next.

The C library gives large blocks back to the system as soon as they are freed, and maps them anew for the next tensor:
half of the time of an epoch on a graph of ten million edges (docs/decisions.md).
"""

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Options of glibc's mallopt, by their numbers in malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4

# What glibc starts with, or comes to by itself when large blocks are freed.
_USUAL = {_MMAP_MAX: 65536, _MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}

# No block is mapped by itself, and nothing is given back.
_KEPT = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}

# Seconds between two times of giving back: what is given back has to be mapped again.
_INTERVAL = 5.0

# The C library, while memory is kept, and when it was last given back: there is one heap for the whole process.
_keeping: ctypes.CDLL | None = None
_given_back = 0.0


@contextmanager
def kept_memory() -> Iterator[None]:
    """Within, memory that is freed is kept for the process until ``give_back``.

    Of use with glibc, that is on most Linux systems, in the main thread; no harm elsewhere. Somebody who has set the
    allocator up by environment variables is left alone.
    """
    global _keeping
    libc, before = _glibc(), _keeping
    if libc is None or before is not None:
        yield
        return
    _keeping = libc
    _set(libc, _KEPT)
    try:
        yield
    finally:
        _keeping = None
        _set(libc, _USUAL)
        libc.malloc_trim(0)


def give_back() -> None:
    """Gives what is free back to the system, if memory is kept and the last time is not just past.

    Free pieces between blocks in use are never quite what is asked for next: without this, a process grows by half
    within some steps.
    """
    global _given_back
    if _keeping is not None and time.monotonic() - _given_back >= _INTERVAL:
        _keeping.malloc_trim(0)
        _given_back = time.monotonic()


def _glibc() -> ctypes.CDLL | None:
    chosen = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if not sys.platform.startswith("linux") or chosen:
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") else None


def _set(libc: ctypes.CDLL, options: dict[int, int]) -> None:
    for option, value in options.items():
        libc.mallopt(option, value)


def _forget() -> None:
    """A process that was forked within does not come to the end."""
    global _keeping
    if _keeping is not None:
        _set(_keeping, _USUAL)
        _keeping = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
