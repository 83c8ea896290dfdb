"""The base classes of tasks and problems, and sampled batches."""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from h2hgcn.errors import DataError
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.large import reordered
from h2hgcn.graph.sampling import SampledAdjacency, sample_adjacency
from h2hgcn.layers import prepare_adjacency
from h2hgcn.options import NONE, conform, require
from h2hgcn.tasks.baselines import Baselines
from h2hgcn.tasks.checks import node_features
from h2hgcn.tasks.heads import Classifier
from h2hgcn.tasks.metrics import (
    Classes,
    Metrics,
    calibration_error,
    class_metrics,
    class_reliability,
    class_report,
    predicted_classes,
)
from h2hgcn.tasks.model import FeatureScaling, Model, ScaledFeatures, Scaling, all_points

# What settings of tasks must be, by their names.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("batch_size", "num_centroids", "candidates"), (lambda n: n >= 1, "must be at least 1")),
    "negatives": (lambda n: n >= 1, "must be at least 1: pairs to tell links from"),
    **dict.fromkeys(
        ("feature_length", "temperature", "t"), (lambda x: 0 < x < math.inf, "must be positive and finite")
    ),
    "link_weight": (lambda x: 0 <= x < math.inf, "must be 0 or more"),
    "head_dropout": (lambda share: 0 <= share < 1, "must be 0 or more, and below 1"),
    "message_share": (lambda share: 0 < share < 1, f"must lie between 0 and 1, or be {NONE!r}"),
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """Settings of a task.

    ``items`` are what it trains on, in the plural; ``of_collections`` says whether its data are many graphs;
    ``predicts`` says what has probabilities: "pairs", "nodes", "graphs" or None. The first of ``parts`` selects the
    epoch and the last is reported. A final fit has no parts, and its last epoch is taken.

    Args:
        scaling: Of features: ``"raw"``, ``"row"`` (rows of sum 1), ``"standard"`` (columns of mean 0, rows of length
            ``feature_length`` or so), or ``"auto"`` (raw if mostly 0, else standard).
        feature_length: Of standardized features.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    items: ClassVar[str]
    of_collections: ClassVar[bool] = False
    predicts: ClassVar[str | None] = None
    parts: ClassVar[tuple[str, ...]] = ("val", "test")

    scaling: Scaling = "raw"
    feature_length: float = 1.0

    def __post_init__(self) -> None:
        conform(self, "[task]")
        for name, (fits, rule) in _RULES.items():
            if hasattr(self, name):
                require(self, "task", (name,), fits, rule)

    def bind(self, data: Any) -> "Problem":
        """The task on given data, split."""
        raise NotImplementedError

    def head(self, encoder: nn.Module, in_features: int, num_classes: int | None) -> nn.Module:
        """What makes predictions of points of an encoder."""
        raise NotImplementedError

    def assemble(self, encoder: nn.Module, x: Any, num_classes: int | None = None) -> Model:
        """The model of this task on an encoder. ``x`` is the features to measure the scaling on, or their number, if
        the scaling is to be loaded.
        """
        in_features = x if isinstance(x, int) else x.shape[1]
        return Model(
            FeatureScaling(self.scaling, x, self.feature_length), encoder, self.head(encoder, in_features, num_classes)
        )


@dataclass(frozen=True, kw_only=True)
class SplitTask(Task):
    """A task on items of which some are held out.

    Args:
        split_seed: The seed by which the split is drawn.
        calibrate: Whether probabilities are calibrated on the validation part once training is over, see
            ``LinkCalibration`` and ``ClassCalibration``.
        final: Whether to train on everything, with nothing held out, and to take the last epoch; ``h2hgcn finalize``
            and ``Run.finalize`` set it.
    """

    split_seed: int = 1234
    calibrate: bool = True
    final: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.final:
            object.__setattr__(self, "parts", ())

    def check_parts(self) -> None:
        """Raises if a part has share 0, by which somebody means to train on everything."""
        for part in self.parts:
            if getattr(self, part) == 0:
                raise DataError(
                    f"task.{part}=0 leaves nothing to {'choose the epoch by' if part == 'val' else 'test on'}; give a "
                    f"positive share: --final (final=True) afterwards trains on all {self.items}"
                )


@dataclass(frozen=True, kw_only=True)
class ClassTask(SplitTask):
    """A task of classes.

    Args:
        num_centroids: Learned points whose distances the classifier sees.
        classifier: ``"centroids"``, or ``"linear"`` in the tangent space of the origin; None takes centroids for
            hyperbolic encoders and linear for Euclidean ones. An encoder that pools graphs itself has the linear one.
        head_dropout: Before the classifier.
        head_norm: Whether what the classifier sees (distances to centroids, which are much alike) is standardized over
            a batch, by batch normalization.
    """

    num_centroids: int = 100
    classifier: Classifier | None = None
    head_dropout: float = 0.0
    head_norm: bool = False


class Problem(ABC):
    """A task on given data, split and ready. The training loop asks it for batches, losses and metrics.

    ``num_items`` links, nodes or graphs are trained on; an encoder gets about ``num_nodes`` at once. Problems whose
    batches can be sampled have a ``graph`` and draw from it if they are given a ``sampling``. Others say what a step
    sees (``plan``), and their task why it cannot be sampled (``batch_rule``).
    """

    task: Any
    split: Any
    graph: Any = None
    in_features: int
    num_items: int
    num_nodes: int
    num_classes: int | None = None
    sampling: "Sampling | None" = None
    plan: str | None = None
    selection_metric: str
    device = torch.device("cpu")

    @abstractmethod
    def to(self, device: torch.device | str) -> None:
        """Moves what batches are made of."""

    @abstractmethod
    def build(self, encoder: nn.Module) -> Model:
        """The model of this problem, its scaling measured on the features."""

    @abstractmethod
    def batches(self, random: np.random.RandomState) -> Iterator[Any]:
        """The batches of one epoch, everything random in them drawn from ``random``."""

    @abstractmethod
    def loss(self, model: Model, batch: Any) -> Tensor:
        """The loss of one batch, to be minimized."""

    @abstractmethod
    def evaluate(self, model: Model, part: str) -> Metrics:
        """All metrics on one of the task's ``parts``, of a model in evaluation mode."""

    @abstractmethod
    def points(self, model: Model) -> Tensor:
        """The embedding: a point for each node, or for each graph of a collection."""

    @abstractmethod
    def baselines(self, part: str) -> Baselines:
        """The metrics on a part of scores that need no training."""


