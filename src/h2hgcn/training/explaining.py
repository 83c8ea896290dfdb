"""Which edges and features made a prediction: what their removal changes, and GNNExplainer (Ying et al. 2019)."""

import copy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import k_hop_subgraph

from h2hgcn.errors import DataError
from h2hgcn.graph.adjacency import prepare_adjacency
from h2hgcn.kernels.csr import is_sparse
from h2hgcn.layers.h2h_conv import H2HConv
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.tasks.neighborhoods import Neighborhoods
from h2hgcn.training.names import NodeNames
from h2hgcn.training.recommending import import_pandas
from h2hgcn.training.settings import torch_seeded

if TYPE_CHECKING:
    import pandas

    from h2hgcn.training.run import Run


# How many edges and features are tried for each that is reported: the gradient's order is nearly that of the changes.
_TRIED = 3


class EdgePart(NamedTuple):
    """An edge, how much lower the probability of the prediction is without it, and GNNExplainer's mask, 0 to 1."""

    source: Any
    target: Any
    change: float
    mask: float


class FeaturePart(NamedTuple):
    """A feature and its value (for a pair, that of the first node), how much lower the probability of the prediction is
    if all nodes have its mean, and GNNExplainer's mask, 0 to 1.
    """

    feature: str
    value: float
    change: float
    mask: float


@dataclass(frozen=True)
class Explanation:
    """The prediction for a node or a pair of nodes, its probability, and what it rests on, largest ``change`` first.

    A negative ``change`` speaks against the prediction.
    """

    nodes: tuple[Any, ...]
    prediction: str
    probability: float
    edges: list[EdgePart]
    features: list[FeaturePart]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        parts = {name: [part._asdict() for part in getattr(self, name)] for name in ("edges", "features")}
        return asdict(self) | {"nodes": list(self.nodes), **parts}

    def columns(self) -> dict[str, list[Any]]:
        """Edges and features as one table, whose column ``kind`` says which."""
        rows: list[tuple[Any, ...]] = [("edge", *map(str, edge[:2]), None, None, *edge[2:]) for edge in self.edges]
        rows += [("feature", None, None, *feature) for feature in self.features]
        names = ("kind", "source", "target", "feature", "value", "change", "mask")
        return {name: [row[k] for row in rows] for k, name in enumerate(names)}

    def to_pandas(self) -> "pandas.DataFrame":
        return import_pandas().DataFrame(self.columns())


class ExplainableModel(nn.Module):
    """The model of a run on one graph as ``torch_geometric.explain`` takes it: logits of ``x`` and ``edge_index``.

    Logits are those of classes for all nodes, or of links for ``pairs (k, 2)``. Masks of edges work for every encoder
    that weighs edges: they come in by a gate, and its own layers are left alone.
    """

    def __init__(self, run: "Run") -> None:
        super().__init__()
        self.model = copy.deepcopy(run.model).eval().requires_grad_(False)
        for module in self.model.modules():
            if isinstance(module, MessagePassing):
                module.explain = False
        self.gate = H2HConv(1, 1)  # for its mask alone

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        nodes: Tensor | None = None,
        pairs: Tensor | None = None,
    ) -> Tensor:
        points = self.points(x, edge_index, edge_weight, nodes)
        head, scale = self.model.head, self.model.distance_scale
        logits: Tensor = head(points, scale) if pairs is None else head(points, pairs, scale)
        return logits

    def points(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, nodes: Tensor | None) -> Tensor:
        """The points of all nodes, which are the training nodes ``nodes``."""
        weight = self.gate.masked_weight(edge_index, edge_weight)
        adjacency, encoder = prepare_adjacency(edge_index, weight, len(x)), self.model.encoder
        options = {} if nodes is None or node_vectors_of(encoder) is None else {"nodes": nodes}
        points: Tensor = encoder(self.model.scaling(x), adjacency, **options)
        return points


def edges_to_shared(edges: Tensor, pair: Tensor) -> Tensor:
    """Which of the edges ``(2, k)`` lead from a node of the pair to a neighbor that both have."""
    first, second = (edges.flip(0)[edges == node] for node in pair)
    shared = first[torch.isin(first, second)]
    return (torch.isin(edges, pair).any(0) & torch.isin(edges, shared).any(0)).nonzero().squeeze(1)


