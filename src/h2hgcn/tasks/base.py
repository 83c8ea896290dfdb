"""What tasks share: the interface of a problem, checks of graphs and features, scaling, encoding, batches."""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, Protocol, TypeVar, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from h2hgcn.datasets import task_features
from h2hgcn.datasets.arrays import edge_ends
from h2hgcn.errors import DataError
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.features import SparseFeatures, prepare_features
from h2hgcn.graph.large import reordered
from h2hgcn.graph.sampling import SampledAdjacency, sample_adjacency
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.models.encoder import Encoder
from h2hgcn.models.row_blocks import can_go_by_blocks, points_by_blocks
from h2hgcn.tasks.baselines import Baselines
from h2hgcn.tasks.metrics import (
    Classes,
    Metrics,
    calibration_error,
    class_metrics,
    class_reliability,
    class_report,
    predicted_classes,
)


def check_edges(graph: Any, what: str = "the graph") -> None:
    """Raises unless a graph has edges between its own nodes, with weights, if it has any, that can carry messages."""
    if not isinstance(getattr(graph, "edge_index", None), Tensor):
        raise DataError(f"{what} has no tensor edge_index; give it one, (2, 0) if there is no edge")
    try:
        edge_ends(graph)
    except DataError as error:
        raise DataError(f"{what}: {error}") from None
    weight = getattr(graph, "edge_weight", None)
    if weight is not None:
        _check_weight(weight, graph.edge_index.shape[1], what)


def edge_weight_of(graph: Any) -> Tensor | None:
    """The weights of a graph's edges, if it has any, as plain numbers: whatever they were made from is not trained."""
    weight = getattr(graph, "edge_weight", None)
    return None if weight is None else weight.detach().reshape(-1)


def check_some_weight(weight: Tensor, what: str = "the graph") -> None:
    """Raises if there are edges, but none of them carries anything."""
    if weight.numel() and not bool(weight.any()):
        raise DataError(f"all edge weights of {what} are zero; leave edge_weight out for an unweighted graph")


def _check_weight(weight: Any, num_edges: int, what: str) -> None:
    if not isinstance(weight, Tensor) or weight.shape not in ((num_edges,), (num_edges, 1)) or weight.is_complex():
        shape = f" of shape {tuple(weight.shape)}" if hasattr(weight, "shape") else ""
        raise DataError(
            f"edge_weight of {what} is a {type(weight).__name__}{shape}; pass a tensor with one number for each of its "
            f"{num_edges} edges"
        )
    if not bool(weight.to(torch.float32).isfinite().all()):
        raise DataError(f"edge_weight of {what} holds numbers that are not finite in float32; fix or drop them")
    if bool((weight < 0).any()):
        raise DataError(f"edge_weight of {what} holds {weight.min().item():g}; weights are not negative: shift or clip")
    check_some_weight(weight, what)


# Bytes: PyTorch's allocator on the CPU.
_ALIGNMENT = 64

# Rows that are looked at together: what is written in passing would be as large as the features.
_CHECKED_ROWS = 1 << 16


def node_features(graph: Any, task: str, edge_index: Tensor | None = None) -> Tensor:
    """``task_features`` of a graph, known to be good."""
    check_features(graph)
    return _aligned(as_floats(task_features(graph, task, edge_index)))


def check_features(graph: Any, what: str = "the graph") -> None:
    """Raises unless a graph has features: a finite row of numbers for each node."""
    x = getattr(graph, "x", None)
    if x is None:
        raise DataError(f"{what} has no features (x); give it some, or let load_graph make them from the graph")
    if not isinstance(x, Tensor) or x.dim() != 2 or x.is_complex() or x.shape[1] < 1:
        shape = f" of shape {tuple(x.shape)}" if hasattr(x, "shape") else ""
        raise DataError(f"the features (x) of {what} are a {type(x).__name__}{shape}; pass a tensor (nodes, features)")
    if len(x) != graph.num_nodes:
        raise DataError(f"{what} has {graph.num_nodes} nodes, but {len(x)} rows of features (x); give each node one")
    values = x if x.layout == torch.strided else x.to_sparse_coo().coalesce().values()
    if not all(bool(block.isfinite().all()) for block in values.split(_CHECKED_ROWS)):
        where = f", first in row {int((~x.isfinite()).any(1).nonzero()[0])}" if x.layout == torch.strided else ""
        raise DataError(f"the features (x) of {what} hold NaN or infinity{where}; fix or drop them")


def check_same_columns(before: list[str] | None, given: Any) -> None:
    """Raises if features have other names or another order than in training, which a model could not notice."""
    now = getattr(given, "feature_names", None)
    if before is not None and now is not None and list(before) != list(now):
        raise DataError(
            f"the features of {getattr(given, 'name', None) or 'the graph'} are {listed(now)}; the run was trained "
            f"with {listed(before)}: give the same columns in the same order"
        )


