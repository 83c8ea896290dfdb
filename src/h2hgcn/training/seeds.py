"""Randomness that depends on the seed and the epoch alone, so that a run can go on anywhere without its history."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def _sequence(seed: int, epoch: int | None) -> np.random.SeedSequence:
    """Of the weights, or of an epoch; keys, since ``[seed, 0]`` as the seed would be the same as ``[seed]``."""
    return np.random.SeedSequence(seed, spawn_key=(0,) if epoch is None else (1, epoch))


def epoch_random(seed: int, epoch: int) -> np.random.RandomState:
    """What batches are drawn with in an epoch."""
    return np.random.RandomState(_sequence(seed, epoch).generate_state(4))


@contextmanager
def torch_seeded(seed: int, epoch: int | None = None, device: torch.device | None = None) -> Iterator[None]:
    """Within, PyTorch draws (weights, or dropout in an epoch) from the seed; the caller's own state is left alone."""
    number = int(_sequence(seed, epoch).generate_state(1, np.uint64)[0] >> np.uint64(1))
    on_cuda = device is not None and device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_cuda else []):
        torch.default_generator.manual_seed(number)
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(number)
        elif device is not None and device.type == "mps":
            torch.mps.manual_seed(number)
        yield
