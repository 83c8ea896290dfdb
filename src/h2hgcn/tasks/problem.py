"""What the training loop knows of a task: nothing but this."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

Metrics = dict[str, float]


class Model(nn.Module):
    """Features, encoder and head of a task, as one module with one state."""

    def __init__(self, scaling: nn.Module, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.scaling = scaling
        self.encoder = encoder
        self.head = head

    @property
    def distance_scale(self) -> Any:
        """The encoder's factor for distances, if its curvature is not -1."""
        return getattr(self.encoder, "distance_scale", 1.0)


class Problem(Protocol):
    """A task on given data, split and ready. The loop asks it for batches, losses and metrics."""

    in_features: int
    selection_metric: str

    def build(self, encoder: nn.Module) -> Model:
        """The model of this problem on an encoder, whose space decides on the head."""

    def batches(self, random: np.random.RandomState) -> Iterator[Any]:
        """The batches of one epoch, everything random in them drawn from ``random``."""

    def loss(self, model: Model, batch: Any) -> Tensor:
        """The loss of one batch, to be minimised."""

    def evaluate(self, model: Model, part: str) -> Metrics:
        """All metrics on ``"val"`` or ``"test"``, of a model in evaluation mode."""
