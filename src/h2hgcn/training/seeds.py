"""Randomness that depends on the seed and the epoch alone, so that a run can go on anywhere without its history."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def _sequence(seed: int, epoch: int | None) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed] if epoch is None else [seed, epoch])


def epoch_random(seed: int, epoch: int) -> np.random.RandomState:
    """What batches are drawn with in an epoch."""
    return np.random.RandomState(_sequence(seed, epoch).generate_state(4))


@contextmanager
def torch_seeded(seed: int, epoch: int | None = None, device: torch.device | None = None) -> Iterator[None]:
    """Within, PyTorch draws (weights, or dropout in an epoch) from the seed; the caller's own state is left alone."""
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(int(_sequence(seed, epoch).generate_state(1, np.uint64)[0] >> np.uint64(1)))
        yield
