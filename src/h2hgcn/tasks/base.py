"""What tasks share: scaled features, the model, the base classes of tasks and problems, and sampled batches."""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from h2hgcn.errors import DataError
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.large import reordered
from h2hgcn.graph.sampling import SampledAdjacency, sample_adjacency
from h2hgcn.kernels.csr import SparseFeatures, is_sparse, prepare_features
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.models.encoder import Encoder
from h2hgcn.models.row_blocks import can_go_by_blocks, points_by_blocks
from h2hgcn.options import NONE, conform, require
from h2hgcn.tasks.baselines import Baselines
from h2hgcn.tasks.checks import check_edges, edge_weight_of, listed, node_features
from h2hgcn.tasks.metrics import (
    Classes,
    Metrics,
    calibration_error,
    class_metrics,
    class_reliability,
    class_report,
    predicted_classes,
)

# Features with more numbers than this are neither copied nor scaled as a whole; rows that are read at once.
_LARGE, _BLOCK = 1 << 27, 1 << 16

# Narrower or fuller features than these are as fast when dense (benchmarks/sparse_products.py).
_WIDE, _SPARSE_SHARE = 128, 0.15

# Up to this share of nonzeros, "auto" leaves features raw. Results depend on it, unlike on ``_SPARSE_SHARE``.
_MOSTLY_ZERO = 0.1

# From this many nodes on, points are computed by blocks. It does not depend on how a model was trained, so a loaded run
# has the points that it had.
LARGE = 1 << 18


def compact(x: Tensor, share: float = _SPARSE_SHARE) -> Tensor:
    """Wide features that are mostly 0 as a sparse tensor, which encoders multiply in a fraction of the time."""
    if is_sparse(x) or x.shape[1] < _WIDE or x.count_nonzero() > share * x.numel():
        return x
    return x.to_sparse_coo()


Scaling = Literal["raw", "row", "standard", "auto"]


class FeatureScaling(nn.Module):
    """``"raw"`` leaves features as they are, ``"row"`` divides each row by its sum, as HGCN does, and ``"standard"``
    gives every column mean 0 and each row a length of about ``length``. ``"auto"`` is ``"raw"`` for sparse features and
    ``"standard"`` for others.

    Mean and deviation are measured on ``x``, the features or, if a state is to be loaded, their number. They are saved
    with the model. Sparse features stay sparse and can only be ``"raw"`` or ``"row"``.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, scaling: Scaling, x: Any, length: float = 1.0) -> None:
        super().__init__()
        if scaling not in get_args(Scaling):
            raise DataError(f"feature scaling {scaling!r} is not known; use one of {', '.join(get_args(Scaling))}")
        self.scaling = scaling
        width = x if isinstance(x, int) else x.shape[1]
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        if isinstance(x, int) or scaling in ("raw", "row"):
            return
        if scaling == "standard" or not is_sparse(compact(x, _MOSTLY_ZERO)):
            self._measure(x, length)

    def _measure(self, x: Tensor, length: float) -> None:
        """Mean and scale of the columns, in double precision and block by block. The scale is 0 for a column that is
        constant up to single precision, whatever its unit.
        """
        _refuse_sparse(x)
        blocks, single = x.split(_BLOCK), torch.finfo(torch.float32)
        mean = torch.stack([block.double().sum(0) for block in blocks]).sum(0) / len(x)
        square = torch.stack([(block.double() - mean).square().sum(0) for block in blocks]).sum(0) / len(x)
        largest = torch.stack([block.abs().amax(0) for block in blocks]).amax(0).double()
        deviation = square.sqrt()
        scale = length / (deviation * x.shape[1] ** 0.5)
        varies = (deviation > single.eps * largest) & (scale < single.max)
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(varies, scale, 0.0))

    def forward(self, x: Any) -> Any:
        if self.needs_dense():
            _refuse_sparse(x)
            return (x - self.mean.to(x.dtype)) * self.scale.to(x.dtype)
        if self.scaling != "row":
            return x
        if not is_sparse(x):
            return x * _inverse(x.sum(1, keepdim=True))
        coo = x.to_sparse_coo().coalesce()
        rows = coo.indices()[0]
        sums = torch.zeros(len(x), dtype=coo.dtype, device=coo.device).index_add(0, rows, coo.values())
        values = coo.values() * _inverse(sums)[rows]
        return torch.sparse_coo_tensor(coo.indices(), values, coo.shape, is_coalesced=True, check_invariants=False)

    def needs_dense(self) -> bool:
        """Whether features are standardized, after which few of them are 0."""
        if self.scaling == "auto":
            return bool((self.mean != 0).any() or (self.scale != 1).any())
        return self.scaling == "standard"

    def shaped(self, x: Any) -> Any:
        """Features in the form, dense or sparse, that is faster."""
        return x if self.needs_dense() else compact(x)


def _refuse_sparse(x: Any) -> None:
    if is_sparse(x):
        raise DataError("standardized features are not sparse any more; use raw or row scaling for sparse ones")


def _inverse(sums: Tensor) -> Tensor:
    return torch.where(sums == 0, 0.0, 1 / sums)


class ScaledFeatures:
    """Features, scaled once for all steps, since scaling is not learned."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self._kept: tuple[FeatureScaling, Any] | None = None
        self._prepared: SparseFeatures | None = None

    def to(self, device: torch.device | str) -> "ScaledFeatures":
        return ScaledFeatures(self.x.to(device))

    def of(self, scaling: FeatureScaling, prepared: bool = False) -> Any:
        """The scaled features; sparse ones ``prepared`` as our encoders multiply them, or as a tensor."""
        if self._kept is None or self._kept[0] is not scaling:
            self._kept, self._prepared = (scaling, scaling(scaling.shaped(self.x))), None
        whole = self._kept[1]
        if not prepared or not is_sparse(whole):
            return whole
        if self._prepared is None:
            self._prepared = prepare_features(whole)
        return self._prepared

    def rows(self, scaling: FeatureScaling, nodes: Tensor | slice) -> Any:
        """The scaled features of some nodes."""
        is_large = not is_sparse(self.x) and self.x.numel() > _LARGE
        by_rows = is_large and not is_sparse(scaling.shaped(self.x[:_BLOCK]))
        x = self.x if by_rows else self.of(scaling, prepared=True)
        nodes = nodes if isinstance(nodes, slice) else nodes.to(self.x.device)
        if isinstance(x, SparseFeatures):
            return x.rows(nodes)
        chosen = x[nodes] if isinstance(nodes, slice) else x.index_select(0, nodes)
        return scaling(chosen) if by_rows else chosen


