"""Directed graphs: a decoder that tells (u, v) from (v, u), and recommendations by direction."""

from functools import partial

import numpy as np
import pytest
import torch
from runs import Flat, same_weights, small_fit
from torch_geometric.data import Data

from h2hgcn.datasets import load_graph
from h2hgcn.errors import DataError
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction, NodeClassification
from h2hgcn.training import load_run
from h2hgcn.training.recommending import recommend_links_of

pytestmark = pytest.mark.filterwarnings("ignore:.*structural ones were made")


def hierarchy(num_nodes=90, seed=0):
    """Every node points to all of its ancestors in a random tree; some pairs of siblings point to each other."""
    random = np.random.RandomState(seed)
    parents = [random.randint(0, (node + 1) // 2) for node in range(1, num_nodes)]
    edges = []
    for node in range(1, num_nodes):
        above = node
        while above:
            above = parents[above - 1]
            edges.append((node, above))
    edges += [(a, b) for a, b in zip(range(40, 60), range(41, 61), strict=True)]
    edges += [(b, a) for a, b in zip(range(40, 60), range(41, 61), strict=True)]
    return load_graph(edges, directed=True)


class OneVectorEach(torch.nn.Module):
    """A learnt vector for each node, in the plane."""

    space = "euclidean"
    dim = 8

    def __init__(self, in_features, num_nodes):
        super().__init__()
        self.points = torch.nn.Parameter(torch.randn(num_nodes, self.dim))

    def forward(self, x, edge_index, edge_weight=None):
        return self.points


def pairs_of(run):
    count = run.data.num_nodes
    return np.stack(np.divmod(np.arange(count * count), count), axis=1)


def brute_force(run, node, k, direction):
    """The likeliest missing links of a node, by the probabilities of all pairs."""
    graph = run.data
    edges = set(map(tuple, graph.edge_index.T.tolist()))
    links = [(node, other) if direction == "out" else (other, node) for other in range(graph.num_nodes)]
    links = [link for link in links if link not in edges and link[0] != link[1]]
    scores = run.link_logits(np.array(links)).numpy()
    chosen = np.argsort(-scores, kind="stable")[:k]
    return [sum(links[place]) - node for place in chosen], scores[chosen]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "directed"
    small_fit(LinkPrediction(val=0.1, test=0.2), hierarchy(), epochs=30, folder=path, settings={"lr": 0.05})
    return path


def test_the_decoder_follows_from_the_graph(folder):
    run = load_run(folder)
    assert run.task.decoder == run.config["task"]["decoder"] == "directed"
    scores = run.link_logits(pairs_of(run)).reshape(90, 90)
    assert not torch.allclose(scores, scores.mT)
    symmetric = small_fit(LinkPrediction(decoder="symmetric"), hierarchy(), epochs=1)
    scores = symmetric.link_logits(pairs_of(symmetric)).reshape(90, 90)
    torch.testing.assert_close(scores, scores.mT)
    assert symmetric.metrics["test"]["direction_auc"] == pytest.approx(0.5)
    undirected = small_fit(epochs=1)
    assert undirected.config["task"]["decoder"] == "symmetric"
    assert "direction_auc" not in undirected.metrics["test"]
    with pytest.raises(DataError, match="needs a directed graph"):
        small_fit(LinkPrediction(decoder="directed"))


def test_direction_is_learnt():
    graph = hierarchy()
    runs = [
        small_fit(
            LinkPrediction(val=0.1, test=0.2, decoder=decoder), graph, OneVectorEach, epochs=150, settings={"lr": 0.05}
        )
        for decoder in ("symmetric", "auto")
    ]
    symmetric, directed = (run.metrics["test"] for run in runs)
    assert directed["direction_auc"] > 0.8
    assert directed["auc"] > symmetric["auc"]


def test_links_that_go_both_ways_say_nothing_of_direction():
    problem = LinkPrediction(val=0.1, test=0.3).bind(hierarchy())
    edges = set(map(tuple, hierarchy().edge_index.T.tolist()))
    one_way = {(u, v) for u, v in problem.split.test.tolist() if (v, u) not in edges}
    assert {tuple(pair) for pair in problem.split.test[problem.parts["test"].one_way].tolist()} == one_way
    assert 0 < len(one_way) < len(problem.split.test)


@pytest.mark.parametrize("direction", ["out", "in"])
def test_recommendations_are_in_the_order_of_the_decoder(folder, direction):
    run = load_run(folder)
    for node in (3, 44, 80):
        nodes, scores = brute_force(run, node, 6, direction)
        found = run.recommend(node, 6, direction)
        assert [row.node for row in found] == nodes
        chances = run.model.head.probabilities(torch.as_tensor(scores)).tolist()
        assert [row.probability for row in found] == pytest.approx(chances, rel=1e-4)
        many = recommend_links_of(run, [node], 6, direction=direction)
        assert many["other"].tolist() == nodes
        assert many["distance"] == pytest.approx([row.distance for row in found], rel=1e-6)
        assert many["probability"] == pytest.approx([row.probability for row in found], rel=1e-4)


def test_links_from_a_node_are_the_default(folder):
    run = load_run(folder)
    assert run.recommend(3, 4) == run.recommend(3, 4, "out")
    assert run.recommend(3, 4) != run.recommend(3, 4, "in")
    forward, backward = run.predict([[80, 0], [0, 80]]).tolist()
    assert forward != backward


@pytest.mark.parametrize("space", ["lorentz", "ball", "euclidean"])
def test_all_spaces_and_the_link_term_of_classes(space):
    graph = hierarchy()
    graph.y = torch.arange(90) % 3
    task = NodeClassification(num_centroids=4)
    run = small_fit(task, graph, lambda in_features: Flat(in_features, 3, space), epochs=3, settings={"lr": 0.1})
    for direction in ("out", "in"):
        wanted = brute_force(run, 7, 5, direction)[0]
        assert [row.node for row in run.recommend(7, 5, direction)] == wanted
        assert recommend_links_of(run, [7], 5, direction=direction)["other"].tolist() == wanted


def test_a_learnt_curvature_scales_the_search_too():
    def curved(in_features):
        return H2HGCN(in_features, 4, curvature=0.3, learn_curvature=True)

    run = small_fit(LinkPrediction(val=0.1, test=0.2), hierarchy(), curved, epochs=20, settings={"lr": 0.05})
    found = recommend_links_of(run, None, 5)["other"].reshape(-1, 5).tolist()
    assert found == [brute_force(run, node, 5, "out")[0] for node in range(90)]


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_an_index_finds_what_the_decoder_prefers(folder, tmp_path, kind):
    pytest.importorskip("faiss")
    run = load_run(folder)
    run.folder = tmp_path
    nodes = list(range(10, 90))
    for direction in ("out", "in"):
        exact, found = (
            recommend_links_of(run, nodes, 5, each, direction)["other"].reshape(-1, 5) for each in ("exact", kind)
        )
        assert np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(exact, found, strict=True)]) > 0.95
        assert all(len(set(row)) == 5 for row in found.tolist())