def listed(names: list[str]) -> str:
    """The first names, for messages."""
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _aligned(x: Tensor) -> Tensor:
    """Features row by row, in memory as PyTorch allots it: products depend to the last bit on where and in which order
    their numbers lie, and those that come from NumPy lie anywhere.
    """
    if x.layout != torch.strided:
        return x
    x = x.contiguous()
    return x.clone() if x.data_ptr() % _ALIGNMENT else x


def as_floats(x: Tensor) -> Tensor:
    """Whole numbers and halves in single precision; a mean, say, could not be subtracted from whole numbers. Whatever
    features were made from is not trained.
    """
    return x.detach() if x.dtype in (torch.float32, torch.float64) else x.detach().float()


Scaling = Literal["raw", "row", "standard", "auto"]

# Narrower or fuller features than these are as fast when dense (benchmarks/sparse_products.py has the products).
_WIDE = 128
_SPARSE_SHARE = 0.15

# What "auto" takes for sparse, so that it leaves it raw. Not a matter of speed: a model depends on it.
_MOSTLY_ZERO = 0.1


# Numbers from which on features are neither copied nor scaled as a whole, and rows that are measured at once.
_LARGE, _BLOCK = 1 << 27, 1 << 16


class FeatureScaling(nn.Module):
    """``"raw"`` leaves features alone, ``"row"`` divides each row by its sum, as HGCN does, and ``"standard"`` gives
    every column mean 0 and each row a length of about ``length``.

    ``"auto"`` is ``"raw"`` for sparse features and ``"standard"`` for others.

    Mean and deviation are those of the data that the module was made with, and are saved with a model, so that new
    nodes are measured by the same rule. Sparse features stay sparse: only ``"raw"`` and ``"row"`` serve them.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, scaling: Scaling, x: Any, length: float = 1.0) -> None:
        """``x`` is the features to measure, or their number, if what was measured is to be loaded."""
        super().__init__()
        if scaling not in get_args(Scaling):
            raise DataError(f"feature scaling {scaling!r} is not known; use one of {', '.join(get_args(Scaling))}")
        self.scaling = scaling
        width = x if isinstance(x, int) else x.shape[1]
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        if isinstance(x, int) or (scaling == "auto" and _is_sparse(compact(x, _MOSTLY_ZERO))):
            return
        if scaling in ("standard", "auto"):
            _refuse_sparse(x)
            mean, scale = _measured(x, length)
            self.mean.copy_(mean)
            self.scale.copy_(scale)

    def forward(self, x: Any) -> Any:
        if self.scaling == "raw" or (self.scaling == "auto" and not self.needs_dense()):
            return x
        if self.scaling in ("standard", "auto"):
            _refuse_sparse(x)
            return (x - self.mean.to(x.dtype)) * self.scale.to(x.dtype)
        if _is_sparse(x):
            coo = x.to_sparse_coo().coalesce()
            rows = coo.indices()[0]
            sums = torch.zeros(len(x), dtype=coo.dtype, device=coo.device).index_add(0, rows, coo.values())
            values = coo.values() * _inverse(sums)[rows]
            return torch.sparse_coo_tensor(coo.indices(), values, coo.shape, is_coalesced=True, check_invariants=False)
        return x * _inverse(x.sum(1, keepdim=True))

    def needs_dense(self) -> bool:
        """Whether features are standardized, after which few of them are 0."""
        if self.scaling == "auto":
            return bool((self.mean != 0).any() or (self.scale != 1).any())
        return self.scaling == "standard"

    def shaped(self, x: Any) -> Any:
        """Features in the form, dense or sparse, that is faster."""
        return x if self.needs_dense() else compact(x)

    def extra_repr(self) -> str:
        return repr(self.scaling)


def compact(x: Tensor, share: float = _SPARSE_SHARE) -> Tensor:
    """Wide features that are mostly 0 as a sparse tensor, which encoders multiply in a fraction of the time."""
    if _is_sparse(x) or x.shape[1] < _WIDE or x.count_nonzero() > share * x.numel():
        return x
    return x.to_sparse_coo()


class ScaledFeatures:
    """Features and what a model's scaling makes of them, worked out once, since scaling is not learned."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self._scaled: tuple[FeatureScaling, Any] | None = None
        self._prepared: SparseFeatures | None = None

    def to(self, device: torch.device | str) -> "ScaledFeatures":
        return ScaledFeatures(self.x.to(device))

    def of(self, scaling: FeatureScaling) -> Any:
        """What ``scaling`` makes of them."""
        if self._scaled is None or self._scaled[0] is not scaling:
            self._scaled = (scaling, scaling(scaling.shaped(self.x)))
            self._prepared = None
        return self._scaled[1]

    def prepared(self, scaling: FeatureScaling) -> Any:
        """The same, sparse ones in the form that our encoders multiply."""
        whole = self.of(scaling)
        if not _is_sparse(whole):
            return whole
        if self._prepared is None:
            self._prepared = prepare_features(whole)
        return self._prepared

    def rows(self, scaling: FeatureScaling, nodes: Tensor | slice) -> Any:
        """Those of some nodes."""
        if not _is_sparse(self.x) and self.x.numel() > _LARGE and not _is_sparse(scaling.shaped(self.x[:_BLOCK])):
            return scaling(
                self.x[nodes] if isinstance(nodes, slice) else self.x.index_select(0, nodes.to(self.x.device))
            )
        whole = self.prepared(scaling)
        if isinstance(whole, SparseFeatures):
            return whole.rows(nodes if isinstance(nodes, slice) else nodes.to(whole.matrix.col.device))
        return whole[nodes] if isinstance(nodes, slice) else whole.index_select(0, nodes.to(whole.device))


