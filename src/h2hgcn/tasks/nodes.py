"""Node classification: which class has a node?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.datasets import DataError, NodeSplit, split_nodes
from h2hgcn.datasets.arrays import UNLABELLED
from h2hgcn.datasets.pairs import AbsentPairs, Pairs, PairSpace, cache_order, distinct_pairs
from h2hgcn.datasets.splits import NodeProtocol, node_labels
from h2hgcn.tasks.base import ClassProblem, ClassTask, OneGraphProblem, Sampling, batch_random
from h2hgcn.tasks.baselines import Baselines, as_matrix, propagated_classes, run_baselines
from h2hgcn.tasks.checks import check_edges, edge_weight_of, node_features
from h2hgcn.tasks.heads import ClassHead, Decoder, FeatureTerms, decoder_for, regression_classes
from h2hgcn.tasks.links import LinkHead
from h2hgcn.tasks.metrics import Classes, Metrics, class_metrics, majority_metrics, predicted_classes
from h2hgcn.tasks.model import Model, encoded

Selection = Literal["accuracy", "macro_f1", "f1"]


@dataclass(frozen=True)
class NodeClassification(ClassTask):
    """Distances to learned centroids into a softmax classifier, with a link-prediction term in the loss (Dai et al.
    2021, section 4.4).

    Args:
        val, test: Shares of the nodes that are held out; None takes those of the protocol.
        protocol: How they are drawn, see ``split_nodes``: ``"clean"``, ``"legacy"``, ``"planetoid"`` or
            ``"given"``, the split that the graph came with.
        link_weight: The weight of the link-prediction term; 0 leaves it out.
        class_weights: Whether rare classes count as much as frequent ones.
        selection: The metric that selects; None takes accuracy, or the F1 of the second class where the data set asks
            for it (``graph.selection``).
        decoder: Of the link-prediction term, as in ``LinkPrediction``.
        feature_terms: Whether a logistic regression on features, unless they were made from the graph, adds to the
            logits, by a share that is fitted on the validation nodes once training is over (see ``FeatureTerms``).
        options: See ``ClassTask``, ``SplitTask`` and ``Task``.
    """

    name: ClassVar[str] = "nc"
    title: ClassVar[str] = "node classification"
    items: ClassVar[str] = "nodes"
    predicts: ClassVar[str | None] = "nodes"

    val: float | None = None
    test: float | None = None
    protocol: NodeProtocol = "clean"
    link_weight: float = 0.1
    class_weights: bool = False
    selection: Selection | None = None
    decoder: Decoder = "auto"
    feature_terms: bool = False

    def bind(self, data: Any) -> "NodeProblem":
        """The task on a graph, its nodes split."""
        if getattr(data, "y", None) is None:
            raise DataError(
                "the graph has no labels, which node classification needs; pass labels, or choose another task"
            )
        check_edges(data)
        self.check_parts()
        labels = node_labels(data)
        if self.final:
            known = np.flatnonzero(labels != UNLABELLED)
            split = NodeSplit(known, known[:0], known[:0], self.split_seed, self.protocol)
        else:
            split = split_nodes(data, self.val, self.test, seed=self.split_seed, protocol=self.protocol)
        for part in ("train", *self.parts):
            _check_part(split, part, labels)
        present = np.unique(labels[split.train])
        if len(present) < 2:
            names = dict(enumerate(getattr(data, "label_names", None) or ()))
            name = names.get(present[0], present[0])
            raise DataError(f"all training nodes have the class {name}; there is nothing to tell apart")
        feature_terms = self.feature_terms and not getattr(data, "structural", False)
        task = replace(self, decoder=decoder_for(data, self.decoder), feature_terms=feature_terms)
        return NodeProblem(task, data, split)

    def head(self, encoder: nn.Module, in_features: int, num_classes: int | None) -> "NodeHead":
        assert num_classes is not None
        classes = ClassHead(
            encoder, num_classes, self.num_centroids, self.head_dropout, self.classifier, self.head_norm,
            calibrate=self.calibrate,
        )  # fmt: skip
        links = LinkHead(encoder, decoder=self.decoder) if self.link_weight else None
        return NodeHead(classes, links, FeatureTerms(in_features, num_classes) if self.feature_terms else None)

    @torch.no_grad()
    def probabilities(self, model: Model, points: Tensor, nodes: Tensor, data: Any) -> Tensor:
        """The probabilities of the classes for some rows of ``points``, nodes of a graph."""
        head: NodeHead = model.head
        logits = head.logits_of(lambda: node_features(data, self.name), points, nodes, model.distance_scale)
        return head.probabilities(logits)


def _check_part(split: NodeSplit, part: str, labels: NDArray[np.int64]) -> None:
    nodes = getattr(split, part)
    if not len(nodes):
        if split.protocol in ("planetoid", "given"):
            raise DataError(
                f"the given split has no {part} nodes; mark some in the column 'split' of the labels or in "
                f"{part}_mask, or use --protocol clean"
            )
        known = labels[labels != UNLABELLED]
        count = f"{len(known)} labeled nodes in {len(np.unique(known))} classes"
        raise DataError(f"no node is left for the {part} part of {count}; label more nodes, or use other shares")
    unlabelled = nodes[labels[nodes] == UNLABELLED]
    if len(unlabelled):
        raise DataError(f"node {unlabelled[0]} is in the {part} part, but has no label; leave it out of {part}_mask")


class NodeHead(nn.Module):
    """A classifier of nodes, the decoder of the link-prediction term, and what features add once training is over."""

    classes: ClassHead
    links: LinkHead | None
    features: FeatureTerms | None

    def __init__(self, classes: ClassHead, links: LinkHead | None, features: FeatureTerms | None = None) -> None:
        super().__init__()
        self.classes = classes
        self.links = links
        self.features = features

    @property
    def calibrated(self) -> bool:
        return self.classes.calibrated

    @property
    def sees_features(self) -> bool:
        """Whether ``logits_of`` nodes differ from those of ``forward``."""
        return self.features is not None and self.features.fitted

    def probabilities(self, logits: Tensor) -> Tensor:
        return self.classes.probabilities(logits)

    def forward(self, points: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of the classes."""
        return self.classes(points, distance_scale=distance_scale)

    def logits_of(self, x: Callable[[], Any], points: Tensor, nodes: Tensor, distance_scale: Tensor | float) -> Tensor:
        """Logits of the classes of some nodes with what their features add, which are only asked for if there are
        fitted terms.
        """
        logits: Tensor = self(points[nodes.to(points.device)], distance_scale)
        if self.features is not None and self.features.fitted:
            logits = self.features(logits, as_matrix(x())[nodes.cpu().numpy()])
        return logits