def test_an_undirected_graph_has_no_direction():
    run = small_fit(epochs=1)
    for call in (lambda: run.recommend(3, 4, "out"), lambda: recommend_links_of(run, [3], 4, direction="in")):
        with pytest.raises(DataError, match="the graph of this run is undirected"):
            call()


def test_an_unknown_direction(folder):
    with pytest.raises(DataError, match="direction='up' is not known"):
        load_run(folder).recommend(3, 4, "up")


def test_a_symmetric_decoder_can_be_asked_for_a_direction():
    run = small_fit(LinkPrediction(decoder="symmetric"), hierarchy(), epochs=1)
    edges = run.data.edge_index
    for direction in (None, "out", "in"):
        free = set(range(90)) - {7}
        if direction != "in":
            free -= set(edges[1, edges[0] == 7].tolist())
        if direction != "out":
            free -= set(edges[0, edges[1] == 7].tolist())
        found = run.recommend(7, len(free), direction)
        assert {row.node for row in found} == free
        assert [row.distance for row in found] == sorted(row.distance for row in found)


def test_a_directed_run_resumes_to_the_same_weights(tmp_path):
    stops = iter([False, False, True])
    small_fit("lp", hierarchy(), folder=tmp_path / "run", should_stop=lambda: next(stops))
    resumed = small_fit("lp", hierarchy(), folder=tmp_path / "run")
    assert same_weights(resumed, small_fit("lp", hierarchy()))
    assert resumed.config["task"]["decoder"] == "directed"


def test_structural_features_of_both_degrees():
    star = load_graph([("hub", f"leaf {k}") for k in range(4)], directed=True)
    assert star.feature_names[0] == "log(1 + in-degree)"
    assert star.feature_names[7] == "log(1 + out-degree)"
    assert star.x[:, 0].tolist() == pytest.approx([0, *[np.log(2)] * 4])
    assert star.x[:, 7].tolist() == pytest.approx([np.log(5), 0, 0, 0, 0])
    assert star.x.shape == (5, 15)
    assert load_graph([("hub", "leaf")]).x.shape == (2, 8)
    problem = LinkPrediction(val=0.25, test=0.25).bind(star)
    out_degrees = problem.x[:, 7].expm1().round()
    assert out_degrees.tolist() == [2, 0, 0, 0, 0]
    assert isinstance(star, Data)


def test_sampled_batches_learn_direction_too():
    sampled = {"batch_size": 64, "fanout": "5,5", "lr": 0.05}
    model = partial(H2HGCN, dim=8, node_vectors=True)
    run = small_fit(LinkPrediction(val=0.1, test=0.2), hierarchy(), model, epochs=30, settings=sampled)
    assert run.metrics["test"]["direction_auc"] > 0.6
