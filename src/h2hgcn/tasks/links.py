"""Link prediction: which pairs of nodes are joined?"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.datasets import DataError, EdgeSplit, split_edges
from h2hgcn.datasets.pairs import AbsentPairs, Pairs, PairSpace, contains, distinct_pairs, nth_absent
from h2hgcn.datasets.shape import bridge_share
from h2hgcn.datasets.splits import Protocol
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.large import reordered
from h2hgcn.jit import compiled
from h2hgcn.layers import prepare_adjacency
from h2hgcn.options import NONE, conform, require
from h2hgcn.tasks.base import (
    FeatureScaling,
    Model,
    Sampling,
    ScaledFeatures,
    Scaling,
    all_points,
    batch_random,
    check_edges,
    check_shares,
    check_some_weight,
    encoded,
    node_features,
)
from h2hgcn.tasks.baselines import Baselines, link_baselines
from h2hgcn.tasks.heads import Decoder, LinkHead, decoder_for
from h2hgcn.tasks.metrics import (
    LINK_BINS,
    Bins,
    Metrics,
    Scores,
    auc,
    calibration_error,
    likeliest,
    link_metrics,
    reliability,
)
from h2hgcn.tasks.neighborhoods import Neighborhoods, out_of_fold
from h2hgcn.tasks.top_links import precision_of

# First nodes of a stripe: their rows, and the rows of their gradients, stay in a large cache while all second nodes
# pass by. And second nodes whose order among themselves does not matter.
_STRIPE, _NEAR = 1 << 15, 1 << 4

# Below this many stripes everything is in reach as it is.
_FEW = 4


def in_stripes(pairs: Tensor, num_nodes: int) -> Tensor:
    """``pairs (k, 2)`` on the CPU sorted by stripes of first nodes, and within one by second nodes, roughly; of small
    graphs as they are.
    """
    if num_nodes < _FEW * _STRIPE:
        return pairs
    sorted_pairs = np.empty(tuple(pairs.shape), np.int64)
    _sort(pairs.contiguous().numpy(), num_nodes, sorted_pairs)
    return torch.from_numpy(sorted_pairs)


@compiled
def _sort(pairs: Any, num_nodes: int, result: Any) -> None:
    stripes = (num_nodes + _STRIPE - 1) // _STRIPE
    starts = np.zeros(stripes + 1, np.int64)
    for p in range(len(pairs)):
        starts[pairs[p, 0] // _STRIPE + 1] += 1
    for stripe in range(stripes):
        starts[stripe + 1] += starts[stripe]
    by_stripe, free = np.empty_like(pairs), starts[:-1].copy()
    for p in range(len(pairs)):
        stripe = pairs[p, 0] // _STRIPE
        by_stripe[free[stripe], 0], by_stripe[free[stripe], 1] = pairs[p, 0], pairs[p, 1]
        free[stripe] += 1
    for stripe in range(stripes):
        part = by_stripe[starts[stripe] : starts[stripe + 1]]
        counts = np.zeros(num_nodes // _NEAR + 2, np.int64)
        for p in range(len(part)):
            counts[part[p, 1] // _NEAR + 1] += 1
        for group in range(len(counts) - 1):
            counts[group + 1] += counts[group]
        for p in range(len(part)):
            group = part[p, 1] // _NEAR
            place = starts[stripe] + counts[group]
            result[place, 0], result[place, 1] = part[p, 0], part[p, 1]
            counts[group] += 1


# The fraction of bridges from which on a graph is a tree rather than a graph to predict links of.
_MOSTLY_BRIDGES = 0.5

# Of pairs without an edge, for calibration: how many are looked at, and how many at a time.
_MOST_PAIRS, _CHUNK = 1 << 22, 1 << 17


@dataclass(frozen=True)
class LinkPrediction:
    """The Fermi-Dirac decoder on the distances of points (Dai et al. 2021, Eq. 14), trained against fresh negatives.

    Args:
        val, test: Shares of the edges that are held out.
        protocol, split_seed: How they are drawn, see ``split_edges``: ``"clean"`` or ``"legacy"``.
        negatives: Negatives a training edge.
        message_share: Each epoch a random share of the training edges carries messages and the others are predicted;
            None, as in the paper, does both with all of them. A share keeps a model from learning that what it
            predicts has just been averaged, which matters in trees.
        scaling: Of features: ``"raw"``, ``"row"`` (rows of sum 1), ``"standard"`` (columns of mean 0, rows of length
            ``feature_length`` or so), or ``"auto"`` (raw if mostly 0, else standard).
        feature_length: Of standardised features.
        r, t: Radius and temperature of the decoder: a pair at squared distance ``r`` is a link with probability 1/2.
        learn_decoder: Whether ``r`` and ``t`` are trained.
        decoder: ``"symmetric"``, the paper's; ``"popularity"``, which lets some nodes have more links than others;
            ``"directed"``, which does that and tells source from target (see ``LinkHead``). ``"auto"`` is directed if
            the graph is, else symmetric.
        neighborhood_terms: Whether degrees and shared neighbors add to the logits of links, by weights that are fitted
            on the validation links once training is over (see ``NeighborhoodTerms``).
        calibrate: Whether probabilities are calibrated on the validation links once training is over (see
            ``LinkCalibration``): those of links among all pairs that are not training edges.
        final: Whether to train on all edges, with nothing held out, and to take the last epoch; ``h2hgcn finalize`` and
            ``Run.finalize`` set it.
    """

    name: ClassVar[str] = "lp"
    earlier: ClassVar[dict[str, Any]] = {"decoder": "symmetric", "calibrate": False}
    title: ClassVar[str] = "link prediction"
    items: ClassVar[str] = "links"
    of_collections: ClassVar[bool] = False
    parts: ClassVar[tuple[str, ...]] = ("val", "test")

    val: float = 0.05
    test: float = 0.1
    protocol: Protocol = "clean"
    split_seed: int = 1234
    negatives: int = 1
    message_share: float | None = None
    scaling: Scaling = "raw"
    feature_length: float = 1.0
    r: float = 2.0
    t: float = 1.0
    learn_decoder: bool = True
    decoder: Decoder = "auto"
    neighborhood_terms: bool = False
    calibrate: bool = True
    final: bool = False

    def __post_init__(self) -> None:
        conform(self, "[task]")
        if self.final:
            object.__setattr__(self, "parts", ())  # nothing is held out
        require(self, "task", ("negatives",), lambda n: n >= 1, "must be at least 1: pairs to tell links from")
        require(
            self, "task", ("message_share",), lambda share: 0 < share < 1, f"must lie between 0 and 1, or be {NONE!r}"
        )
        require(self, "task", ("feature_length", "t"), lambda value: 0 < value < math.inf, "must be a positive number")

    def bind(self, data: Any) -> "LinkProblem":
        """The task on a graph, its edges split."""
        check_edges(data)
        check_shares(self)
        shares = (0.0, 0.0) if self.final else (self.val, self.test)
        split = split_edges(data, *shares, seed=self.split_seed, protocol=self.protocol)
        for part in ("train", *self.parts):
            if not len(getattr(split, part)):
                raise DataError(
                    f"no edge is left for the {part} part of {len(split.train) + len(split.val) + len(split.test)}; "
                    "use a larger graph, larger shares (--set task.val=0.4 --set task.test=0.4), or --task embed"
                )
        return LinkProblem(replace(self, decoder=decoder_for(data, self.decoder)), data, split)

    def warning(self, data: Any) -> str | None:
        """Why held-out links of a graph cannot be predicted, and what to do instead: it is a tree, or nearly so."""
        if not getattr(data, "structural", False):
            return None
        share = bridge_share(data.edge_index, data.num_nodes)
        if share <= _MOSTLY_BRIDGES:
            return None
        return (
            f"{share:.0%} of the edges are bridges and there are no features, so a held-out link often ends at a node "
            "that nothing else is known of; use --task embed to embed the graph with all its edges, or give --features"
        )

    def assemble(self, encoder: nn.Module, in_features: int, num_classes: int | None = None) -> Model:
        """The model of this task on an encoder, its scaling still to be loaded."""
        return self._model(encoder, in_features)

    def _model(self, encoder: nn.Module, x: Any) -> Model:
        scaling = FeatureScaling(self.scaling, x, self.feature_length)
        head = LinkHead(
            encoder, self.r, self.t, self.learn_decoder, self.decoder, self.neighborhood_terms, self.calibrate
        )
        return Model(scaling, encoder, head)


class LinkBatch(NamedTuple):
    messages: Any
    pairs: Tensor
    labels: Tensor
    share: float = 1.0

    def to(self, device: torch.device) -> "LinkBatch":
        return LinkBatch(self.messages.to(device), self.pairs.to(device), self.labels.to(device), self.share)


class LinkProblem:
    """Link prediction on a graph that is split."""

    selection_metric = "auc"
    num_classes = None

    def __init__(self, task: LinkPrediction, data: Any, split: EdgeSplit) -> None:
        self.task = task
        self.split = split
        weights = split.train_edge_weight()
        if weights is not None:
            check_some_weight(weights, "the training graph")
        edge_index = split.train_edge_index()
        self.x = node_features(data, task.name, edge_index)
        self.in_features = self.x.shape[1]
        self.num_nodes = split.num_nodes
        self.features = ScaledFeatures(self.x)
        self.train_pairs = torch.from_numpy(split.train)
        self.absent = AbsentPairs(split.space, split.train)
        self.adjacency = prepare_adjacency(edge_index, weights, split.num_nodes)
        self.device = torch.device("cpu")
        self.graph: Adjacency = self.adjacency  # stays on the CPU, where batches are drawn
        self.messages: Adjacency = self.adjacency
        self.sampling: Sampling | None = None
        self._striped: Tensor | None = None
        self._parts: dict[str, tuple[Pairs, NDArray[np.bool_], NDArray[np.bool_]]] = {}
        self._one_way_links: dict[str, NDArray[np.int64]] = {}

    @property
    def num_items(self) -> int:
        """Training edges that are predicted in an epoch."""
        share = self.task.message_share
        return len(self.train_pairs) - (0 if share is None else self._num_messages(share))

    def renumber(self) -> None:
        """Trains on nodes in an order that is faster for graphs that no cache holds; evaluation is as before."""
        graph = reordered(self.graph)
        pairs = self.split.space.ordered(graph.places.numpy()[self.split.train])
        self.train_pairs, self._striped = torch.from_numpy(pairs), None
        self.absent = AbsentPairs(self.split.space, pairs)
        self.graph, self.messages = graph, graph.to(self.device)

    def to(self, device: torch.device | str) -> None:
        self.features, self.adjacency = self.features.to(device), self.adjacency.to(device)
        self.messages = self.messages.to(device)
        self.device = torch.device(device)

    def build(self, encoder: nn.Module) -> Model:
        return self.task._model(encoder, self.x)

    def batches(self, random: np.random.RandomState) -> Iterator[LinkBatch]:
        pairs, messages = self.train_pairs, self.messages if self.sampling is None else self.graph
        if self.task.message_share is not None:
            order = self._order(random)
            count = self._num_messages(self.task.message_share)
            messages = self._messages(order[:count])
            pairs = pairs[torch.from_numpy(order[count:])]
        if self.sampling is not None:
            yield from self._sampled(self.sampling, messages, pairs.numpy(), random)
            return
        pairs, count = self._with_negatives(pairs, random), len(pairs)
        labels = (torch.arange(len(pairs)) < count).float()
        yield LinkBatch(messages, pairs, labels).to(self.device)

    def _with_negatives(self, pairs: Tensor, random: np.random.RandomState) -> Tensor:
        """Links and then pairs that are none, each in an order that is fast for large graphs."""
        negatives = torch.from_numpy(self.absent.draw(self.task.negatives * len(pairs), random))
        links = self._all_in_stripes() if pairs is self.train_pairs else in_stripes(pairs, self.num_nodes)
        return torch.cat([links, in_stripes(negatives, self.num_nodes)])

    def _all_in_stripes(self) -> Tensor:
        """The training edges: the same in all epochs."""
        if self._striped is None:
            self._striped = in_stripes(self.train_pairs, self.num_nodes)
        return self._striped

    def _sampled(
        self, sampling: Sampling, messages: Adjacency, pairs: Pairs, random: np.random.RandomState
    ) -> Iterator[LinkBatch]:
        def batch(chosen: NDArray[np.int64], seed: int) -> LinkBatch:
            links, count = chosen[sampling.mine], self.task.negatives * len(chosen)
            negatives = self.absent.draw(count, batch_random(seed), sampling.mine)
            ends = np.concatenate([pairs[links], negatives])
            part, rows = sampling.neighborhoods(messages, ends, seed)
            kinds = torch.from_numpy(rows).split([len(links), len(negatives)])
            labels = torch.arange(len(ends)) < len(links)
            pairs_of_rows = torch.cat([in_stripes(kind, part.num_nodes) for kind in kinds])
            return LinkBatch(part, pairs_of_rows, labels.float(), len(ends) / (len(chosen) + count))

        def moved(made: LinkBatch) -> LinkBatch:
            return made.to(self.device)

        _ = messages.loop_entries  # before threads ask for them
        jobs = (partial(batch, *share) for share in sampling.shares(len(pairs), random))
        return map(moved, sampling.prepared(jobs))  # unlike a loop, it holds no batch while the next is made

    def _num_messages(self, share: float) -> int:
        return max(1, min(len(self.train_pairs) - 1, round(share * len(self.train_pairs))))

    def _order(self, random: np.random.RandomState) -> NDArray[np.int64]:
        """The training edges in a random order, those of weight 0 last: they would carry no message."""
        order = random.permutation(len(self.split.train))
        weights = self.split.train_weights
        return order if weights is None else order[np.argsort(weights[order] == 0, kind="stable")]

    def _messages(self, chosen: NDArray[np.int64]) -> Adjacency:
        """The graph of some of the training edges."""
        split = self.split
        weights = None if split.train_weights is None else split.train_weights[chosen]
        part = replace(split, train=split.train[chosen], train_weights=weights)
        graph = prepare_adjacency(part.train_edge_index(), part.train_edge_weight(), split.num_nodes)
        return graph if self.graph.nodes is None else reordered(graph, self.graph)

    def points(self, model: Model) -> Tensor:
        """The points of all nodes; messages go along the training edges."""
        return all_points(model, self.features, self.adjacency)

    def loss(self, model: Model, batch: LinkBatch) -> Tensor:
        logits = model.head(encoded(model, self.features, batch.messages), batch.pairs, model.distance_scale)
        labels, weight = batch.labels.to(logits.dtype), None
        if self.task.negatives > 1:
            weight = torch.where(labels > 0, 1.0, 1 / self.task.negatives).to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, labels, weight)

    @cached_property
    def neighborhoods(self) -> Neighborhoods:
        """Degrees and shared neighbors in the training graph."""
        return Neighborhoods(self.split.train, self.num_nodes, self.task.decoder == "directed")

    @torch.no_grad()
    def finish(self, model: Model) -> bool:
        """Fits what comes after training: terms on validation pairs whose nodes both have a training edge, and then
        the calibration. Returns whether that changed the order of pairs.
        """
        head = _head(model)
        if head.neighborhood is None and head.calibration is None:
            return False
        points, (pairs, labels, known) = self.points(model), self._pairs_of("val")
        changed = head.neighborhood is not None and head.neighborhood.fit(
            self._decoded(model, points, pairs), labels, pairs, self.neighborhoods, known
        )
        if head.calibration is not None:
            head.calibration.fit(*self._scores_of_all(model, points, "val"))
        return changed

    def _scores_of_all(
        self, model: Model, points: Tensor, part: str
    ) -> tuple[Scores, NDArray[np.bool_], NDArray[np.float64]]:
        """Scores of all pairs that are not training edges, which are links, and weights: the links of a part stand for
        all that are held out, and a sample of the pairs without an edge for all of these. Nodes are not paired with
        themselves, not even by the legacy protocol: they are as near as can be, and nobody asks for such links.
        """
        split, space = self.split, PairSpace(self.split.num_nodes, self.split.directed)
        edges = distinct_pairs(space, np.concatenate([split.train, split.val, split.test]))
        count = len(space) - len(edges)
        if count <= _MOST_PAIRS:
            others = space.pairs(nth_absent(space.ranks(edges), np.arange(count)))
        else:  # other ones for each part
            others = AbsentPairs(space, edges).draw(_MOST_PAIRS, np.random.RandomState(self.task.parts.index(part)))
        chunks = (others[first : first + _CHUNK] for first in range(0, len(others), _CHUNK))
        links = getattr(split, part)
        of_links = self._part_scores(model, points, part)[0][: len(links)][_are_two(links)]
        scores = np.concatenate([of_links, *(self._scores(model, points, some) for some in chunks)])
        labels = np.arange(len(scores)) < len(of_links)
        weights = np.where(labels, self._num_hidden / max(len(of_links), 1), count / max(len(others), 1))
        return scores, labels, weights

    @property
    def _num_hidden(self) -> int:
        return int(_are_two(self.split.val).sum() + _are_two(self.split.test).sum())

    @torch.no_grad()
    def reliability(self, model: Model, part: str) -> tuple[Bins, Bins]:
        """Bins of the probabilities of all pairs, and of the likeliest, as many as links are held out."""
        points = self.points(model)
        return self._reliability(model, points, *self._scores_of_all(model, points, part))

    def _reliability(
        self, model: Model, points: Tensor, scores: Scores, labels: NDArray[np.bool_], weights: NDArray[np.float64]
    ) -> tuple[Bins, Bins]:
        chances = _head(model).probabilities(torch.from_numpy(scores).to(points)).double().cpu().numpy()
        top = likeliest(chances, weights, self._num_hidden)
        return (
            reliability(chances, labels, weights, LINK_BINS),
            reliability(chances[top], labels[top], weights[top], LINK_BINS),
        )

    @torch.no_grad()
    def details(self, model: Model, part: str) -> dict[str, Any]:
        """How often pairs with such a probability are links, and, where pairs without a link are sampled, how many of
        the sample are among the likeliest pairs.
        """
        points = self.points(model)
        scores, labels, weights = self._scores_of_all(model, points, part)
        details: dict[str, Any] = {"reliability": self._reliability(model, points, scores, labels, weights)[0]}
        if weights[~labels].max(initial=1) > 1:
            top = likeliest(scores, weights, self._num_hidden)
            details["sampled_at_top"] = int((~labels[top]).sum())
        return details

    def _pairs_of(self, part: str) -> tuple[Pairs, NDArray[np.bool_], NDArray[np.bool_]]:
        """Links and then others, which are links, and for which of them both nodes have a training edge."""
        if part not in self._parts:
            links, others = getattr(self.split, part), getattr(self.split, f"{part}_neg")
            pairs = np.concatenate([links, others])
            self._parts[part] = (pairs, np.arange(len(pairs)) < len(links), self.split.answerable(pairs))
        return self._parts[part]

    def _decoded(self, model: Model, points: Tensor, pairs: Pairs) -> Scores:
        """The logits of the decoder alone."""
        numbers = torch.from_numpy(np.ascontiguousarray(pairs)).to(self.device)
        logits: Tensor = model.head(points, numbers, model.distance_scale)
        return logits.double().cpu().numpy()

    def _scores(self, model: Model, points: Tensor, pairs: Pairs) -> Scores:
        """The logits of the finished model."""
        numbers = torch.from_numpy(np.ascontiguousarray(pairs)).to(self.device)
        logits = _head(model).logits_in(lambda: self.neighborhoods, points, numbers, model.distance_scale)
        return logits.double().cpu().numpy()

    def _part_scores(self, model: Model, points: Tensor, part: str) -> tuple[Scores, Scores]:
        """The scores of the pairs of a part, by the finished model and by the decoder alone.

        Of the validation part, terms that were fitted on it are fitted again without each pair that they score.
        """
        pairs, labels, known = self._pairs_of(part)
        scores = self._scores(model, points, pairs)
        if not _head(model).sees_neighborhoods:
            return scores, scores
        alone = self._decoded(model, points, pairs)
        if part == "val":
            scores[known] = out_of_fold(alone[known], labels[known], pairs[known], self.neighborhoods)
        return scores, alone

    @torch.no_grad()
    def evaluate(self, model: Model, part: str) -> Metrics:
        """Ranking metrics, and of the test part calibration errors."""
        points, (pairs, labels, known) = self.points(model), self._pairs_of(part)
        scores, alone = self._part_scores(model, points, part)
        metrics = link_metrics(scores[labels], scores[~labels])
        if _head(model).sees_neighborhoods:
            metrics["auc_decoder"] = auc(alone[labels], alone[~labels])
        if (labels & known).sum() > 0 and (~labels & known).sum() > 0 and not known.all():
            metrics["auc_answerable"] = auc(scores[labels & known], scores[~labels & known])
        one_way = self._one_way(part)
        if len(one_way):
            metrics["direction_auc"] = auc(scores[one_way], self._scores(model, points, pairs[one_way][:, ::-1]))
        if part != "val":  # which is evaluated after every epoch
            everywhere, top = self.reliability(model, part)
            metrics |= {"ece": calibration_error(everywhere), "ece_top": calibration_error(top)}
            scores_of_all = _head(model).pair_scores(lambda: self.neighborhoods, points, model.distance_scale)
            metrics |= precision_of(scores_of_all, self.split, part)
        return metrics

    def _one_way(self, part: str) -> NDArray[np.int64]:
        """Which links of a part have a reverse that is no edge; none in an undirected graph."""
        if part not in self._one_way_links:
            split, space = self.split, self.split.space
            edges = np.sort(space.ranks(np.concatenate([split.train, split.val, split.test])))
            backwards = space.ranks(getattr(split, part)[:, ::-1]) if split.directed else np.empty(0, np.int64)
            self._one_way_links[part] = np.flatnonzero(~contains(edges, backwards))
        return self._one_way_links[part]

    def baselines(self, part: str) -> Baselines:
        return link_baselines(self.x, self.split, part)


def _are_two(pairs: Pairs) -> NDArray[np.bool_]:
    """Which pairs are of different nodes."""
    return pairs[:, 0] != pairs[:, 1]


def _head(model: Model) -> LinkHead:
    assert isinstance(model.head, LinkHead)
    return model.head