def _measured(x: Tensor, length: float) -> tuple[Tensor, Tensor]:
    """Mean and scale of columns, in double precision; large features block by block."""
    if x.numel() <= _LARGE:
        whole = x.double()
        return whole.mean(0), _standard_scale(whole.std(0, correction=0), whole.abs().amax(0), length)
    blocks = x.split(_BLOCK)
    mean = sum(block.double().sum(0) for block in blocks) / len(x)
    square = sum((block.double() - mean).square().sum(0) for block in blocks) / len(x)
    largest = torch.stack([block.abs().amax(0) for block in blocks]).amax(0).double()
    assert isinstance(mean, Tensor)
    assert isinstance(square, Tensor)
    return mean, _standard_scale(square.sqrt(), largest, length)


def _standard_scale(deviation: Tensor, largest: Tensor, length: float) -> Tensor:
    """What columns are multiplied with: 0 for one that is constant as far as single precision can tell, whatever its
    unit.
    """
    single = torch.finfo(torch.float32)
    scale = length / (deviation * len(deviation) ** 0.5)
    return torch.where((deviation > single.eps * largest) & (scale < single.max), scale, 0.0)


def _refuse_sparse(x: Any) -> None:
    if _is_sparse(x):
        raise DataError("standardized features are not sparse any more; use raw or row scaling for sparse ones")


def _inverse(sums: Tensor) -> Tensor:
    return torch.where(sums == 0, 0.0, 1 / sums)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, Tensor) and x.layout != torch.strided


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

    @property
    def scale(self) -> float:
        """``distance_scale`` as a number."""
        return float(torch.as_tensor(self.distance_scale).detach())


class Task(Protocol):
    """Settings of a task, and what can be made of them.

    ``items`` are what it trains on, in the plural; ``of_collections`` says whether its data are many graphs;
    ``predicts`` says what has probabilities: "pairs", "nodes", "graphs" or None. The first of ``parts`` selects the
    epoch, the last is reported: val and test, or one part that is both where nothing is held out. A final fit has
    none, and its last epoch is taken.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    items: ClassVar[str]
    of_collections: ClassVar[bool]
    predicts: ClassVar[str | None]
    parts: ClassVar[tuple[str, ...]]

    def bind(self, data: Any) -> "Problem":
        """The task on given data, split."""

    def assemble(self, encoder: nn.Module, x: Any, num_classes: int | None) -> Model:
        """The model of this task on an encoder, whose space decides on the head. ``x`` is the features to measure the
        scaling on, or their number, if the scaling is to be loaded.
        """


class Problem(Protocol):
    """A task on given data, split and ready. The loop asks it for batches, losses and metrics.

    ``num_nodes`` are those that an encoder gets at once, about. Problems whose batches can be sampled have a ``graph``
    and draw from it if they are given a ``sampling``. Others say what a step sees (``plan``), and their task why it
    cannot be sampled (``batch_rule``).
    """

    task: Any
    split: Any
    graph: Any
    in_features: int
    num_nodes: int
    sampling: Any
    plan: str | None
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
        """The loss of one batch, to be minimized."""

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
                f"task.{part}=0 leaves nothing to {'choose the epoch by' if part == 'val' else 'test on'}; give a "
                f"positive share: --final (final=True) afterwards trains on all {task.items}"
            )


# Nodes from which on points are worked out by blocks. It does not depend on how a model was trained, so that a run that
# is loaded has the points that it had.
LARGE = 1 << 18


def encoded(model: Model, features: ScaledFeatures, graph: Adjacency, nodes: Tensor | None = None) -> Tensor:
    """What the encoder gives for the rows of a graph. Of a sampled one only the seeds, which come first, are of use.

    ``nodes`` are the training nodes that the rows stand for, for encoders with ``NodeVectors``; None for all in order.
    """
    part = graph.nodes if isinstance(graph, Adjacency) else None
    if part is not None:
        x = features.rows(model.scaling, part)
    else:
        x = (features.prepared if isinstance(model.encoder, Encoder) else features.of)(model.scaling)
    nodes = part if nodes is None else nodes
    if nodes is None or node_vectors_of(model.encoder) is None:
        points: Tensor = model.encoder(x, graph)
    else:
        points = model.encoder(x, graph, nodes=nodes)
    return points


def all_points(model: Model, features: ScaledFeatures, graph: Adjacency, nodes: Tensor | None = None) -> Tensor:
    """The points of all nodes; of a large graph by blocks of rows, if the encoder's layers allow for it: as exact."""
    learns = model.training or torch.is_grad_enabled()
    if learns or not can_go_by_blocks(model.encoder) or graph.num_nodes < LARGE:
        return encoded(model, features, graph, nodes)
    rows_of = partial(features.rows, model.scaling)
    return points_by_blocks(model.encoder, rows_of, graph, nodes=nodes)  # type: ignore[arg-type]


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