class OneGraphProblem(Problem):
    """What problems on one graph share: its features and its adjacency where training is, and on the CPU the ``graph``
    that batches are drawn from.

    Args:
        edge_index, edge_weight: The edges that carry messages.
        seen: The edges that structural features are made from, if not all.
    """

    def __init__(
        self, task: Any, data: Any, edge_index: Tensor, edge_weight: Tensor | None, seen: Tensor | None = None
    ) -> None:
        self.task = task
        self.num_nodes = int(data.num_nodes)
        self.x = node_features(data, task.name, seen)
        self.in_features = self.x.shape[1]
        self.features = ScaledFeatures(self.x)
        self.adjacency = prepare_adjacency(edge_index, edge_weight, self.num_nodes)
        self.graph: Adjacency = self.adjacency
        self.messages: Adjacency = self.adjacency  # the graph where training is

    def to(self, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.features, self.adjacency = self.features.to(device), self.adjacency.to(device)
        self.messages = self.messages.to(device)

    def build(self, encoder: nn.Module) -> Model:
        return self.task.assemble(encoder, self.x, self.num_classes)

    def points(self, model: Model) -> Tensor:
        return all_points(model, self.features, self.adjacency)

    def reorder(self) -> NDArray[np.int64]:
        """Trains on nodes in an order that is faster for graphs that no cache holds; returns the new number of each.
        Evaluation is as before.
        """
        self.graph = reordered(self.graph)
        self.messages = self.graph.to(self.device)
        return self.graph.places.numpy()

    def sampled(
        self, graph: Adjacency, count: int, random: np.random.RandomState, batch: Callable[..., Any]
    ) -> Iterator[Any]:
        """Batches ``batch(items, seed)`` of ``count`` items, prepared ahead and then moved to the device."""
        assert self.sampling is not None
        _ = graph.loop_entries  # before threads ask for them
        jobs = (partial(batch, *drawn) for drawn in self.sampling.draws(count, random))
        # unlike a loop, map holds no batch while the next is made
        return map(lambda made: made.to(self.device), self.sampling.prepared(jobs))  # noqa: C417


class ClassProblem(Problem):
    """What problems of classes share: metrics, from the true classes of a part and their logits."""

    num_classes: int

    @abstractmethod
    def part_logits(self, model: Model, part: str) -> tuple[Classes, Tensor]:
        """The true classes of a part, and the logits of the finished model."""

    @torch.no_grad()
    def evaluate(self, model: Model, part: str) -> Metrics:
        """The metrics of classes, and of the test part the calibration error."""
        y, logits = self.part_logits(model, part)
        metrics = class_metrics(y, predicted_classes(logits), self.num_classes)
        if part == "test":
            metrics["ece"] = calibration_error(class_reliability(model.head.probabilities(logits), y))
        return metrics

    @torch.no_grad()
    def classes(self, model: Model, part: str) -> tuple[Classes, Classes]:
        """The true and the predicted classes of a part."""
        y, logits = self.part_logits(model, part)
        return y, predicted_classes(logits)

    @torch.no_grad()
    def details(self, model: Model, part: str) -> dict[str, Any]:
        """Each class of a part, the confusion matrix, and how often predictions with such a probability are right."""
        y, logits = self.part_logits(model, part)
        bins = class_reliability(model.head.probabilities(logits), y)
        return {"reliability": bins, **class_report(y, predicted_classes(logits), self.num_classes)}


@dataclass(frozen=True)
class Sampling:
    """``batch_size`` links or nodes a step; ``fanout[h]`` neighbors at hop ``h``; ``workers`` threads that prepare
    batches ahead and do not change them. Of several processes, the one with this ``rank`` takes its part of each batch.
    """

    batch_size: int
    fanout: tuple[int, ...]
    workers: int = 0
    rank: int = 0
    ranks: int = 1

    @property
    def mine(self) -> slice:
        """Which items of a batch fall to this process."""
        return slice(self.rank, None, self.ranks)

    def draws(self, count: int, random: np.random.RandomState) -> Iterator[tuple[NDArray[np.int64], int]]:
        """All of ``count`` items in a random order, batch by batch, each with a seed of its own."""
        order = random.permutation(count)
        bounds = [*range(0, count, self.batch_size), count]
        if len(bounds) > 2 and bounds[-1] - bounds[-2] < self.ranks:  # each process needs something
            del bounds[-2]
        for first, last in pairwise(bounds):
            yield order[first:last], int(random.randint(0, 2**63 - 1, dtype=np.int64))

    def neighborhoods(
        self, graph: Adjacency, nodes: NDArray[np.int64], seed: int
    ) -> tuple[SampledAdjacency, NDArray[np.int64]]:
        """The sampled neighborhoods of ``nodes``, which may repeat, and the row of each.

        What is drawn for a node does not depend on the others, so each process draws for its own alone.
        """
        named = np.zeros(graph.num_nodes, dtype=bool)
        named[nodes] = True
        seeds = np.flatnonzero(named)
        number_of = np.empty(graph.num_nodes, np.int64)
        number_of[seeds] = np.arange(len(seeds))
        return sample_adjacency(graph, seeds, self.fanout, seed), number_of[nodes]

    def prepared(self, jobs: Iterable[Callable[[], Any]]) -> Iterator[Any]:
        """What the jobs return, in their order; with workers, two jobs each are started ahead."""
        if not self.workers:
            yield from (job() for job in jobs)
            return
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="h2hgcn-batches")
        waiting: deque[Future[Any]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def batch_random(seed: int) -> np.random.RandomState:
    """The random state of a batch, the same in every worker."""
    return np.random.RandomState(np.random.SeedSequence(seed).generate_state(4))
