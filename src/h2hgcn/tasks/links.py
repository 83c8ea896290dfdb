"""Link prediction: which pairs of nodes are joined?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.datasets import DataError, EdgeSplit, split_edges
from h2hgcn.datasets.pairs import AbsentPairs, Pairs, PairSpace, cache_order, contains, distinct_pairs, nth_absent
from h2hgcn.datasets.shape import bridge_share
from h2hgcn.datasets.splits import Protocol
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.large import reordered
from h2hgcn.kernels.distances import squared_distances_of_rows
from h2hgcn.layers import FermiDiracDecoder, prepare_adjacency
from h2hgcn.layers.h2h_conv import stiefel_parameter
from h2hgcn.layers.spaces import Space, as_lorentz, check_space, squared_distance
from h2hgcn.tasks.base import OneGraphProblem, Sampling, SplitTask, batch_random
from h2hgcn.tasks.baselines import Baselines, link_baselines
from h2hgcn.tasks.checks import check_edges, check_some_weight
from h2hgcn.tasks.heads import Decoder, decoder_for, tangents_of
from h2hgcn.tasks.metrics import (
    LINK_BINS,
    Bins,
    LinkCalibration,
    Metrics,
    Scores,
    auc,
    calibration_error,
    likeliest,
    link_metrics,
    reliability,
)
from h2hgcn.tasks.model import Model, encoded
from h2hgcn.tasks.neighborhoods import NUM_OTHERS, Neighborhoods, NeighborhoodTerms, Rows, out_of_fold
from h2hgcn.tasks.top_links import LinkScores, LinkSearch, precision_of

# The share of bridges from which on a graph is a tree rather than a graph to predict links of.
_MOSTLY_BRIDGES = 0.5

# Pairs without an edge that calibration looks at, and how many at a time.
_MOST_PAIRS, _CHUNK = 1 << 22, 1 << 17


class LinkHead(nn.Module):
    """Logits of links between points of any space.

    ``"symmetric"``: the Fermi-Dirac decoder ``(r - d(x, y)²)/t`` of the paper.

    ``"popularity"``: adds a learned linear term of both points as seen from the origin, ``<a, log_o(x)> + <a,
    log_o(y)>``: some nodes have more links than others, near and far.

    ``"directed"``: moves the source by a learned orthonormal map ``W``, an isometry that fixes the origin, and has a
    term for the source and another for the target: ``(r - d(W x, y)²)/t + <a, log_o(x)> + <b, log_o(y)>``.

    All start out as the first: ``W`` at the identity, ``a`` and ``b`` at 0. ``neighborhood_terms`` and ``calibrate``
    add a ``NeighborhoodTerms`` and a ``LinkCalibration``, which are fitted once training is over.
    """

    neighborhood: NeighborhoodTerms | None
    calibration: LinkCalibration | None

    def __init__(
        self,
        encoder: Any,
        r: float = 2.0,
        t: float = 1.0,
        learnable: bool = True,
        decoder: Decoder = "symmetric",
        neighborhood_terms: bool = False,
        calibrate: bool = False,
    ) -> None:
        super().__init__()
        self.space = check_space(encoder.space)
        self.directed, self.has_terms = decoder == "directed", decoder in ("popularity", "directed")
        self.decoder = FermiDiracDecoder(r, t, learnable, squared_distance(self.space))
        if self.directed:
            self.source_map = stiefel_parameter(encoder.dim, encoder.dim)
            nn.init.eye_(self.source_map)
        if self.has_terms:
            self.terms = nn.Parameter(torch.zeros(1 + self.directed, encoder.dim))
        self.neighborhood = NeighborhoodTerms(self.directed) if neighborhood_terms else None
        self.calibration = LinkCalibration() if calibrate else None

    @property
    def sees_neighborhoods(self) -> bool:
        """Whether ``logits_in`` a graph differ from those of ``forward``."""
        return self.neighborhood is not None and self.neighborhood.fitted

    @property
    def goes_by_distance(self) -> bool:
        """Whether the nearest node is the likeliest to be linked with."""
        return not self.has_terms and not self.sees_neighborhoods

    @property
    def calibrated(self) -> bool:
        return self.calibration is not None and self.calibration.fitted

    def probabilities(self, logits: Tensor) -> Tensor:
        """The probabilities of links, calibrated if that was fitted."""
        return logits.sigmoid() if self.calibration is None else self.calibration(logits)

    def forward(self, points: Tensor, pairs: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of ``pairs (k, 2)`` of rows of ``points``, source first."""
        rows, ends = points, pairs
        if self.directed:
            rows = torch.cat([rotated(points, self.source_map, self.space), points])
            ends = pairs + pairs.new_tensor([0, len(points)])
        if self.space == "euclidean":
            square = self.decoder.squared_distance(*(rows.index_select(0, nodes) for nodes in ends.unbind(1)))
        else:
            rows = rows if self.space == "lorentz" else as_lorentz(rows, self.space)
            square = squared_distances_of_rows(rows, ends)
        logits = self.decoder.logits(square, distance_scale)
        if not self.has_terms:
            return logits
        source, target = self._terms(points, distance_scale)
        return logits + source.index_select(0, pairs[:, 0]) + target.index_select(0, pairs[:, 1])

    def logits_in(
        self, graph: Callable[[], Neighborhoods], points: Tensor, pairs: Tensor, distance_scale: Tensor | float = 1.0
    ) -> Tensor:
        """Logits of ``pairs`` with what their neighborhoods add. The graph is only asked for if terms were fitted."""
        logits: Tensor = self(points, pairs, distance_scale)
        if self.neighborhood is not None and self.neighborhood.fitted:
            logits = self.neighborhood(logits, graph(), pairs)
        return logits

    def _terms(self, points: Tensor, distance_scale: Tensor | float) -> tuple[Tensor, Tensor]:
        """What each point adds to the logits of links that it is the source of, and of those it is the target of."""
        terms = tangents_of(points, self.space, distance_scale) @ self.terms.mT
        return terms[:, 0], terms[:, -1]

    @torch.no_grad()
    def as_search(
        self, graph: Callable[[], Neighborhoods], points: Tensor, incoming: bool, distance_scale: Tensor | float = 1.0
    ) -> LinkSearch:
        """The links of each node, those from it or the ``incoming`` ones, as a search among all ``points``."""
        slope, constant = float(distance_scale) ** 2 / self.decoder.t.item(), (self.decoder.r / self.decoder.t).item()
        queries, terms = points, [torch.zeros(len(points), dtype=torch.float64)] * 2
        if self.has_terms:
            terms = [each.double().cpu() for each in self._terms(points, distance_scale)]
        if self.directed:  # d(W x, y) = d(x, W⁻¹ y)
            queries = rotated(points, self.source_map.mT if incoming else self.source_map, self.space)
        ends = (1, 0) if incoming else (0, 1)
        own, others = (terms[end].numpy()[None] for end in ends)
        if self.neighborhood is None or not self.neighborhood.fitted:
            return LinkSearch(queries, own + constant, others, np.array([slope]))
        slopes, weights, biases = self.neighborhood.pieces
        neighborhoods, factors = graph(), slopes[:, None]
        own, others = (
            factors * each + neighborhoods.of_nodes(weights, end) for each, end in zip((own, others), ends, strict=True)
        )
        of_rows = partial(neighborhoods.of_rows, weights)
        own += factors * constant + biases[:, None]
        return LinkSearch(queries, own, others, slopes * slope, of_rows, neighborhoods.two_hops)

    def pair_scores(
        self, graph: Callable[[], Neighborhoods], points: Tensor, distance_scale: Tensor | float = 1.0
    ) -> LinkScores:
        """``logits_in`` a graph of all pairs of ``points``."""
        search = self.as_search(graph, points, False, distance_scale)
        shared: tuple[Neighborhoods | None, Any] = (None, None)
        if self.neighborhood is not None and self.neighborhood.fitted:
            shared = graph(), self.neighborhood.pieces[1]
        return LinkScores(search.own, search.terms, points, search.queries, self.space, search.slopes, *shared)


