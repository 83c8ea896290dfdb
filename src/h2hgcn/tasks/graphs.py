"""Graph classification: which class has a graph?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.datasets import DataError, GraphSplit, split_graphs
from h2hgcn.datasets.collection import GraphList, as_collection
from h2hgcn.datasets.on_disk import is_graph
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.large import GraphRows, block_diagonal
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.spaces import check_space, mean_points
from h2hgcn.tasks.base import ClassProblem, ClassTask
from h2hgcn.tasks.baselines import Baselines, run_baselines
from h2hgcn.tasks.checks import as_floats, check_edges, check_graph_features, edge_weight_of
from h2hgcn.tasks.heads import ClassHead, Pooling
from h2hgcn.tasks.metrics import Classes, majority_metrics
from h2hgcn.tasks.model import Model

# Bytes of the graphs of a collection that are kept prepared.
_ROOM = 1 << 31


class GraphBatch(NamedTuple):
    """Some graphs as one block-diagonal graph."""

    x: Any
    adjacency: Adjacency
    graph_of_node: Tensor
    y: Tensor

    def to(self, device: torch.device | str) -> "GraphBatch":
        moved: Any = [part.to(device) for part in self]
        return GraphBatch(*moved)


class PreparedGraph(NamedTuple):
    """What batches copy of a graph."""

    x: Tensor
    rows: GraphRows

    @classmethod
    def of(cls, graph: Any, what: str) -> "PreparedGraph":
        """A graph, checked."""
        check_graph_features(graph, what)
        check_edges(graph, what)
        adjacency = prepare_adjacency(graph.edge_index, edge_weight_of(graph), graph.num_nodes)
        return cls(as_floats(graph.x), GraphRows.of(adjacency))

    @property
    def num_bytes(self) -> int:
        values = self.x._values() if self.x.is_sparse else self.x
        return values.nbytes + self.rows.num_bytes


def batch_of(graphs: Sequence[PreparedGraph], y: Tensor | None = None) -> GraphBatch:
    """Some graphs as one block-diagonal graph."""
    adjacency, graph_of_node = block_diagonal([graph.rows for graph in graphs])
    y = torch.zeros(len(graphs), dtype=torch.long) if y is None else y
    return GraphBatch(torch.cat([graph.x for graph in graphs]), adjacency, graph_of_node, y)


class GraphBatches:
    """Batches out of a collection, whose first graphs are prepared once, as many as there is room for."""

    def __init__(self, graphs: Any, y: Tensor) -> None:
        self.graphs = graphs
        self.y = y

    def of(self, chosen: Any) -> GraphBatch:
        """The graphs of these numbers."""
        numbers = torch.as_tensor(chosen)
        return batch_of([self.prepared(number) for number in numbers.tolist()], self.y[numbers])

    def prepared(self, number: int) -> PreparedGraph:
        kept = self._kept
        return kept[number] if number < len(kept) else PreparedGraph.of(self.graphs[number], f"graph {number}")

    @cached_property
    def _kept(self) -> list[PreparedGraph]:
        kept: list[PreparedGraph] = []
        room = _ROOM
        while room > 0 and len(kept) < len(self.graphs):
            kept.append(PreparedGraph.of(self.graphs[len(kept)], f"graph {len(kept)}"))
            room -= kept[-1].num_bytes
        return kept


@dataclass(frozen=True)
class GraphClassification(ClassTask):
    """Distances to learned centroids, averaged over each graph's nodes, into a softmax classifier (Dai et al. 2021,
    section 4.4).

    Args:
        fold, num_folds: Which fold is the test part, of how many.
        protocol: How folds are drawn, see ``split_graphs``: ``"clean"`` or ``"fair-comparison"``; a
            collection that comes with its own ``train``, ``val`` and ``test`` keeps them.
        batch_size: Graphs a batch.
        pooling: Of what the nodes of a graph give: their ``"mean"``, as in the paper, or their ``"sum"``, which also
            says how many they are. An encoder that pools graphs itself does as it does.
        selection: The metric that selects.
        options: See ``ClassTask``, ``SplitTask`` and ``Task``.
    """

    name: ClassVar[str] = "gc"
    title: ClassVar[str] = "graph classification"
    items: ClassVar[str] = "graphs"
    of_collections: ClassVar[bool] = True
    predicts: ClassVar[str | None] = "graphs"
    batch_rule: ClassVar[str] = "graph classification takes its batches from task.batch_size"

    fold: int = 0
    num_folds: int = 10
    protocol: Literal["clean", "fair-comparison"] = "clean"
    batch_size: int = 32
    selection: Literal["accuracy", "macro_f1"] = "accuracy"
    pooling: Pooling = "mean"

    def bind(self, data: Any) -> "GraphProblem":
        """The task on a collection, its graphs split."""
        data = as_collection(data)
        if is_graph(data) or not isinstance(data, Sequence | torch.utils.data.Dataset):
            raise DataError("graph classification needs a collection of graphs, not one graph; choose another task")
        if isinstance(data, GraphList) and data.y is None:
            raise DataError("the graphs have no classes; give a file with a graph's name and class a row (--labels)")
        return GraphProblem(self, data, self._split(data))

    def _split(self, data: Any) -> GraphSplit:
        if self.final:
            everything = np.arange(len(data))
            return GraphSplit(everything, everything[:0], everything[:0], self.split_seed, self.protocol)
        own = [part for part in (getattr(data, name, None) for name in ("train", "val", "test")) if part is not None]
        if len(own) == 3:
            train, val, test = (part.numpy() for part in own)
            return GraphSplit(train, val, test, self.split_seed, "clean")
        folds = split_graphs(data, self.num_folds, seed=self.split_seed, protocol=self.protocol)
        if not 0 <= self.fold < len(folds):
            raise DataError(f"fold={self.fold} is not there: the folds are 0 to {len(folds) - 1}")
        return folds[self.fold]

    def head(self, encoder: nn.Module, in_features: int, num_classes: int | None) -> ClassHead:
        assert num_classes is not None
        classifier = "linear" if pools(encoder) else self.classifier
        return ClassHead(
            encoder, num_classes, self.num_centroids, self.head_dropout, classifier, self.head_norm, self.pooling,
            self.calibrate,
        )  # fmt: skip


class GraphProblem(ClassProblem):
    """Graph classification on a collection that is split."""

    plan = "batches of graphs"

    def __init__(self, task: GraphClassification, data: Any, split: GraphSplit) -> None:
        self.task = task
        self.data = data
        self.split = split
        self.selection_metric = task.selection
        self.num_items = len(split.train)
        self.num_classes = int(data.num_classes)
        self.in_features = int(data.num_node_features)
        if not self.in_features:
            raise DataError(
                "the graphs have no features (x); give every node some, such as its degree by "
                "torch_geometric.transforms.OneHotDegree"
            )
        self.y = torch.as_tensor([int(label) for label in data.y])
        if len(self.y[torch.from_numpy(split.train)].unique()) < 2:
            raise DataError("all training graphs have one class; there is nothing to tell apart")
        for part in task.parts:
            if not len(getattr(split, part)):
                raise DataError(f"no graph is left for the {part} part of {len(self.y)}; use fewer folds")
        self.num_nodes = sum(data[int(k)].num_nodes for k in split.train[: task.batch_size])
        self._graphs = GraphBatches(data, self.y)

    def to(self, device: torch.device | str) -> None:
        self.device = torch.device(device)

    def build(self, encoder: nn.Module) -> Model:
        measured = self.split.train if self.task.scaling in ("standard", "auto") else self.split.train[:1]
        x = torch.cat([self._graphs.prepared(int(k)).x for k in measured])
        return self.task.assemble(encoder, x, self.num_classes)

    def batches(self, random: np.random.RandomState) -> Iterator[GraphBatch]:
        order = self.split.train.copy()
        random.shuffle(order)
        return self._batches_of(order)

    def _batches_of(self, graphs: NDArray[np.int64]) -> Iterator[GraphBatch]:
        for chunk in _chunks(graphs, self.task.batch_size):
            yield self._graphs.of(chunk).to(self.device)

    def loss(self, model: Model, batch: GraphBatch) -> Tensor:
        loss = F.cross_entropy(graph_logits(model, batch), batch.y)
        auxiliary = getattr(model.encoder, "auxiliary_loss", None)
        return loss if auxiliary is None else loss + auxiliary

    def part_logits(self, model: Model, part: str) -> tuple[Classes, Tensor]:
        """The true classes of a part, and their logits."""
        graphs = getattr(self.split, part)
        logits = [graph_logits(model, batch) for batch in self._batches_of(graphs)]
        return self.y.numpy()[graphs], torch.cat(logits)

    @torch.no_grad()
    def finish(self, model: Model) -> bool:
        """Calibrates on validation graphs, which changes no logits."""
        if model.head.calibration is not None:
            y, logits = self.part_logits(model, "val")
            model.head.calibration.fit(logits.double().cpu().numpy(), y)
        return False

    @torch.no_grad()
    def points(self, model: Model) -> Tensor:
        """The midpoint of the nodes of each graph; in flat space their mean."""
        return torch.cat([graph_points(model, batch) for batch in self._batches_of(np.arange(len(self.y)))])

    def baselines(self, part: str) -> Baselines:
        y = self.y.numpy()
        parts = y[self.split.train], y[getattr(self.split, part)]
        return run_baselines({"majority class": lambda: majority_metrics(*parts, self.num_classes)})


def _chunks(items: Any, size: int) -> list[Any]:
    return [items[first : first + size] for first in range(0, len(items), size)]


def pools(encoder: Any) -> bool:
    """Whether an encoder gives one point for each graph of a batch, rather than for each node."""
    return bool(getattr(encoder, "pools", False))


def graph_logits(model: Model, batch: GraphBatch) -> Tensor:
    """Logits of the classes of every graph of a batch."""
    points, graph_of_node = _encoded(model, batch)
    return model.head(points, graph_of_node, len(batch.y), model.distance_scale)


def graph_points(model: Model, batch: GraphBatch) -> Tensor:
    """What a pooling encoder gives; of others the midpoint of each graph's nodes, or in flat space their mean."""
    points, graph_of_node = _encoded(model, batch)
    if graph_of_node is None:
        return points
    return mean_points(points, graph_of_node, len(batch.y), check_space(model.encoder.space))


