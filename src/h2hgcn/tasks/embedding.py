"""Embedding: distances that reconstruct all links of a graph, with nothing held out."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.sparse import csgraph
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.datasets.shape import transitive_closure
from h2hgcn.errors import DataError, NonFiniteError
from h2hgcn.geometry.numerics import INNER_PRODUCT_STEPS
from h2hgcn.graph.adjacency import inverse_order
from h2hgcn.kernels.distances import pairwise_distance
from h2hgcn.layers.spaces import Space, as_lorentz, check_space
from h2hgcn.models.shallow import ShallowHyperbolic
from h2hgcn.tasks.base import OneGraphProblem, Task
from h2hgcn.tasks.baselines import Baselines
from h2hgcn.tasks.checks import check_edges
from h2hgcn.tasks.metrics import Metrics
from h2hgcn.tasks.model import Model, encoded
from h2hgcn.tasks.neighborhoods import link_matrix

# Up to so many nodes a step compares each link with all nodes, and metrics are over all of them.
ALL_PAIRS = 5_000

# Of larger graphs: nodes whose neighbors are ranked, and pairs and sources that distortion is measured on.
_RANKED_NODES, _MEASURED_PAIRS, _MEASURED_SOURCES = 1_000, 1 << 20, 256

# Distances that metrics compute at once. Pairs that the loss looks at together: a few float64 arrays of this size stay
# in a core's cache.
_DISTANCE_BLOCK, _BLOCK_ELEMENTS = 1 << 20, 1 << 16

# Beyond all logits: the maximum over nobody.
_FAR = 1e300


def links_without_loops(edge_index: Any, num_nodes: int, directed: bool = False) -> sp.csr_array:
    """``link_matrix`` of the edges of two nodes."""
    edges = np.asarray(edge_index).T
    return link_matrix(edges[edges[:, 0] != edges[:, 1]], num_nodes, directed)


def rank_metrics(
    points: Tensor, space: Space, links: sp.csr_array, nodes: NDArray[np.int64] | None = None, count_self: bool = False
) -> dict[str, float]:
    """``map`` and ``mean_rank`` (Nickel and Kiela 2017, section 4.1).

    The neighbors of a node, those in its row of ``links``, are ranked by distance among all nodes that are not its
    neighbors. The mean rank is over all links, at best 1; average precision is averaged over the nodes that have a
    neighbor. Equal distances share the mean rank, so points that coincide gain nothing.

    Args:
        points: Rows ``(num_nodes, ...)`` in ``space``.
        nodes: The nodes to rank for; None takes all.
        count_self: Whether a node counts among the others that its neighbors are ranked with, at distance 0. gensim's
            ``ReconstructionEvaluation`` does so; its mean rank is then 2 at best and its precision below 1.
    """
    chosen = np.arange(len(points)) if nodes is None else nodes
    chosen = chosen[np.diff(links.indptr)[chosen] > 0]
    size = max(1, _DISTANCE_BLOCK // len(points))
    ranks, precisions = [], []
    for first in range(0, len(chosen), size):
        block = chosen[first : first + size]
        for node, row in zip(block, _distances_from(points, space, block), strict=True):
            neighbors = links.indices[links.indptr[node] : links.indptr[node + 1]]
            near = row[neighbors]
            row[neighbors] = np.inf
            row[node] = 0.0 if count_self else np.inf
            row.sort()
            closer = np.searchsorted(row, near, side="left")
            equal = np.searchsorted(row, near, side="right") - closer
            rank = np.sort(1 + closer + equal / 2)
            hits = np.arange(len(rank))
            ranks.append(rank)
            precisions.append(float(((hits + 1) / (rank + hits)).mean()))
    return {"map": float(np.mean(precisions)), "mean_rank": float(np.concatenate(ranks).mean())}


@torch.no_grad()
def _distances_from(points: Tensor, space: Space, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Distances ``(len(nodes), num_nodes)`` from some nodes to all, in float64."""
    points = points.detach().double()
    chosen = points[torch.from_numpy(nodes).to(points.device)]
    if space == "euclidean":
        distances = torch.cdist(chosen, points, compute_mode="donot_use_mm_for_euclid_dist")
    else:
        distances = pairwise_distance(as_lorentz(chosen, space), as_lorentz(points, space))
    if not bool(distances.isfinite().all()):
        raise NonFiniteError("the distances hold NaN or infinity")
    return distances.cpu().numpy()


