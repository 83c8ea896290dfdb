"""Explanations of runs, and PyG's explainers on the layer and the encoder."""

from functools import partial

import numpy as np
import pytest
import torch
from runs import scale_free, shapes, small_fit
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.utils import to_undirected

from h2hgcn.errors import DataError
from h2hgcn.geometry import lorentz
from h2hgcn.layers import CentroidDistance, H2HConv
from h2hgcn.models import GAT, H2HGCN, HGCN, MLP
from h2hgcn.tasks import LinkPrediction, NodeClassification
from h2hgcn.training.explaining import ExplainableModel, edges_to_shared

PLAIN = NodeClassification(feature_terms=False, scaling="raw", num_centroids=6)


def stars():
    """Stars of five leaves. The class of a leaf is the one feature of its hub that is not noise."""
    random = np.random.RandomState(0)
    hubs = torch.arange(0, 180, 6)
    edges = torch.stack([hubs.repeat_interleave(5), torch.arange(180)[torch.arange(180) % 6 != 0]])
    noise = torch.tensor([[k, int(random.choice(hubs)) + 1] for k in range(1, 180, 6)]).T  # leaf to leaf
    x = torch.tensor(random.normal(size=(180, 3)) * 0.3).float()
    y = torch.arange(180) // 6 % 2
    x[hubs, 1] = 3.0 * (2 * y[hubs] - 1)
    graph = Data(x=x, y=y.clone(), edge_index=to_undirected(torch.cat([edges, noise[:, noise[0] != noise[1]]], 1)))
    graph.feature_names = ["noise", "signal", "more noise"]
    graph.y[hubs] = -1
    return graph


@pytest.fixture(scope="module")
def hubs():
    settings = {"lr": 0.03, "stiefel_lr": 0.03}
    model = partial(H2HGCN, dim=8, num_layers=2, activation="leaky_relu", stem_activation=None)
    return small_fit(PLAIN, stars(), model, epochs=60, settings=settings)


@pytest.mark.parametrize("leaf", [2, 33, 100])
def test_the_planted_edge_and_feature_are_found(hubs, leaf):
    found = hubs.explain(leaf, k=3, epochs=50)
    assert found.prediction == str(int(hubs.data.y[leaf]))
    assert found.probability == pytest.approx(float(hubs.predict([leaf]).max()), abs=1e-6)
    assert (found.edges[0].source, found.edges[0].target) == (leaf // 6 * 6, leaf)
    assert found.edges[0].change > 0.1
    assert found.features[0].feature == "signal"
    assert 0 < found.edges[0].mask < 1
    assert len(found.edges) == len(found.features) == 3


def test_a_change_is_what_a_graph_without_the_edge_gives(hubs):
    (edge,) = hubs.explain(33, k=1, epochs=1).edges
    index = hubs.data.edge_index
    gone = (index == edge.source).any(0) & (index == edge.target).any(0)
    assert gone.sum() == 2
    other = hubs.data.clone()
    other.edge_index = index[:, ~gone]
    before, after = hubs.predict([33])[0], hubs.predict([33], other)[0]
    assert before.amax() - after[before.argmax()] == pytest.approx(edge.change, abs=1e-5)


def test_a_pair_of_nodes():
    run = small_fit("lp", scale_free())
    found = run.explain(5, 40, k=4, epochs=2)
    linked = float(run.predict([[5, 40]]))
    assert found.probability == pytest.approx(max(linked, 1 - linked), abs=1e-5)
    assert found.prediction == ("link" if linked > 0.5 else "no link")
    assert len(found.edges) == 4
    assert list(found.to_pandas().columns) == ["kind", "source", "target", "feature", "value", "change", "mask"]


def test_a_pair_whose_neighborhoods_count():
    task = LinkPrediction(neighborhood_terms=True, decoder="directed", scaling="standard")
    run = small_fit(task, scale_free(directed=True), epochs=30)
    assert run.model.head.sees_neighborhoods
    found = run.explain(100, 120, k=2, epochs=1)
    linked = float(run.predict([[100, 120]]))
    assert found.probability == pytest.approx(max(linked, 1 - linked), abs=1e-5)
    assert len(found.edges) == 2


def test_edges_to_shared_neighbors():
    edges = torch.tensor([[0, 2, 0, 3, 0], [2, 1, 3, 4, 1]])
    assert edges_to_shared(edges, torch.tensor([0, 1])).tolist() == [0, 1]


@pytest.mark.parametrize(("model", "has_edges"), [(HGCN, True), (GAT, None), (MLP, False)])
def test_other_models(model, has_edges):
    run = small_fit(NodeClassification(num_centroids=6), stars(), partial(model, dim=4))
    found = run.explain(33, k=2, epochs=2)
    assert len(found.features) == 2
    if has_edges is not None:
        assert bool(found.edges) == has_edges


def test_node_vectors_and_sparse_features():
    graph = stars()
    graph.x = graph.x.to_sparse_coo()
    run = small_fit(PLAIN, graph, partial(H2HGCN, dim=4, node_vectors=True))
    found = run.explain(33, epochs=2)
    assert found.probability == pytest.approx(float(run.predict([33]).max()), abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((33, 34), "this run predicts classes: name one node"),
        ((500,), "there is no node 500"),
    ],
)
def test_bad_input(hubs, arguments, message):
    with pytest.raises(DataError, match=message):
        hubs.explain(*arguments)