class Model(nn.Module):
    """Features, encoder and head of a task, as one module with one state."""

    encoder: Any
    head: Any

    def __init__(self, scaling: FeatureScaling, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.scaling = scaling
        self.encoder = encoder
        self.head = head

    @property
    def dim(self) -> int:
        """The dimension of the encoder's space."""
        return int(self.encoder.dim)

    @property
    def distance_scale(self) -> Any:
        """The encoder's factor for distances, if its curvature is not -1."""
        is_unit = getattr(self.encoder, "has_unit_curvature", False)
        return 1.0 if is_unit else getattr(self.encoder, "distance_scale", 1.0)

    @property
    def scale(self) -> float:
        """``distance_scale`` as a number."""
        return float(torch.as_tensor(self.distance_scale).detach())


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


class Task:
    """Settings of a task; a frozen dataclass inherits from it.

    ``items`` are what it trains on, in the plural; ``of_collections`` says whether its data are many graphs;
    ``predicts`` says what has probabilities: "pairs", "nodes", "graphs" or None. The first of ``parts`` selects the
    epoch and the last is reported. A final fit has no parts, and its last epoch is taken.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    items: ClassVar[str]
    of_collections: ClassVar[bool] = False
    predicts: ClassVar[str | None] = None
    parts: ClassVar[tuple[str, ...]] = ("val", "test")
    scaling: Scaling
    feature_length: float

    def __post_init__(self) -> None:
        conform(self, "[task]")
        if getattr(self, "final", False):
            object.__setattr__(self, "parts", ())  # nothing is held out
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

    def check_shares(self) -> None:
        """Raises if a part has share 0, by which somebody means to train on everything."""
        for part in self.parts:
            if getattr(self, part) == 0:
                raise DataError(
                    f"task.{part}=0 leaves nothing to {'choose the epoch by' if part == 'val' else 'test on'}; give a "
                    f"positive share: --final (final=True) afterwards trains on all {self.items}"
                )


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


def encoded(model: Model, features: ScaledFeatures, graph: Adjacency, nodes: Tensor | None = None) -> Tensor:
    """What the encoder gives for the rows of a graph. Of a sampled one only the seeds, which come first, are of use.

    ``nodes`` are the training nodes that the rows stand for, for encoders with ``NodeVectors``; None for all in order.
    """
    part = graph.nodes if isinstance(graph, Adjacency) else None  # other encoders may have graphs of their own
    if part is None:
        x = features.of(model.scaling, isinstance(model.encoder, Encoder))
    else:
        x = features.rows(model.scaling, part)
    nodes = part if nodes is None else nodes
    takes_nodes = nodes is not None and node_vectors_of(model.encoder) is not None
    return model.encoder(x, graph, nodes=nodes) if takes_nodes else model.encoder(x, graph)


def all_points(model: Model, features: ScaledFeatures, graph: Adjacency, nodes: Tensor | None = None) -> Tensor:
    """The points of all nodes; of a large graph by blocks of rows, if the encoder's layers allow for it: as exact."""
    learns = model.training or torch.is_grad_enabled()
    if learns or not can_go_by_blocks(model.encoder) or graph.num_nodes < LARGE:
        return encoded(model, features, graph, nodes)
    return points_by_blocks(model.encoder, partial(features.rows, model.scaling), graph, nodes=nodes)


@torch.no_grad()
def encode_nodes(model: Model, data: Any, task_name: str, in_features: int, nodes: Tensor | None = None) -> Tensor:
    """Points of all nodes of a graph, known or new; all of its edges carry messages. For ``nodes`` see ``encoded``."""
    return all_points(model, *encoder_inputs(model, data, task_name, in_features), nodes)


def encoder_inputs(model: Model, data: Any, task_name: str, in_features: int) -> tuple[ScaledFeatures, Adjacency]:
    """The features and the edges of a graph, known or new, where the model is."""
    check_edges(data)
    x = node_features(data, task_name, data.edge_index)
    if x.shape[1] != in_features:
        names = getattr(data, "feature_names", None)
        given = f": {listed(names)}" if names else ""
        raise DataError(
            f"the graph has {x.shape[1]} features a node{given}; the model was trained with {in_features}; "
            "give the same columns in the same order"
        )
    device = next(model.parameters()).device
    adjacency = prepare_adjacency(data.edge_index, edge_weight_of(data), data.num_nodes)
    return ScaledFeatures(x).to(device), adjacency.to(device)


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