class GraphDistances(NamedTuple):
    """Numbers of edges on shortest paths ``hops (len(sources), num_nodes)``; -1 where there is no path."""

    sources: NDArray[np.int64]
    hops: NDArray[np.int32]


def graph_distances(links: sp.csr_array, sources: NDArray[np.int64]) -> GraphDistances:
    """Distances along links, whichever way they point."""
    hops = np.empty((len(sources), links.shape[0]), dtype=np.int32)
    for row, source in zip(hops, sources, strict=True):  # one by one, since SciPy returns float64
        found = csgraph.dijkstra(links, directed=False, indices=int(source), unweighted=True)
        row[:] = np.where(np.isfinite(found), found, -1)
    return GraphDistances(sources, hops)


def distortion_metrics(points: Tensor, space: Space, graph: GraphDistances) -> dict[str, float]:
    """``distortion``, the mean of ``|s·d - h| / h`` at the scale ``s`` that minimizes it, and ``worst_distortion``, the
    largest ratio ``d / h`` over the smallest (Sala et al. 2018), of distances ``d`` and distances in the graph ``h``.

    The worst distortion is infinite if two nodes have the same point; it is left out then, since JSON has no infinity.
    """
    ratios = []
    for source, hops in zip(graph.sources, graph.hops, strict=True):
        reached = hops > 0
        ratios.append(_distances_from(points, space, np.array([source]))[0, reached] / hops[reached])
    ratio = np.sort(np.concatenate(ratios))
    if not len(ratio) or ratio[-1] == 0:
        return {}
    # a sum of |s·r - 1| = r·|s - 1/r| is least at the weighted median of 1/r, with weights r
    weight = np.cumsum(ratio)
    scale = 1 / ratio[np.searchsorted(weight, weight[-1] / 2)]
    metrics = {"distortion": float(np.abs(scale * ratio - 1).mean())}
    return metrics if ratio[0] == 0 else metrics | {"worst_distortion": float(ratio[-1] / ratio[0])}


@dataclass(frozen=True)
class Embedding(Task):
    """Learns all links of a graph by their distances, and reports how well these reconstruct the graph.

    The loss is the softmax ranking loss of Nickel and Kiela (2017, Eq. 6), both ways of a link: the other end of a link
    should be nearer than all nodes that are not linked. Up to 5,000 nodes it is computed exactly, with all of these
    nodes; in larger graphs at each step with a fresh sample of them and with nodes nearby, found by random splits.

    Args:
        closure: Embed the transitive closure of a directed acyclic graph: links between a node and all its ancestors.
        temperature: Distances are divided by it. In hyperbolic space it takes the place of a curvature.
        candidates: Number of nodes that a link is compared with at each step in graphs of more than 5,000 nodes, half
            of them nearby.
        sample_seed: Of the nodes and pairs that metrics of larger graphs are measured on.
        options: See ``Task``; of features, for encoders that use them.
    """

    name: ClassVar[str] = "embed"
    title: ClassVar[str] = "embedding"
    items: ClassVar[str] = "links"
    parts: ClassVar[tuple[str, ...]] = ("reconstruction",)
    protocol: ClassVar[str] = "all links"
    default_model: ClassVar[str] = "hyp"
    batch_rule: ClassVar[str] = "a step of --task embed learns all links"

    closure: bool = False
    temperature: float = 0.125
    candidates: int = 512
    sample_seed: int = 1234

    def bind(self, data: Any) -> "EmbeddingProblem":
        """The task on a graph."""
        check_edges(data)
        if self.closure and not getattr(data, "directed", True):
            raise DataError(
                "the closure of a hierarchy needs directed edges, and this graph is undirected; load it with "
                "--directed, or leave out --closure"
            )
        return EmbeddingProblem(self, data)

    def default_encoder(self, in_features: int, num_nodes: int) -> nn.Module:
        """The encoder of ``fit`` if none is given."""
        return ShallowHyperbolic(in_features, 10, points="tangent", num_nodes=num_nodes)

    def head(self, encoder: nn.Module, in_features: int, num_classes: int | None) -> nn.Module:
        return nn.Identity()


