"""What the training loop knows of a task: nothing but this."""

from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from h2hgcn.errors import DataError
from h2hgcn.tasks.baselines import Baselines
from h2hgcn.tasks.metrics import Metrics as Metrics
from h2hgcn.tasks.scaling import FeatureScaling


class Model(nn.Module):
    """Features, encoder and head of a task, as one module with one state."""

    def __init__(self, scaling: FeatureScaling, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.scaling = scaling
        self.encoder = encoder
        self.head = head

    @property
    def dim(self) -> int:
        """The dimension of the encoder's space."""
        return int(self.encoder.dim)  # type: ignore[arg-type]

    @property
    def distance_scale(self) -> Any:
        """The encoder's factor for distances, if its curvature is not -1."""
        if getattr(self.encoder, "has_unit_curvature", False):
            return 1.0
        return getattr(self.encoder, "distance_scale", 1.0)


class Task(Protocol):
    """Settings of a task, and what can be made of them.

    ``items`` are what it trains on, in the plural. The first of ``parts`` selects the epoch, the last is reported: val
    and test, or one part that is both where nothing is held out. A final fit has none, and its last epoch is taken.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    items: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]

    def bind(self, data: Any) -> "Problem":
        """The task on given data, split."""

    def assemble(self, encoder: nn.Module, in_features: int, num_classes: int | None) -> Model:
        """The model of this task on an encoder, whose space decides on the head; scaling still to be loaded."""


class Problem(Protocol):
    """A task on given data, split and ready. The loop asks it for batches, losses and metrics.

    ``num_nodes`` are those that an encoder gets at once, about. Those of one graph have it as ``graph``, on the CPU,
    say how many links or nodes they train on (``num_items``), draw batches of it if they are given a ``sampling``, and
    ``renumber`` its nodes for training. Others say what a step sees (``plan``), and their task why it cannot be sampled
    (``batch_rule``).
    """

    task: Any
    split: Any
    in_features: int
    num_nodes: int
    sampling: Any
    selection_metric: str

    @property
    def num_classes(self) -> int | None:
        """None where there are no classes."""

    @property
    def num_items(self) -> int:
        """How many links, nodes or graphs there are to train on."""

    def to(self, device: torch.device | str) -> None:
        """Moves what batches are made of."""

    def build(self, encoder: nn.Module) -> Model:
        """The model of this problem, its scaling measured on the features."""

    def batches(self, random: np.random.RandomState) -> Iterator[Any]:
        """The batches of one epoch, everything random in them drawn from ``random``."""

    def loss(self, model: Model, batch: Any) -> Tensor:
        """The loss of one batch, to be minimised."""

    def evaluate(self, model: Model, part: str) -> Metrics:
        """All metrics on one of the task's ``parts``, of a model in evaluation mode."""

    def points(self, model: Model) -> Tensor:
        """The embedding: a point for each node, or for each graph of a collection."""

    def baselines(self, part: str) -> Baselines:
        """The metrics on a part of scores that need no training."""


def check_shares(task: Any) -> None:
    """Raises for a share of 0 for validation or test, by which somebody means to train on everything."""
    for part in task.parts:
        if getattr(task, part) == 0:
            raise DataError(
                f"task.{part}=0 leaves nothing to {'choose the epoch by' if part == 'val' else 'test on'}; keep the "
                f"share and add --final (final=True), which then trains on all {task.items}"
            )