class NodeBatch(NamedTuple):
    """A graph, rows of its nodes and their classes, and pairs of rows: links first, then as many that are none.

    ``share`` is the part of the batch that this process has; ``class_factor`` corrects it for class weights.
    """

    graph: Any
    nodes: Tensor
    y: Tensor
    pairs: Tensor | None
    share: float = 1.0
    class_factor: float = 1.0

    def to(self, device: torch.device) -> "NodeBatch":
        graph, nodes, y = (part.to(device) for part in self[:3])
        pairs = None if self.pairs is None else self.pairs.to(device)
        return self._replace(graph=graph, nodes=nodes, y=y, pairs=pairs)


class NodeProblem(OneGraphProblem, ClassProblem):
    """Node classification on a graph whose nodes are split."""

    def __init__(self, task: NodeClassification, data: Any, split: NodeSplit) -> None:
        super().__init__(task, data, data.edge_index, edge_weight_of(data))
        self.split = split
        self.num_items = len(split.train)
        self.y = torch.from_numpy(node_labels(data))
        self.num_classes = int(self.y.max()) + 1
        self.has_features = not getattr(data, "structural", False)
        self.selection_metric = task.selection or getattr(data, "selection", None) or "accuracy"
        if self.selection_metric == "f1" and self.num_classes != 2:
            raise DataError(f"selection='f1' is the F1 of the second of two classes, but there are {self.num_classes}")
        self.space = PairSpace(data.num_nodes, bool(getattr(data, "directed", False)))
        self.edges = distinct_pairs(self.space, data.edge_index.numpy().T)
        self.absent = AbsentPairs(self.space, self.edges)
        if task.link_weight and len(self.edges) == len(self.space):
            raise DataError("all pairs of nodes are linked, so links cannot be told from others; set link_weight=0")
        self.weights: Tensor | None = None
        if task.class_weights:
            counts = torch.bincount(self.y[split.train], minlength=self.num_classes)
            self.weights = len(split.train) / (self.num_classes * counts.clamp_min(1))
        self.rows = split.train  # the training nodes in ``graph``

    def reorder(self) -> NDArray[np.int64]:
        places = super().reorder()
        self.rows = places[self.split.train]
        self.edges = self.space.ordered(places[self.edges])
        self.absent = AbsentPairs(self.space, self.edges)
        return places

    def to(self, device: torch.device | str) -> None:
        super().to(device)
        self.weights = None if self.weights is None else self.weights.to(device)

    def batches(self, random: np.random.RandomState) -> Iterator[NodeBatch]:
        if self.sampling is not None:
            yield from self.sampled(self.graph, self.num_items, random, partial(self._sample, self.sampling))
            return
        pairs = None
        if self.task.link_weight and len(self.edges):
            kinds = (self.edges, self.absent.draw(len(self.edges), random))
            pairs = torch.from_numpy(np.concatenate([cache_order(kind, self.num_nodes) for kind in kinds]))
        y = self.y[self.split.train]
        yield NodeBatch(self.messages, torch.from_numpy(self.rows), y, pairs).to(self.device)

    def _sample(self, sampling: Sampling, chosen: NDArray[np.int64], seed: int) -> NodeBatch:
        """Some nodes, as many links drawn from all, as many pairs that are none, and their sampled neighborhoods."""
        nodes = self.rows[chosen[sampling.mine]]
        ends: Pairs = np.empty((0, 2), np.int64)
        if self.task.link_weight and len(self.edges):
            random, count = batch_random(seed), len(chosen)
            links = self.edges[random.randint(0, len(self.edges), count)[sampling.mine]]
            ends = np.concatenate([links, self.absent.draw(count, random, sampling.mine)])
        part, rows = sampling.neighborhoods(self.graph, np.concatenate([nodes, ends.ravel()]), seed)
        numbers = torch.from_numpy(rows)
        pairs = numbers[len(nodes) :].reshape(-1, 2) if len(ends) else None
        y = self.y[self.split.train[chosen]]
        mine = y[sampling.mine]
        share, factor = len(mine) / len(y), 1.0
        if self.weights is not None:  # the weighted mean over all of the batch, whatever this process has of it
            weights = self.weights.cpu()
            factor = float(weights[mine].sum() / weights[y].sum()) / share
        return NodeBatch(part, numbers[: len(nodes)], mine, pairs, share, factor)

    def loss(self, model: Model, batch: NodeBatch) -> Tensor:
        points = encoded(model, self.features, batch.graph)
        logits = model.head(points.index_select(0, batch.nodes), model.distance_scale)
        weights = None if self.weights is None else self.weights.to(logits.dtype)
        loss = batch.class_factor * F.cross_entropy(logits, batch.y, weights)
        if batch.pairs is not None:
            links = model.head.links(points, batch.pairs, model.distance_scale)
            labels = (torch.arange(len(links), device=links.device) < len(links) // 2).to(links.dtype)
            loss = loss + self.task.link_weight * F.binary_cross_entropy_with_logits(links, labels)
        return loss

    @torch.no_grad()
    def evaluate(self, model: Model, part: str) -> Metrics:
        metrics = super().evaluate(model, part)
        if model.head.sees_features:
            nodes = getattr(self.split, part)
            logits = model.head(self.points(model)[self._on_device(nodes)], model.distance_scale)
            metrics["accuracy_network"] = float((predicted_classes(logits) == self.y.numpy()[nodes]).mean())
        return metrics

    def _on_device(self, nodes: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(nodes).to(self.device)

    def part_logits(self, model: Model, part: str) -> tuple[Classes, Tensor]:
        """The true classes of a part, and the logits of the finished model. The share of the features, which was fitted
        on the validation part, is fitted again without each node that it scores.
        """
        nodes = getattr(self.split, part)
        y, points, numbers = self.y.numpy()[nodes], self.points(model), self._on_device(nodes)
        if part != "val" or not model.head.sees_features:
            return y, model.head.logits_of(lambda: self.x, points, numbers, model.distance_scale)
        alone = model.head(points[numbers], model.distance_scale)
        mixed = model.head.features.out_of_fold(alone.double().cpu().numpy(), as_matrix(self.x)[nodes], y)
        return y, torch.from_numpy(mixed).to(alone)

    @torch.no_grad()
    def finish(self, model: Model) -> bool:
        """Fits what comes after training, on validation nodes: feature terms, and then the calibration. Returns whether
        that changed logits.
        """
        features, calibration = model.head.features, model.head.classes.calibration
        if features is None and calibration is None:
            return False
        y, val = self.y.numpy(), self.split.val
        points = self.points(model)[self._on_device(val)]
        logits = model.head(points, model.distance_scale).double().cpu().numpy()
        changed = features is not None and features.fit(logits, self.x, y, self.split.train, val)
        if changed:
            logits = features.out_of_fold(logits, as_matrix(self.x)[val], y[val])
        if calibration is not None:
            calibration.fit(logits, y[val])
        return changed

    @torch.no_grad()
    def refit(self, model: Model, split: NodeSplit) -> None:
        """Fits feature terms that were taken over from a run with this split again, on all nodes to train on."""
        if model.head.sees_features:
            model.head.features.refit(self.x, self.y.numpy(), split.train, split.val, self.split.train)

    def baselines(self, part: str) -> Baselines:
        y, nodes, train = self.y.numpy(), getattr(self.split, part), self.split.train

        def metrics_of(classes: Classes) -> Metrics:
            return class_metrics(y[nodes], classes, self.num_classes)

        def propagation() -> Metrics:
            return metrics_of(propagated_classes(self.adjacency, self.y, torch.from_numpy(train))[nodes])

        def regression() -> Metrics:
            return metrics_of(regression_classes(self.x, y, train, self.split.val, nodes, self.num_classes))

        found = {
            "majority class": lambda: majority_metrics(y[train], y[nodes], self.num_classes),
            "label propagation": propagation,
        }
        if self.has_features:
            found["logistic regression"] = regression
        if self.selection_metric == "f1":  # of the class 1, which may be the rare one: naming it always is worth more
            found["always class 1"] = lambda: metrics_of(np.ones_like(y[nodes]))
        return run_baselines(found)
