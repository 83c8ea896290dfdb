"""How many threads PyTorch gets."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from h2hgcn.training.settings import TrainingSettings

# Numbers of an embedding from which on a second thread pays (benchmarks/training.py --threads 2).
_LARGE = 1 << 19


@contextmanager
def limited_threads(settings: TrainingSettings, problem: Any, encoder: Any) -> Iterator[None]:
    """Within, PyTorch has as many threads as the settings say, or as the size of the graph is worth."""
    before = torch.get_num_threads()
    wanted = settings.threads
    if wanted is None:
        size = getattr(problem, "num_nodes", 0) * getattr(encoder, "dim", 0)
        wanted = before if size >= _LARGE else 1
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