class OneGraphProblem:
    """What problems on one graph share: its features and its adjacency where training is, and on the CPU the ``graph``
    that batches are drawn from.

    Args:
        edge_index, edge_weight: The edges that carry messages.
        seen: The edges that structural features are made from, if not all.
    """

    plan: str | None = None
    num_classes: int | None = None

    def __init__(
        self, task: Any, data: Any, edge_index: Tensor, edge_weight: Tensor | None, seen: Tensor | None = None
    ) -> None:
        self.task = task
        self.num_nodes = int(data.num_nodes)
        self.x = node_features(data, task.name, seen)
        self.in_features: int = self.x.shape[1]
        self.features = ScaledFeatures(self.x)
        self.adjacency = prepare_adjacency(edge_index, edge_weight, self.num_nodes)
        self.graph: Adjacency = self.adjacency
        self.messages: Adjacency = self.adjacency  # the same where training is
        self.device = torch.device("cpu")
        self.sampling: Sampling | None = None

    def to(self, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self.features, self.adjacency = self.features.to(device), self.adjacency.to(device)
        self.messages = self.messages.to(device)

    def build(self, encoder: nn.Module) -> Model:
        model: Model = self.task.assemble(encoder, self.x, self.num_classes)
        return model

    def points(self, model: Model) -> Tensor:
        """The points of all nodes."""
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


class ClassProblem:
    """What problems of classes share: metrics, from the true classes of a part and their logits."""

    num_classes: int | None

    @abstractmethod
    def part_logits(self, model: Model, part: str) -> tuple[Classes, Tensor]:
        """The true classes of a part, and the logits of the finished model."""

    @torch.no_grad()
    def evaluate(self, model: Model, part: str) -> Metrics:
        """The metrics of classes, and of the test part the calibration error."""
        (y, logits), head = self.part_logits(model, part), cast(Any, model.head)
        assert self.num_classes is not None
        metrics = class_metrics(y, predicted_classes(logits), self.num_classes)
        if part == "test":
            metrics["ece"] = calibration_error(class_reliability(head.probabilities(logits), y))
        return metrics

    @torch.no_grad()
    def classes(self, model: Model, part: str) -> tuple[Classes, Classes]:
        """The true and the predicted classes of a part."""
        y, logits = self.part_logits(model, part)
        return y, predicted_classes(logits)

    @torch.no_grad()
    def details(self, model: Model, part: str) -> dict[str, Any]:
        """Each class of a part, the confusion matrix, and how often predictions with such a probability are right."""
        (y, logits), head = self.part_logits(model, part), cast(Any, model.head)
        assert self.num_classes is not None
        bins = class_reliability(head.probabilities(logits), y)
        return {"reliability": bins, **class_report(y, predicted_classes(logits), self.num_classes)}


Prepared = TypeVar("Prepared")


@dataclass(frozen=True)
class Sampling:
    """``batch_size`` links or nodes a step; ``fanout[h]`` neighbors at hop ``h``; ``workers`` threads that prepare
    batches ahead, none of which changes what they are. Of several processes, the one with this ``rank`` takes its part
    of each batch.
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

    def prepared(self, jobs: Iterable[Callable[[], Prepared]]) -> Iterator[Prepared]:
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