def test_runs_that_cannot_be_explained():
    links = small_fit("lp")
    with pytest.raises(DataError, match="this run predicts links: name both nodes of a pair"):
        links.explain(3)
    with pytest.raises(DataError, match="the pair is the node 3 with itself"):
        links.explain(3, 3)
    with pytest.raises(DataError, match="a run of --task gc cannot be explained"):
        small_fit("gc", shapes()).explain(0)


class Net(torch.nn.Module):
    """A model of a PyG user."""

    def __init__(self):
        super().__init__()
        self.first, self.second = H2HConv(3, 4, "leaky_relu"), H2HConv(4, 4)
        self.centroids = CentroidDistance(4, 2)

    def forward(self, x, edge_index, edge_weight=None):
        points = self.first(lorentz.exp_origin(x), edge_index, edge_weight)
        return self.centroids(self.second(points, edge_index, edge_weight))


class WithEncoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.centroids = H2HGCN(3, 4, stem_activation=None), CentroidDistance(4, 2)

    def forward(self, x, edge_index, edge_weight=None):
        return self.centroids(self.encoder(x, edge_index, edge_weight))


@pytest.mark.parametrize("kind", [Net, WithEncoder])
def test_pygs_gnn_explainer_on_layers_and_encoder(kind):
    graph, model = stars(), kind()
    explainer = Explainer(
        model, GNNExplainer(epochs=5), explanation_type="model", node_mask_type="attributes", edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )  # fmt: skip
    before = model(graph.x, graph.edge_index)
    found = explainer(graph.x, graph.edge_index, index=33)
    assert found.edge_mask.shape == (graph.num_edges,)
    reached = graph.edge_index[:, found.edge_mask > 0]
    assert (reached == 33).any()
    assert reached.shape[1] < graph.num_edges  # no gradient beyond two hops
    assert torch.equal(model(graph.x, graph.edge_index), before)  # the masks are cleared


def test_a_mask_of_weights_is_a_graph_with_these_weights():
    conv, graph = H2HConv(3, 4, dtype=torch.float64), stars()
    points = lorentz.exp_origin(graph.x.double())
    edge_index = torch.cat([graph.edge_index, torch.tensor([[4], [4]])], 1)  # a loop is not masked
    mask = torch.rand(edge_index.shape[1], dtype=torch.float64)
    expected = conv(points, edge_index, torch.cat([mask[:-1], torch.ones(1, dtype=torch.float64)]))
    conv.explain, conv._edge_mask, conv._apply_sigmoid = True, mask, False
    torch.testing.assert_close(conv(points, edge_index), expected)
    torch.testing.assert_close(conv(points, edge_index, torch.ones(len(mask))), expected)
    conv._edge_mask = torch.zeros_like(mask)
    alone = H2HConv(3, 4, dtype=torch.float64)
    alone.load_state_dict(conv.state_dict(), strict=False)
    torch.testing.assert_close(conv(points, edge_index), alone(points, torch.empty(2, 0, dtype=torch.long)))
    with pytest.raises(ValueError, match=r"an explanation masks edges; pass edge_index as a \(2, edges\) tensor"):
        conv(points, torch.eye(180).to_sparse())


def test_pygs_explainer_takes_the_model_of_a_run(hubs):
    model = ExplainableModel(hubs)
    logits = model(hubs.data.x, hubs.data.edge_index)
    torch.testing.assert_close(hubs.model.head.probabilities(logits), hubs.predict(), atol=1e-5, rtol=1e-4)