def explain(run: "Run", node: Any, other: Any = None, *, k: int = 10, epochs: int = 200, seed: int = 0) -> Explanation:
    """``Run.explain``."""
    if run.task.predicts not in ("nodes", "pairs"):
        raise DataError(f"a run of --task {run.task.name} cannot be explained; use one of nodes (nc) or of links (lp)")
    of_pairs = run.task.predicts == "pairs"
    if of_pairs != (other is not None):
        raise DataError(
            "this run predicts links: name both nodes of a pair"
            if of_pairs
            else "this run predicts classes: name one node"
        )
    if k < 1 or epochs < 1:
        raise DataError(f"k={k} and epochs={epochs} must be at least 1")
    named = NodeNames(run.data).numbers([node] if other is None else [node, other])
    if of_pairs and named[0] == named[1]:
        raise DataError(f"the pair is the node {node} with itself; a link joins two nodes")
    with run.threads(run.problem.num_nodes), torch_seeded(seed):
        return _Explaining(run, named).explained(k, epochs)


class _Explaining:
    """The part of a run's graph that a prediction depends on."""

    def __init__(self, run: "Run", named: NDArray[np.int64]) -> None:
        self.run = run
        problem: Any = run.problem
        self.model = ExplainableModel(run).to("cpu")
        edge_index, edge_weight = problem.adjacency.to("cpu").edges(self_loops=False)
        # weights of a node depend on its neighbors: one hop more than there are layers
        hops = getattr(run.model.encoder, "num_layers", 2) + 1
        self.nodes, self.edge_index, self.places, inside = k_hop_subgraph(
            torch.from_numpy(named), hops, edge_index, relabel_nodes=True, num_nodes=problem.num_nodes
        )
        self.edge_weight = edge_weight[inside].float()
        x = problem.x.cpu()
        self.x = (x.index_select(0, self.nodes).to_dense() if is_sparse(x) else x[self.nodes]).float()
        sums = torch.sparse.sum(x, 0).to_dense() if is_sparse(x) else x.double().sum(0)
        self.means = (sums / x.shape[0]).float()
        self.pairs = self.places[None] if run.task.predicts == "pairs" else None
        self.named = torch.from_numpy(named)[None]
        self.sees_neighborhoods = self.pairs is not None and self.model.model.head.sees_neighborhoods
        self.notes: list[str] = []

    def explained(self, k: int, epochs: int) -> Explanation:
        run, probabilities = self.run, self.probabilities()
        chosen = int(probabilities.argmax())
        options = {"nodes": self.nodes} | ({} if self.pairs is None else {"pairs": self.pairs})
        by_edge, by_feature = self.first_order(chosen, options)
        edge_mask, feature_mask = self.masks(epochs, options, bool(by_edge.any()), bool(by_feature.any()))
        edges = []
        for ends, rows in self.candidates(by_edge, _TRIED * k):
            source, target = self.ids(ends)
            change = float(probabilities[chosen]) - self.probability(chosen, edges=rows)
            edges.append(EdgePart(source, target, change, float(edge_mask[rows].max())))
        titles = getattr(run.data, "feature_names", None) or [f"feature {j}" for j in range(len(self.means))]
        features = []
        for j in by_feature.abs().topk(min(_TRIED * k, int((by_feature != 0).sum()))).indices.tolist():
            change = float(probabilities[chosen]) - self.probability(chosen, feature=j)
            value = float(self.x[self.places[0], j])
            features.append(FeaturePart(titles[j], value, change, float(feature_mask[j])))
        kinds = ["no link", "link"] if self.pairs is not None else run.classes or []
        edges = sorted(edges, key=lambda part: -abs(part.change))[:k]
        features = sorted(features, key=lambda part: -abs(part.change))[:k]
        return Explanation(
            self.ids(self.places), kinds[chosen], float(probabilities[chosen]), edges, features, self.notes
        )

    def ids(self, rows: Tensor) -> tuple[Any, ...]:
        return tuple(self.run.nodes[self.nodes[rows].numpy()].tolist())

    @torch.no_grad()
    def probabilities(self, removed: Tensor | None = None, x: Tensor | None = None) -> Tensor:
        """Those of the classes, of a pair of no link and of a link, without some edges or with other features."""
        x = self.x if x is None else x
        kept = torch.ones(self.edge_index.shape[1], dtype=torch.bool)
        if removed is not None:
            kept[removed] = False
        head, scale = self.model.model.head, self.model.model.distance_scale
        points = self.model.points(x, self.edge_index[:, kept], self.edge_weight[kept], self.nodes)
        if self.pairs is None:
            return head.probabilities(head.logits_of(lambda: x, points, self.places, scale))[0]
        logits = head(points, self.pairs, scale)
        if self.sees_neighborhoods:
            logits = head.neighborhood(logits, self.neighborhoods(removed), self.named)
        linked = head.probabilities(logits)
        return torch.cat([1 - linked, linked])

    def neighborhoods(self, removed: Tensor | None) -> Neighborhoods:
        """Those of the whole graph, without some of the edges."""
        if removed is None:
            return self.run.neighborhoods
        links, gone = self.run.links, self.nodes[self.edge_index[:, removed]]
        kept = ~(links[:, None] == gone[..., None]).all(0).any(0)
        return Neighborhoods(links[:, kept].T.numpy(), self.run.problem.num_nodes, self.run.neighborhoods.directed)

    def probability(self, chosen: int, edges: Tensor | None = None, feature: int | None = None) -> float:
        """That of the prediction without some edges, or with one feature at its mean."""
        x = self.x
        if feature is not None:
            x = x.index_copy(1, torch.tensor([feature]), self.means[feature].expand(len(x), 1))
        return float(self.probabilities(edges, x)[chosen])

    def first_order(self, chosen: int, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """What the gradient says of the removal of each edge and of the mean of each feature."""
        weight, x = self.edge_weight.clone().requires_grad_(), self.x.clone().requires_grad_()
        logits = self.model(x, self.edge_index, weight, **options)
        score = logits[0] if self.pairs is not None else logits[self.places[0]].log_softmax(0)[chosen]
        if not score.requires_grad:
            return torch.zeros_like(weight), torch.zeros_like(self.means)
        by_weight, by_x = torch.autograd.grad(score, (weight, x), allow_unused=True, materialize_grads=True)
        return by_weight * self.edge_weight, (by_x * (self.x - self.means)).sum(0)

    def candidates(self, by_edge: Tensor, count: int) -> list[tuple[Tensor, Tensor]]:
        """The ends and the rows of the edges that matter most to first order; an undirected one has two rows."""
        ends = self.edge_index if getattr(self.run.data, "directed", False) else self.edge_index.sort(0).values
        distinct, number = ends.unique(dim=1, return_inverse=True)
        sums = by_edge.new_zeros(distinct.shape[1]).index_add(0, number, by_edge)
        order = sums.abs().topk(min(count, int((sums != 0).sum()))).indices
        if self.sees_neighborhoods:  # and edges to shared neighbors, of whom the gradient knows nothing
            order = torch.cat([order, edges_to_shared(distinct, self.places)[:count]]).unique()
        return [(distinct[:, edge], (number == edge).nonzero().squeeze(1)) for edge in order]

    def masks(
        self, epochs: int, options: dict[str, Any], uses_edges: bool, uses_features: bool
    ) -> tuple[Tensor, Tensor]:
        """GNNExplainer's masks of edges and of features; zeros for what the prediction does not depend on."""
        if getattr(self.model.model.head, "sees_features", False):
            self.notes.append("the masks leave out the logistic regression on features, which this run adds")
        if self.sees_neighborhoods:
            self.notes.append("the masks leave out the terms of degrees and shared neighbors, which this run adds")
        edge_mask, feature_mask = torch.zeros(self.edge_index.shape[1]), torch.zeros(self.x.shape[1])
        if not uses_edges and not uses_features:
            self.notes.append("the prediction depends neither on edges nor on features of the neighborhood")
            return edge_mask, feature_mask
        if not uses_edges and getattr(self.run.model.encoder, "uses_graph", True) and len(self.edge_weight):
            self.notes.append(
                f"{self.run.config['model']['name']} does not weigh edges, so only features are explained"
            )
        explainer = Explainer(
            self.model, GNNExplainer(epochs=epochs), explanation_type="model",
            node_mask_type="common_attributes" if uses_features else None,
            edge_mask_type="object" if uses_edges else None,
            model_config={
                "mode": "multiclass_classification" if self.pairs is None else "binary_classification",
                "task_level": "node" if self.pairs is None else "edge", "return_type": "raw",
            },
        )  # fmt: skip
        index = int(self.places[0]) if self.pairs is None else 0
        found = explainer(self.x, self.edge_index, index=index, edge_weight=self.edge_weight, **options)
        edge_mask = found.edge_mask if uses_edges else edge_mask
        feature_mask = found.node_mask.reshape(-1) if uses_features else feature_mask
        return edge_mask.detach(), feature_mask.detach()