class LinkPairs(NamedTuple):
    """Links both ways ``(2, k)``, sorted by their first node, and where the links of each node begin."""

    ends: Tensor
    starts: Tensor


class Sample(NamedTuple):
    """Nodes that stand for all, to be compared with every node; and how many nodes nearby each node is compared with,
    found by random splits from ``seed``.
    """

    nodes: Tensor
    nearby: int
    seed: int


class EmbeddingProblem(OneGraphProblem):
    """The embedding of a graph: its links, and what their reconstruction is measured with.

    ``learned_links`` are the links that are learned, both ways; ``split`` is None, since nothing is held out.
    """

    selection_metric = "map"
    split = None

    def __init__(self, task: Embedding, data: Any) -> None:
        num_nodes = int(data.num_nodes)
        learned = given = data.edge_index.cpu()
        if task.closure:
            names = getattr(data, "node_ids", None)
            learned = transitive_closure(given, num_nodes, None if names is None else list(names))
        self.links = links_without_loops(learned, num_nodes)
        if not self.links.nnz:
            raise DataError("the graph has no edge between two nodes; there is nothing to embed")
        self.ranked = {"": self.links}  # what is ranked, by the prefixes of metrics
        edges = self.links
        if task.closure:
            edges = links_without_loops(given, num_nodes)
            down = links_without_loops(learned, num_nodes, directed=True)
            # a node has at most as many ancestors as the hierarchy is deep, but the root has all nodes as descendants
            up = down.T.tocsr()
            ancestors = min(down, up, key=lambda links: np.diff(links.indptr).max())
            self.ranked |= {"ancestors_": ancestors, "edges_": edges}
        self.num_items = self.links.nnz // 2  # each link counted once
        counts = np.diff(self.links.indptr)
        ends = np.stack([np.repeat(np.arange(num_nodes), counts), self.links.indices])
        self.learned_links = torch.from_numpy(ends.astype(np.int64))
        self._pairs = LinkPairs(self.learned_links, torch.from_numpy(self.links.indptr.astype(np.int64)))
        super().__init__(task, data, self.learned_links, None, seen=self.learned_links)
        random = np.random.RandomState(task.sample_seed)
        self._is_large = num_nodes > ALL_PAIRS
        self._sample: NDArray[np.int64] | None = None
        if self._is_large:
            self._sample = np.sort(random.permutation(np.flatnonzero(counts))[:_RANKED_NODES])
        sources = max(1, min(num_nodes, _MEASURED_SOURCES, _MEASURED_PAIRS // num_nodes))
        self._distances = graph_distances(edges, np.sort(random.permutation(num_nodes)[:sources]))
        others = f"{task.candidates:,} nodes, nearby and random ones" if self._is_large else "all nodes"
        self.plan = f"all {self.num_items:,} links in every step, each compared with {others}"

    @property
    def notes(self) -> list[str]:
        """Which metrics were measured on a sample."""
        notes = []
        if self._sample is not None:
            notes.append(
                f"map and mean_rank are of a random sample of {len(self._sample):,} of {self.num_nodes:,} nodes"
            )
        if len(self._distances.sources) < self.num_nodes:
            notes.append(f"distortion is of the distances from {len(self._distances.sources):,} random nodes to all")
        return notes

    def to(self, device: torch.device | str) -> None:
        super().to(device)
        self._pairs = LinkPairs(*(part.to(device) for part in self._pairs))

    def batches(self, random: np.random.RandomState) -> Iterator[Sample | None]:
        """One batch: what links are compared with, None for all nodes."""
        if not self._is_large:
            yield None
            return
        half = min(max(1, self.task.candidates // 2), self.num_nodes)
        nodes = torch.from_numpy(np.sort(random.choice(self.num_nodes, half, replace=False))).to(self.device)
        yield Sample(nodes, half, int(random.randint(1 << 31)))

    def loss(self, model: Model, batch: Sample | None) -> Tensor:
        points = encoded(model, self.features, self.adjacency)
        scale = model.distance_scale / self.task.temperature
        return ranking_loss(points, check_space(model.encoder.space), self._pairs, batch, scale)

    @torch.no_grad()
    def evaluate(self, model: Model, part: str) -> Metrics:
        """Reconstruction of all links.

        Of a closure, ``ancestors_map`` and ``ancestors_mean_rank`` rank the ancestors of each node among all other
        nodes, its descendants included, as Nickel and Kiela do; ``edges_map`` and ``edges_mean_rank`` rank its
        neighbors along the edges that were given.
        """
        points, space = self.points(model), check_space(model.encoder.space)
        metrics: Metrics = {}
        for prefix, links in self.ranked.items():
            found = rank_metrics(points, space, links, self._sample)
            metrics |= {prefix + name: value for name, value in found.items()}
        return metrics | distortion_metrics(points, space, self._distances)

    def baselines(self, part: str) -> Baselines:
        """None: nothing was held out that could be guessed."""
        return Baselines({}, {})


def ranking_loss(
    points: Tensor, space: Space, links: LinkPairs, sample: Sample | None = None, scale: Tensor | float = 1.0
) -> Tensor:
    """The mean over links ``(u, v)`` of ``-log(exp(-s·d(u, v)) / (exp(-s·d(u, v)) + Σ exp(-s·d(u, w))))``, the sum over
    all nodes ``w`` that are neither ``u`` nor linked with it (Nickel and Kiela 2017, Eq. 6).

    With a ``sample``, the sum is over a group of nodes near ``u``, plus an estimate for all others. ``s`` is ``scale``.
    Memory is bounded: pairs are looked at by blocks of rows, in float64, and the gradient is computed with the loss.
    """
    points = points if space == "euclidean" else as_lorentz(points, space)
    scale = torch.as_tensor(scale, dtype=torch.float64, device=points.device)
    return _RankingLoss.apply(points, scale, space == "euclidean", links, sample)  # type: ignore[no-untyped-call]


class _RankingLoss(torch.autograd.Function):
    """The loss and, in the same pass, its gradient: what is written in passing stays in cache."""

    @staticmethod
    def forward(ctx: Any, points: Tensor, scale: Tensor, flat: bool, links: LinkPairs, sample: Sample | None) -> Tensor:
        factors, order = _Factors.of(points, flat), None
        if sample is not None:
            order = _nearby_order(factors.lifted[:, 1:] / factors.lifted[:, :1], sample)
            factors, links, sample = factors.rows(order), *_reordered(links, sample, order)
        loss, pull, scale_gradient = _loss_and_pull(factors, float(scale), links, sample)
        # ∂(squared chord)/∂x = 2(t'/t·x - x'), and the slope of a distance in it is 1/(2 sinh)
        gradient = pull[:, :1] / factors.lifted[:, :1] * factors.lifted[:, 1:] - pull[:, 1:]
        if order is not None:
            gradient = torch.empty_like(gradient).index_copy_(0, order, gradient)
        if not flat:
            gradient = F.pad(gradient, (1, 0))  # time follows from space
        count = links.ends.shape[1]
        ctx.save_for_backward(
            (gradient * (float(scale) / count)).to(points.dtype), scale.new_tensor(scale_gradient / count)
        )
        return points.new_tensor(loss / count)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        points, scale = ctx.saved_tensors
        return grad * points, grad * scale, None, None, None


class _Factors(NamedTuple):
    """Points in float64 such that ``left @ right.T`` is half the squared chord, plus 1 in hyperbolic space, and
    ``lifted``, a time (1 in Euclidean space) before the coordinates.
    """

    left: Tensor
    right: Tensor
    lifted: Tensor
    flat: bool

    @classmethod
    def of(cls, points: Tensor, flat: bool) -> "_Factors":
        space = (points if flat else points[:, 1:]).detach().double()
        square, one = space.square().sum(1, keepdim=True), space.new_ones(len(space), 1)
        if flat:
            left, right = torch.cat([square / 2, one, space], 1), torch.cat([one, square / 2, -space], 1)
            return cls(left, right, torch.cat([one, space], 1), flat)
        time = (1 + square).sqrt()
        lifted = torch.cat([time, space], 1)
        return cls(lifted, torch.cat([time, -space], 1), lifted, flat)

    def rows(self, chosen: Any) -> "_Factors":
        return _Factors(self.left[chosen], self.right[chosen], self.lifted[chosen], self.flat)

    def joined(self, others: "_Factors") -> "_Factors":
        left, right, lifted = (torch.cat(pair) for pair in zip(self[:3], others[:3], strict=True))
        return _Factors(left, right, lifted, self.flat)

    def measure(self, product: Tensor, rounding: Tensor) -> tuple[Tensor, Tensor]:
        """Distances and, with ``q`` for the squared chord, ``1 / (2 ∂distance/∂q)``, from products, which are
        overwritten; ``rounding`` is their size before cancellation. Below its noise a chord counts as the noise, so
        that gradients stay bounded.
        """
        chord = product.mul_(2) if self.flat else product.sub_(1).mul_(2)
        torch.maximum(chord, rounding.mul_(2 * INNER_PRODUCT_STEPS * torch.finfo(torch.float64).eps), out=chord)
        chord.clamp_min_(torch.finfo(torch.float64).tiny)
        if self.flat:
            distance = chord.sqrt_()
            return distance, distance.clone()
        sinh = torch.addcmul(chord, chord, chord, value=0.25).sqrt_()
        return chord.mul_(0.5).add_(sinh).log1p_(), sinh

    def sizes(self) -> Tensor:
        """What the first factor contributes to a product before it cancels."""
        return self.left[:, :2].sum(1) if self.flat else self.left[:, 0]


def _loss_and_pull(factors: _Factors, s: float, links: LinkPairs, sample: Sample | None) -> tuple[float, Tensor, float]:
    """The sum of the losses of all links; the sum over all pairs of a node of their weights times the lifted other
    point, from which its gradient follows; and the gradient of the scale.
    """
    (source, target), starts = links
    everybody = torch.arange(len(factors.lifted), device=source.device)
    drawn, place = factors, everybody  # those that all nodes are compared with, and the place of each among them
    if sample is not None:
        drawn, place = factors.rows(sample.nodes), torch.full_like(everybody, -1)
        place[sample.nodes] = everybody[: len(sample.nodes)]
    pull, drawn_pull = torch.zeros_like(factors.lifted), torch.zeros_like(drawn.lifted)
    loss, scale_gradient = 0.0, 0.0
    first, second = factors.rows(source), factors.rows(target)
    length, slope = factors.measure((first.left * second.right).sum(1), first.sizes() * second.sizes())
    weight = torch.empty_like(length)
    size = max(1, _BLOCK_ELEMENTS // len(everybody)) if sample is None else sample.nearby
    bounds = starts.tolist()
    for begin in range(0, len(everybody), size):
        end = min(begin + size, len(everybody))
        own = slice(bounds[begin], bounds[end])
        if own.start == own.stop:
            continue
        rows, block = source[own] - begin, factors.rows(slice(begin, end))
        others = drawn if sample is None else block.joined(drawn)
        product = block.left @ others.right.mT
        distance, sinh = factors.measure(product, torch.outer(block.sizes(), others.sizes()))
        force = distance * -s
        if sample is None:
            _exclude(force, rows, target[own])
            _exclude(force, everybody[: end - begin], everybody[begin:end])
        else:
            stretch = _exclude_sampled(force, rows, target[own], place, begin, starts[begin : end + 1])
        top = force.amax(1, keepdim=True).clamp_min_(-_FAR)
        force.sub_(top).exp_()
        if sample is not None:  # nodes of the sample stand for all that are not nearby
            force[:, end - begin :] *= stretch[:, None]
        total = force.sum(1, keepdim=True)
        log_sum = (top + total.log()).squeeze(1)
        logit = log_sum[rows] + s * length[own]
        loss += float(F.softplus(logit).sum())
        weight[own] = logit.sigmoid()
        row_weight = torch.zeros_like(log_sum).index_add_(0, rows, weight[own])
        force.mul_(-row_weight[:, None] / total.clamp_min(torch.finfo(total.dtype).tiny))
        scale_gradient += float(torch.dot(force.view(-1), distance.view(-1)))
        force.div_(sinh)
        pull[begin:end] += force @ others.lifted
        if sample is not None:
            near, force = force.split([end - begin, len(drawn.lifted)], 1)
            pull[begin:end].addmm_(near.mT, block.lifted)
        drawn_pull.addmm_(force.mT, block.lifted)
    scale_gradient += float(torch.dot(weight, length))
    weight = (weight / slope)[:, None]
    pull.index_add_(0, source, weight * second.lifted).index_add_(0, target, weight * first.lifted)
    pull = pull + drawn_pull if sample is None else pull.index_add_(0, sample.nodes, drawn_pull)
    return loss, pull, scale_gradient


def _nearby_order(coordinates: Tensor, sample: Sample) -> Tensor:
    """Nodes in an order in which each run of ``sample.nearby`` lies close together: halved by a random direction, each
    half by another, and so on.
    """
    count, size = len(coordinates), sample.nearby
    depth = max(0, math.ceil(math.log2(count / size)))
    directions = np.random.RandomState(sample.seed).normal(size=(depth, coordinates.shape[1]))
    order = torch.arange(count, device=coordinates.device)
    for level, direction in enumerate(torch.from_numpy(directions).to(coordinates)):
        group = torch.arange(count, device=order.device) // (size << (depth - level))
        by_height = (coordinates[order] @ direction).argsort()
        order = order[by_height[group[by_height].argsort(stable=True)]]
    return order


def _reordered(links: LinkPairs, sample: Sample, order: Tensor) -> tuple[LinkPairs, Sample]:
    """The same links and sample, with nodes numbered by their places in ``order``."""
    place = inverse_order(order)
    ends = place[links.ends]
    ends = ends[:, ends[0].argsort(stable=True)]
    starts = F.pad((links.starts[1:] - links.starts[:-1])[order].cumsum(0), (1, 0))
    return LinkPairs(ends, starts), sample._replace(nodes=place[sample.nodes])


def _exclude(logits: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Sets some logits to -inf; the number of them in each row."""
    logits.view(-1)[rows * logits.shape[1] + columns] = -math.inf
    return torch.bincount(rows, minlength=len(logits))


def _exclude_sampled(
    logits: Tensor, rows: Tensor, targets: Tensor, place: Tensor, begin: int, starts: Tensor
) -> Tensor:
    """Excludes links, the node itself, and nodes of the sample that are nearby anyway, from logits of the nodes from
    ``begin`` on, first with each other and then with the sample; for each row, how many nodes one of the sample stands
    for.
    """
    size = len(logits)
    itself = torch.arange(size, device=logits.device)
    near = (targets >= begin) & (targets < begin + size)
    linked_near = _exclude(logits, rows[near], targets[near] - begin)
    _exclude(logits, itself, itself)
    twice = place[begin : begin + size]
    twice = twice[twice >= 0] + size
    logits[:, twice] = -math.inf
    far = ~near & (place[targets] >= 0)
    linked_far = _exclude(logits, rows[far], place[targets[far]] + size)
    drawn = logits.shape[1] - size - len(twice) - linked_far
    absent = len(place) - size - (starts[1:] - starts[:-1] - linked_near)
    return torch.where(drawn > 0, absent / drawn.clamp_min(1), 0.0).to(logits.dtype)