def rotated(points: Tensor, matrix: Tensor, space: Space) -> Tensor:
    """Points of a space after an orthonormal map that fixes the origin."""
    if space != "lorentz":
        return points @ matrix.mT
    return torch.cat([points[:, :1], points[:, 1:] @ matrix.mT], dim=1)


@dataclass(frozen=True)
class LinkPrediction(SplitTask):
    """The Fermi-Dirac decoder on the distances of points (Dai et al. 2021, Eq. 14), trained against fresh negatives.

    Args:
        val, test: Shares of the edges that are held out.
        protocol: How they are drawn, see ``split_edges``: ``"clean"`` or ``"legacy"``.
        negatives: Negatives a training edge.
        message_share: Each epoch a random share of the training edges carries messages and the others are predicted;
            None, as in the paper, does both with all of them. A share keeps a model from learning that what it
            predicts has just been averaged, which matters in trees.
        r, t: Radius and temperature of the decoder: a pair at squared distance ``r`` is a link with probability 1/2.
        learn_decoder: Whether ``r`` and ``t`` are trained.
        decoder: ``"symmetric"``, the paper's; ``"popularity"``, which lets some nodes have more links than others;
            ``"directed"``, which does that and tells source from target (see ``LinkHead``). ``"auto"`` is directed if
            the graph is, else symmetric.
        neighborhood_terms: Whether degrees and shared neighbors add to the logits of links, by weights that are fitted
            on the validation links once training is over (see ``NeighborhoodTerms``).
        options: See ``SplitTask`` and ``Task``. Calibrated are the probabilities of links among all pairs that are not
            training edges.
    """

    name: ClassVar[str] = "lp"
    title: ClassVar[str] = "link prediction"
    items: ClassVar[str] = "links"
    predicts: ClassVar[str | None] = "pairs"

    val: float = 0.05
    test: float = 0.1
    protocol: Protocol = "clean"
    negatives: int = 1
    message_share: float | None = None
    r: float = 2.0
    t: float = 1.0
    learn_decoder: bool = True
    decoder: Decoder = "auto"
    neighborhood_terms: bool = False

    def bind(self, data: Any) -> "LinkProblem":
        """The task on a graph, its edges split."""
        check_edges(data)
        if not data.edge_index.numel():
            raise DataError("the graph has no edges, and links are learned from some; give it edges")
        self.check_parts()
        shares = (0.0, 0.0) if self.final else (self.val, self.test)
        split = split_edges(data, *shares, seed=self.split_seed, protocol=self.protocol)
        for part in ("train", *self.parts):
            if not len(getattr(split, part)):
                raise DataError(
                    f"no edge is left for the {part} part of {len(split.train) + len(split.val) + len(split.test)}; "
                    "use a larger graph, larger shares (--set task.val=0.4 --set task.test=0.4), or --task embed"
                )
        return LinkProblem(replace(self, decoder=decoder_for(data, self.decoder)), data, split)

    def head(self, encoder: nn.Module, in_features: int, num_classes: int | None) -> LinkHead:
        return LinkHead(
            encoder, self.r, self.t, self.learn_decoder, self.decoder, self.neighborhood_terms, self.calibrate
        )

    @torch.no_grad()
    def probabilities(self, model: Model, points: Tensor, pairs: Tensor, data: Any) -> Tensor:
        """The probability of a link for each pair ``(k, 2)`` of rows of ``points``, nodes of a graph."""
        head: LinkHead = model.head

        def neighborhoods() -> Neighborhoods:
            return Neighborhoods(data.edge_index.T.cpu().numpy(), len(points), head.directed)

        return head.probabilities(head.logits_in(neighborhoods, points, pairs.to(points.device), model.distance_scale))

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


