"""How a model is trained: settings, seeds and threads."""

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from h2hgcn.errors import DataError
from h2hgcn.options import NONE, conform, require

# As a number of neighbors to sample.
ALL_NEIGHBORS = -1

# Beyond it, the optimizers' own arithmetic overflows in float32.
_LARGEST = 1e30

# More than any machine has; where the system grants no more threads, PyTorch ends the process.
_MOST_THREADS = 1024


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the loop and of the optimizers.

    Args:
        epochs: The largest number of passes over the training data.
        stop_after: Stop after so many epochs, at the learning rates of a run of all ``epochs``; None trains all.
        patience: Stop after so many epochs without a better validation metric; None never does.
        eval_every: Epochs from one look at the validation data to the next.
        lr, weight_decay: Of Adam, for all that is not on a manifold.
        stiefel_lr: Of the Riemannian optimizer, for what is on a manifold; None takes ``lr``.
        vector_lr, vector_weight_decay: Of learned node vectors, see ``NodeVectors``; None takes ``lr`` and
            ``weight_decay``.
        stiefel_method: ``"rsgd"``, Riemannian SGD as in the paper, or ``"radam"``, Riemannian Adam.
        clip_norm: The largest norm of the gradient of all parameters; None does not clip.
        schedule: ``"constant"`` learning rates, ``"cosine"`` down to 0 at ``epochs``, or ``"step"``: times ``lr_decay``
            every ``decay_every`` epochs.
        lr_decay, decay_every: Of the schedule ``"step"``.
        dtype: Of the model: ``"float32"`` or ``"float64"``.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"``, which takes CUDA if there is a GPU; ``"mps"`` is refused.
        threads: Of PyTorch on the CPU. None takes one for small graphs, whose operations are too short to be shared out
            (and slow down many times over where other programs are busy), and all of them for others; four for each
            processor at most.
        batch_size: Links or nodes of a step, whose neighborhoods are sampled; ``"full"`` takes the whole graph at
            every step; ``"auto"`` does so unless the graph is large. Evaluation is exact in any case.
        fanout: How many neighbors are sampled for each node, one number a layer, the first for the nodes of a batch,
            such as ``"15,10"``; -1 takes all. None takes 15, 10, and 5 for further layers.
        workers: Threads that prepare batches ahead; the result does not depend on them.
        checkpoint_seconds: Least time between two checkpoints; the result does not depend on it.
    """

    epochs: int = 500
    stop_after: int | None = None
    patience: int | None = 100
    eval_every: int = 1
    lr: float = 0.01
    weight_decay: float = 0.0
    stiefel_lr: float | None = None
    vector_lr: float | None = None
    vector_weight_decay: float | None = None
    stiefel_method: Literal["rsgd", "radam"] = "rsgd"
    clip_norm: float | None = None
    schedule: Literal["constant", "cosine", "step"] = "constant"
    lr_decay: float = 0.5
    decay_every: int = 100
    dtype: Literal["float32", "float64"] = "float32"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    threads: int | None = None
    batch_size: int | Literal["auto", "full"] = "auto"
    fanout: str | None = None
    workers: int = 0
    checkpoint_seconds: float = 5.0

    def __post_init__(self) -> None:
        conform(self, "[training]")

        def check(names: str, fits: Callable[[Any], bool], rule: str) -> None:
            require(self, "training", names.split(), fits, rule)

        check("epochs eval_every decay_every", lambda n: n >= 1, "must be at least 1")
        check("patience stop_after", lambda n: n >= 1, f"must be at least 1, or {NONE!r}")
        check("threads", lambda n: 1 <= n <= _MOST_THREADS, f"must lie between 1 and {_MOST_THREADS}, or be {NONE!r}")
        check("workers", lambda n: 0 <= n <= _MOST_THREADS, f"must be 0 to {_MOST_THREADS}")
        rates = "lr stiefel_lr vector_lr clip_norm lr_decay"
        check(rates, lambda x: 0 < x <= _LARGEST, f"must be positive, {_LARGEST:g} at most")
        others = "weight_decay vector_weight_decay checkpoint_seconds"
        check(others, lambda x: 0 <= x < math.inf, "must be 0 or more")
        check("batch_size", lambda n: n in ("auto", "full") or n >= 1, "must be at least 1, auto or full")
        self.fanout_numbers()

    @property
    def last_epoch(self) -> int:
        """The epoch after which training is over, unless it stops early."""
        return self.epochs if self.stop_after is None else min(self.epochs, self.stop_after)

    def fanout_numbers(self) -> tuple[int, ...] | None:
        """The numbers of ``fanout``."""
        if self.fanout is None:
            return None
        try:
            numbers = tuple(int(part) for part in self.fanout.split(","))
        except ValueError:
            numbers = (0,)
        if any(number < 1 and number != ALL_NEIGHBORS for number in numbers):
            raise DataError(
                f"training.fanout={self.fanout!r} must be whole numbers with commas between them, such as 15,10: "
                f"how many neighbors at each hop, at least 1, or {ALL_NEIGHBORS} for all"
            )
        return numbers

    def rate_factor(self, epoch: int) -> float:
        """What learning rates are multiplied with in an epoch, the first of which is 0."""
        if self.schedule == "cosine":
            return 0.5 * (1 + math.cos(math.pi * epoch / self.epochs))
        return self.lr_decay ** (epoch // self.decay_every) if self.schedule == "step" else 1.0

    def torch_dtype(self) -> torch.dtype:
        return torch.float64 if self.dtype == "float64" else torch.float32

    def torch_device(self) -> torch.device:
        """The device that was asked for, if it is there; a process of torchrun has a GPU of its own."""
        if self.device == "mps":
            raise DataError("training.device='mps': MPS has no float64, which distances need; use 'cpu'")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise DataError("training.device='cuda' is not there; use 'auto' or 'cpu'")
        if self.device == "cpu" or not torch.cuda.is_available():
            return torch.device("cpu")
        rank, count = os.environ.get("LOCAL_RANK"), torch.cuda.device_count()
        if rank is None:
            return torch.device("cuda")
        if not rank.isdecimal() or int(rank) >= count:
            raise DataError(
                f"LOCAL_RANK={rank}, with {count} GPUs here: each process needs its own; start torchrun with "
                f"--nproc-per-node {count}, or train with --set training.device=cpu"
            )
        return torch.device("cuda", int(rank))


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
        yield


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
    """Within, PyTorch has as many threads as are wanted, or else as an embedding of so many numbers is worth.

    One thread of the program at a time: the number is that of the whole process, and has to be restored.
    """
    with _LOCK:
        before = torch.get_num_threads()
        if wanted is None:
            wanted = before if size >= _LARGE else 1
        torch.set_num_threads(min(wanted, _THREADS_A_PROCESSOR * (os.cpu_count() or 1)))
        try:
            yield
        finally:
            torch.set_num_threads(before)