def _encoded(model: Model, batch: GraphBatch) -> tuple[Tensor, Tensor | None]:
    """Points of nodes and the graph of each node; of a pooling encoder points of graphs, and None."""
    x = model.scaling(model.scaling.shaped(batch.x))
    if pools(model.encoder):
        return model.encoder(x, batch.adjacency, batch.graph_of_node, len(batch.y)), None
    return model.encoder(x, batch.adjacency), batch.graph_of_node


def graph_probabilities(model: Model, graphs: Sequence[Any], in_features: int, batch_size: int = 64) -> Tensor:
    """The probabilities of the classes of some graphs."""
    return model.head.probabilities(_of_graphs(graph_logits, model, graphs, in_features, batch_size))


def encode_graphs(model: Model, graphs: Sequence[Any], in_features: int, batch_size: int = 64) -> Tensor:
    """A point for each of some graphs."""
    return _of_graphs(graph_points, model, graphs, in_features, batch_size)


@torch.no_grad()
def _of_graphs(
    compute: Callable[[Model, GraphBatch], Tensor], model: Model, graphs: Sequence[Any], in_features: int, size: int
) -> Tensor:
    """What is computed of batches of ``size`` graphs, a row for each graph."""
    prepared = [PreparedGraph.of(graph, f"graph {number}") for number, graph in enumerate(graphs)]
    for number, graph in enumerate(prepared):
        if graph.x.shape[1] != in_features:
            raise DataError(
                f"graph {number} has {graph.x.shape[1]} features a node; the model was trained with {in_features}"
            )
    device = next(model.parameters()).device
    return torch.cat([compute(model, batch_of(chunk).to(device)) for chunk in _chunks(prepared, size)])