class LinkBatch(NamedTuple):
    """A graph, pairs of its rows, which of them are links, and the share of the batch that this process has."""

    messages: Any
    pairs: Tensor
    labels: Tensor
    share: float = 1.0

    def to(self, device: torch.device) -> "LinkBatch":
        return LinkBatch(self.messages.to(device), self.pairs.to(device), self.labels.to(device), self.share)


class LinkPart(NamedTuple):
    """Links and then as many other pairs, which are links, those whose nodes both have a training edge, and the places
    of links whose reverse is no edge (none in an undirected graph).
    """

    pairs: Pairs
    labels: NDArray[np.bool_]
    known: NDArray[np.bool_]
    one_way: NDArray[np.int64]


class LinkProblem(OneGraphProblem):
    """Link prediction on a graph that is split."""

    selection_metric = "auc"

    def __init__(self, task: LinkPrediction, data: Any, split: EdgeSplit) -> None:
        weights = split.train_edge_weight()
        if weights is not None:
            check_some_weight(weights, "the training graph")
        edge_index = split.train_edge_index()
        super().__init__(task, data, edge_index, weights, seen=edge_index)
        self.split = split
        count, share = len(split.train), task.message_share
        self.num_messages = 0 if share is None else min(count - 1, max(1, round(share * count)))
        self.num_items = count - self.num_messages  # edges that are predicted in an epoch
        self.num_hidden = sum(int((pairs[:, 0] != pairs[:, 1]).sum()) for pairs in (split.val, split.test))
        self._set_train_pairs(split.train)

    def _set_train_pairs(self, pairs: Pairs) -> None:
        self.train_pairs = pairs
        self.absent = AbsentPairs(self.split.space, pairs)

    def reorder(self) -> NDArray[np.int64]:
        places = super().reorder()
        self._set_train_pairs(self.split.space.ordered(places[self.split.train]))
        return places

    def batches(self, random: np.random.RandomState) -> Iterator[LinkBatch]:
        pairs, messages = self.train_pairs, self.messages if self.sampling is None else self.graph
        if self.num_messages:
            messages, pairs = self._divided(random)
        if self.sampling is not None:
            yield from self.sampled(messages, len(pairs), random, partial(self._sample, self.sampling, messages, pairs))
            return
        negatives = self.absent.draw(self.task.negatives * len(pairs), random)
        kinds = [cache_order(kind, self.num_nodes) for kind in (pairs, negatives)]
        both = torch.from_numpy(np.concatenate(kinds))
        yield LinkBatch(messages, both, (torch.arange(len(both)) < len(pairs)).float()).to(self.device)

    def _divided(self, random: np.random.RandomState) -> tuple[Adjacency, Pairs]:
        """The graph of a random share of the training edges, and the other ones, to be predicted. Edges of weight 0,
        which carry no message, are predicted first.
        """
        split, order = self.split, random.permutation(len(self.split.train))
        if split.train_weights is not None:
            order = order[np.argsort(split.train_weights[order] == 0, kind="stable")]
        chosen, others = np.split(order, [self.num_messages])
        weights = None if split.train_weights is None else split.train_weights[chosen]
        part = replace(split, train=split.train[chosen], train_weights=weights)
        graph = prepare_adjacency(part.train_edge_index(), part.train_edge_weight(), split.num_nodes)
        graph = graph if self.graph.nodes is None else reordered(graph, self.graph)
        return graph, self.train_pairs[others]

    def _sample(
        self, sampling: Sampling, messages: Adjacency, pairs: Pairs, chosen: NDArray[np.int64], seed: int
    ) -> LinkBatch:
        """Some links, their negatives, and the sampled neighborhoods of all their nodes."""
        links, count = chosen[sampling.mine], self.task.negatives * len(chosen)
        negatives = self.absent.draw(count, batch_random(seed), sampling.mine)
        ends = np.concatenate([pairs[links], negatives])
        part, rows = sampling.neighborhoods(messages, ends, seed)
        kinds = np.split(rows, [len(links)])
        pairs_of_rows = torch.from_numpy(np.concatenate([cache_order(kind, part.num_nodes) for kind in kinds]))
        labels = torch.arange(len(ends)) < len(links)
        return LinkBatch(part, pairs_of_rows, labels.float(), len(ends) / (len(chosen) + count))

    def loss(self, model: Model, batch: LinkBatch) -> Tensor:
        logits = model.head(encoded(model, self.features, batch.messages), batch.pairs, model.distance_scale)
        labels, weight = batch.labels.to(logits.dtype), None
        if self.task.negatives > 1:
            weight = torch.where(labels > 0, 1.0, 1 / self.task.negatives).to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, labels, weight)

    @cached_property
    def parts(self) -> dict[str, LinkPart]:
        """The parts that are evaluated."""
        split, space = self.split, self.split.space
        edges = np.sort(space.ranks(np.concatenate([split.train, split.val, split.test])))
        parts = {}
        for part in self.task.parts:
            links, others = getattr(split, part), getattr(split, f"{part}_neg")
            pairs = np.concatenate([links, others])
            backwards = space.ranks(links[:, ::-1]) if split.directed else np.empty(0, np.int64)
            one_way = np.flatnonzero(~contains(edges, backwards))
            parts[part] = LinkPart(pairs, np.arange(len(pairs)) < len(links), split.answerable(pairs), one_way)
        return parts

    @cached_property
    def neighborhoods(self) -> Neighborhoods:
        """Degrees and shared neighbors in the training graph."""
        return Neighborhoods(self.split.train, self.num_nodes, self.task.decoder == "directed")

    @torch.no_grad()
    def finish(self, model: Model) -> bool:
        """Fits what comes after training: terms on validation pairs whose nodes both have a training edge, and then
        the calibration. Returns whether that changed the order of pairs.
        """
        head: LinkHead = model.head
        if head.neighborhood is None and head.calibration is None:
            return False
        points = self.points(model)
        changed = head.neighborhood is not None and head.neighborhood.fit(*self._rows_to_fit(model, points))
        if head.calibration is not None:
            head.calibration.fit(*self._scores_of_all(model, points, "val"))
        return changed

    def _rows_to_fit(self, model: Model, points: Tensor) -> tuple[Rows, NDArray[np.bool_], Rows]:
        """What terms are fitted on: rows of validation pairs whose nodes both have a training edge, which of them are
        links, and rows of pairs without an edge. A row is the logit of the decoder and the features of neighborhoods.
        """
        part = self.parts["val"]
        others, _ = self._others(NUM_OTHERS, seed=len(self.task.parts))
        rows, of_others = (
            np.column_stack([self._scores(model, points, pairs, finished=False), self.neighborhoods.features(pairs)])
            for pairs in (part.pairs[part.known], others[self.split.answerable(others)])
        )
        return rows, part.labels[part.known], of_others

    def _scores(self, model: Model, points: Tensor, pairs: Pairs, finished: bool = True) -> Scores:
        """The logits of the finished model, or of the decoder alone."""
        numbers = torch.from_numpy(np.ascontiguousarray(pairs)).to(self.device)
        logits_of = partial(model.head.logits_in, lambda: self.neighborhoods) if finished else model.head
        return logits_of(points, numbers, model.distance_scale).double().cpu().numpy()

    def part_scores(self, model: Model, points: Tensor, part: str) -> Scores:
        """The scores of the pairs of a part. Terms that were fitted on the validation part are fitted again without
        each pair that they score.
        """
        pairs, _, known, _ = self.parts[part]
        scores = self._scores(model, points, pairs)
        if part == "val" and model.head.sees_neighborhoods:
            scores[known] = out_of_fold(*self._rows_to_fit(model, points))
        return scores

    def _scores_of_all(
        self, model: Model, points: Tensor, part: str
    ) -> tuple[Scores, NDArray[np.bool_], NDArray[np.float64]]:
        """Scores of all pairs that are not training edges, which are links, and weights: the links of a part stand for
        all that are held out, and a sample of the pairs without an edge for all of these. Nodes are not paired with
        themselves, not even by the legacy protocol: they are as near as can be, and nobody asks for such links.
        """
        others, count = self._others(_MOST_PAIRS, seed=self.task.parts.index(part))  # other ones for each part
        chunks = (others[first : first + _CHUNK] for first in range(0, len(others), _CHUNK))
        links = getattr(self.split, part)
        of_links = self.part_scores(model, points, part)[: len(links)][links[:, 0] != links[:, 1]]
        scores = np.concatenate([of_links, *(self._scores(model, points, some) for some in chunks)])
        labels = np.arange(len(scores)) < len(of_links)
        weights = np.where(labels, self.num_hidden / max(len(of_links), 1), count / max(len(others), 1))
        return scores, labels, weights

    def _others(self, most: int, seed: int) -> tuple[Pairs, int]:
        """Pairs of two nodes without an edge, all or as many random ones as wanted, and how many there are."""
        split, space = self.split, PairSpace(self.split.num_nodes, self.split.directed)
        edges = distinct_pairs(space, np.concatenate([split.train, split.val, split.test]))
        count = len(space) - len(edges)
        if count <= most:
            return space.pairs(nth_absent(space.ranks(edges), np.arange(count))), count
        return AbsentPairs(space, edges).draw(most, np.random.RandomState(seed)), count

    @torch.no_grad()
    def reliability(self, model: Model, part: str, points: Tensor | None = None) -> tuple[Bins, Bins, int | None]:
        """Bins of the probabilities of all pairs and of the likeliest, as many as links are held out. Where pairs
        without a link are sampled, also how many of the sample are among the likeliest.
        """
        points = self.points(model) if points is None else points
        scores, labels, weights = self._scores_of_all(model, points, part)
        chances = model.head.probabilities(torch.from_numpy(scores).to(points)).double().cpu().numpy()
        everywhere, top = (
            reliability(chances[chosen], labels[chosen], weights[chosen], LINK_BINS)
            for chosen in (slice(None), likeliest(chances, weights, self.num_hidden))
        )
        sampled = None
        if weights[~labels].max(initial=1) > 1:
            sampled = int((~labels[likeliest(scores, weights, self.num_hidden)]).sum())
        return everywhere, top, sampled

    def details(self, model: Model, part: str) -> dict[str, Any]:
        """How often pairs with such a probability are links, and, where pairs without a link are sampled, how many of
        the sample are among the likeliest pairs.
        """
        bins, _, sampled = self.reliability(model, part)
        return {"reliability": bins} | ({} if sampled is None else {"sampled_at_top": sampled})

    @torch.no_grad()
    def evaluate(self, model: Model, part: str) -> Metrics:
        """Ranking metrics, and of the test part calibration errors."""
        points, (pairs, labels, known, one_way) = self.points(model), self.parts[part]
        scores = self.part_scores(model, points, part)
        metrics = link_metrics(scores[labels], scores[~labels])
        if model.head.sees_neighborhoods:
            alone = self._scores(model, points, pairs, finished=False)
            metrics["auc_decoder"] = auc(alone[labels], alone[~labels])
        if (labels & known).any() and (~labels & known).any() and not known.all():
            metrics["auc_answerable"] = auc(scores[labels & known], scores[~labels & known])
        if len(one_way):
            metrics["direction_auc"] = auc(scores[one_way], self._scores(model, points, pairs[one_way][:, ::-1]))
        if part != "val":  # which is evaluated after every epoch
            everywhere, top, _ = self.reliability(model, part, points)
            metrics |= {"ece": calibration_error(everywhere), "ece_top": calibration_error(top)}
            scores_of_all = model.head.pair_scores(lambda: self.neighborhoods, points, model.distance_scale)
            metrics |= precision_of(scores_of_all, self.split, part)
        return metrics

    def baselines(self, part: str) -> Baselines:
        return link_baselines(self.x, self.split, part)
