"""How a model is trained."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch

from h2hgcn.errors import DataError

Schedule = Literal["constant", "cosine", "step"]
Dtype = Literal["float32", "float64"]
Device = Literal["auto", "cpu", "cuda", "mps"]


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the loop and of the optimisers.

    Args:
        epochs: The largest number of passes over the training data.
        patience: Stop after so many epochs without a better validation metric; None never does.
        eval_every: Epochs from one look at the validation data to the next.
        lr, weight_decay: Of Adam, for all that is not on the Stiefel manifold.
        stiefel_lr, stiefel_method: Of the Riemannian optimiser, see ``build_optimizer``; None takes ``lr``.
        clip_norm: The largest norm of the gradient of all parameters; None does not clip.
        schedule: Learning rates as they are, ``"cosine"`` down to 0 at ``epochs``, or ``"step"``: times ``lr_decay``
            every ``decay_every`` epochs.
        dtype: Of the model.
        device: ``"auto"`` takes a GPU if there is one.
        threads: Of PyTorch on the CPU. None takes one for small graphs, whose operations are too short to be shared out
            (and slow down many times over where other programs are busy), and all of them for others.
        checkpoint_seconds: Least time between two checkpoints; the result does not depend on it.
    """

    epochs: int = 500
    patience: int | None = 100
    eval_every: int = 1
    lr: float = 0.01
    weight_decay: float = 0.0
    stiefel_lr: float | None = None
    stiefel_method: Literal["rsgd", "radam"] = "rsgd"
    clip_norm: float | None = None
    schedule: Schedule = "constant"
    lr_decay: float = 0.5
    decay_every: int = 100
    dtype: Dtype = "float32"
    device: Device = "auto"
    threads: int | None = None
    checkpoint_seconds: float = 5.0

    def __post_init__(self) -> None:
        for name, choices in (("schedule", Schedule), ("dtype", Dtype), ("device", Device)):
            if getattr(self, name) not in get_args(choices):
                known = ", ".join(get_args(choices))
                raise DataError(f"training.{name}={getattr(self, name)!r} is not known; use one of {known}")
        for name in ("epochs", "eval_every", "decay_every"):
            if getattr(self, name) < 1:
                raise DataError(f"training.{name}={getattr(self, name)} must be at least 1")
        for name in ("patience", "threads"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise DataError(f"training.{name}={getattr(self, name)} must be at least 1, or 'none'")
        for name in ("lr", "stiefel_lr", "clip_norm"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise DataError(f"training.{name}={value} must be a positive number")

    def rate_factor(self, epoch: int) -> float:
        """What learning rates are multiplied with in an epoch, the first of which is 0."""
        if self.schedule == "cosine":
            return 0.5 * (1 + math.cos(math.pi * epoch / self.epochs))
        return self.lr_decay ** (epoch // self.decay_every) if self.schedule == "step" else 1.0

    def torch_dtype(self) -> torch.dtype:
        return torch.float64 if self.dtype == "float64" else torch.float32

    def torch_device(self) -> torch.device:
        """The device that was asked for, if it is there."""
        there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        if self.device == "auto":
            # no float64 on MPS
            usable = [name for name in ("cuda", "mps") if there[name] and (name, self.dtype) != ("mps", "float64")]
            return torch.device(usable[0] if usable else "cpu")
        if not there[self.device]:
            raise DataError(f"device {self.device!r} is not there; use 'auto' or 'cpu'")
        return torch.device(self.device)
