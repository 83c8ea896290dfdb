"""Memory that training frees is kept for the next step.

glibc gives large blocks back to the system as soon as they are freed, and maps them again for the next tensor: half of
the time of an epoch on a graph of ten million edges (docs/decisions.md). The allocator belongs to the whole process, so
only the command line, whose process it is, changes it; the library does not.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Options of glibc's mallopt, by their numbers in malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4

# What glibc starts with, or comes to by itself when large blocks are freed.
_USUAL = {_MMAP_MAX: 65536, _MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}

# No block is mapped by itself, and nothing is given back.
_KEPT = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}

# Seconds between two times of giving back free pieces between blocks in use, without which a process grows by half
# within some steps. What is given back has to be mapped again.
_INTERVAL = 5.0


@contextmanager
def kept_memory() -> Iterator[None]:
    """Within, memory that is freed stays with the process, on Linux with glibc; elsewhere, and where environment
    variables set the allocator up, nothing changes.
    """
    chosen = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    libc = ctypes.CDLL(None) if sys.platform.startswith("linux") and not chosen else None
    if libc is None or not hasattr(libc, "gnu_get_libc_version"):
        yield
        return
    over = threading.Event()

    def give_back() -> None:
        while not over.wait(_INTERVAL):
            libc.malloc_trim(0)

    thread = threading.Thread(target=give_back, name="h2hgcn-memory", daemon=True)
    for option, value in _KEPT.items():
        libc.mallopt(option, value)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for option, value in _USUAL.items():
            libc.mallopt(option, value)
        libc.malloc_trim(0)
