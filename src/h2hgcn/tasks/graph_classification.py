"""Graph classification: which class has a graph?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Batch

from h2hgcn.datasets import DataError, GraphSplit, split_graphs
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.tasks.heads import ClassHead
from h2hgcn.tasks.metrics import class_metrics
from h2hgcn.tasks.problem import Metrics, Model
from h2hgcn.tasks.scaling import FeatureScaling, Scaling


@dataclass(frozen=True)
class GraphClassification:
    """Distances to learnt centroids, averaged over each graph's nodes, into a softmax classifier (Dai et al. 2021,
    section 4.4).

    Args:
        fold, num_folds, protocol, split_seed: Which of the folds of ``split_graphs``; a collection that comes with its
            own ``train``, ``val`` and ``test`` keeps them.
        batch_size: Graphs a batch.
        num_centroids, head_dropout: Of the classifier.
        selection: The metric that selects.
        scaling, feature_length: Of the features, see ``FeatureScaling``.
    """

    fold: int = 0
    num_folds: int = 10
    protocol: Literal["clean", "fair-comparison"] = "clean"
    split_seed: int = 1234
    batch_size: int = 32
    num_centroids: int = 100
    selection: Literal["accuracy", "macro_f1"] = "accuracy"
    scaling: Scaling = "raw"
    feature_length: float = 1.0
    head_dropout: float = 0.0

    def bind(self, data: Any, root: Any = None) -> "GraphProblem":
        """The task on a collection, its graphs split."""
        if hasattr(data, "edge_index") or not isinstance(data, Sequence | torch.utils.data.Dataset):
            raise DataError("graph classification needs a collection of graphs, not one graph; choose another task")
        return GraphProblem(self, data, self._split(data, root))

    def _split(self, data: Any, root: Any) -> GraphSplit:
        own = [part for part in (getattr(data, name, None) for name in ("train", "val", "test")) if part is not None]
        if len(own) == 3:
            train, val, test = (part.numpy() for part in own)
            return GraphSplit(train, val, test, self.split_seed, "clean")
        folds = split_graphs(data, self.num_folds, seed=self.split_seed, protocol=self.protocol, root=root)
        if not 0 <= self.fold < len(folds):
            raise DataError(f"fold={self.fold} is not there: the folds are 0 to {len(folds) - 1}")
        return folds[self.fold]


class GraphBatch(NamedTuple):
    """Some graphs as one block-diagonal graph."""

    x: Any
    adjacency: Adjacency
    graph_of_node: Tensor
    y: Tensor


class GraphProblem:
    """Graph classification on a collection that is split."""

    def __init__(self, task: GraphClassification, data: Any, split: GraphSplit) -> None:
        self.task = task
        self.data = data
        self.split = split
        self.selection_metric = task.selection
        self.num_classes = int(data.num_classes)
        self.in_features = int(data.num_node_features)
        self.y = torch.as_tensor([int(label) for label in data.y])
        if len(self.y[torch.from_numpy(split.train)].unique()) < 2:
            raise DataError("all training graphs have one class; there is nothing to tell apart")

    def build(self, encoder: nn.Module) -> Model:
        sample = [self.data[int(k)] for k in self.split.train] if self.task.scaling == "standard" else [self.data[0]]
        x = torch.cat([graph.x for graph in sample]) if len(sample) > 1 else sample[0].x
        scaling = FeatureScaling(self.task.scaling, x, self.task.feature_length)
        head = ClassHead(encoder, self.num_classes, self.task.num_centroids, self.task.head_dropout)
        return Model(scaling, encoder, head)

    def batches(self, random: np.random.RandomState) -> Iterator[GraphBatch]:
        order = self.split.train.copy()
        random.shuffle(order)
        yield from self._batches(order)

    def loss(self, model: Model, batch: GraphBatch) -> Tensor:
        return F.cross_entropy(self._logits(model, batch), batch.y)

    @torch.no_grad()
    def evaluate(self, model: Model, part: str) -> Metrics:
        graphs = getattr(self.split, part)
        predicted = torch.cat([self._logits(model, batch).argmax(1) for batch in self._batches(graphs)])
        return class_metrics(self.y[torch.from_numpy(graphs)].numpy(), predicted.numpy(), self.num_classes)

    def _batches(self, graphs: Any) -> Iterator[GraphBatch]:
        for first in range(0, len(graphs), self.task.batch_size):
            chosen = graphs[first : first + self.task.batch_size]
            batch = Batch.from_data_list([self.data[int(k)] for k in chosen])
            adjacency = prepare_adjacency(batch.edge_index, getattr(batch, "edge_weight", None), batch.num_nodes)
            yield GraphBatch(batch.x, adjacency, batch.batch, self.y[torch.as_tensor(chosen)])

    def _logits(self, model: Model, batch: GraphBatch) -> Tensor:
        points = model.encoder(model.scaling(batch.x), batch.adjacency)
        logits: Tensor = model.head(points, batch.graph_of_node, len(batch.y), model.distance_scale)
        return logits
