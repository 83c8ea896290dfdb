"""Threads: how many PyTorch gets, and who may change what belongs to the whole process."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Numbers of an embedding from which on a second thread pays (benchmarks/training.py --threads 2).
_LARGE = 1 << 19

# A run may come from a larger machine; more threads than these only wait for each other.
_THREADS_A_PROCESSOR = 4


# PyTorch's generator, default dtype and number of threads are those of the whole process.
_LOCK = threading.RLock()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Within, no other thread trains: a seed decides only if nobody else draws."""
    with _LOCK:
        yield


@contextmanager
def limited_threads(wanted: int | None, size: int) -> Iterator[None]:
    """Within, PyTorch has as many threads as are wanted, or else as an embedding of so many numbers is worth."""
    before = torch.get_num_threads()
    if wanted is None:
        wanted = before if size >= _LARGE else 1
    torch.set_num_threads(min(wanted, _THREADS_A_PROCESSOR * (os.cpu_count() or 1)))
    try:
        yield
    finally:
        torch.set_num_threads(before)
