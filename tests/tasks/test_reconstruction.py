import math

import networkx as nx
import numpy as np
import pytest
import torch

from h2hgcn.errors import NonFiniteError
from h2hgcn.geometry import lorentz, poincare
from h2hgcn.tasks.embedding import distortion_metrics, graph_distances, links_without_loops, rank_metrics


def random_links(num_nodes, seed=0, share=0.1):
    random = np.random.default_rng(seed)
    pairs = np.argwhere(random.random((num_nodes, num_nodes)) < share)
    return pairs[pairs[:, 0] != pairs[:, 1]].T


def random_points(num_nodes, dim=3, scale=1.5):
    return lorentz.exp_origin(scale * torch.randn(num_nodes, dim, dtype=torch.float64))


def literal_metrics(distances, edges, num_nodes, directed):
    """Word by word: for each node, the ranks of its neighbors among the nodes that are not its neighbors."""
    neighbors = {node: set() for node in range(num_nodes)}
    for a, b in edges.T.tolist():
        neighbors[a].add(b)
        if not directed:
            neighbors[b].add(a)
    ranks, precisions = [], []
    for node, near in neighbors.items():
        if not near:
            continue
        others = [other for other in range(num_nodes) if other != node and other not in near]
        ranks += [1 + sum(distances[node][w] < distances[node][v] for w in others) for v in near]
        order = sorted((other for other in range(num_nodes) if other != node), key=lambda v: distances[node][v])
        hits = [place for place, other in enumerate(order, 1) if other in near]
        precisions.append(sum(k / place for k, place in enumerate(hits, 1)) / len(hits))
    return {"map": sum(precisions) / len(precisions), "mean_rank": sum(ranks) / len(ranks)}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("space", ["lorentz", "ball", "euclidean"])
def test_ranks_by_their_definition(space, directed, monkeypatch):
    monkeypatch.setattr("h2hgcn.tasks.embedding._BLOCK_ELEMENTS", 200)  # several blocks
    edges, points = random_links(40), random_points(40)
    distances = lorentz.pairwise_distance(points, points)
    if space == "ball":
        points = poincare.from_lorentz(points)
    if space == "euclidean":
        distances = torch.cdist(points, points)
    links = links_without_loops(edges, 40, directed)
    expected = literal_metrics(distances.tolist(), edges, 40, directed)
    assert rank_metrics(points, space, links) == pytest.approx(expected)


def test_ranks_are_those_of_gensim(tmp_path):
    poincare_module = pytest.importorskip("gensim.models.poincare")
    edges, points = random_links(30, seed=1), random_points(30, dim=2)
    file = tmp_path / "relations.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in edges.T.tolist()))
    vectors = poincare_module.PoincareKeyedVectors(2, 0, dtype=np.float64)
    vectors.add_vectors([str(k) for k in range(30)], poincare.from_lorentz(points).numpy())
    theirs = poincare_module.ReconstructionEvaluation(str(file), vectors).evaluate()
    links = links_without_loops(edges, 30, directed=True)
    ours = rank_metrics(points, "lorentz", links, count_self=True)
    assert ours == pytest.approx({"map": theirs["MAP"], "mean_rank": theirs["mean_rank"]})
    # which counts the node itself, at distance 0, before each of its neighbors
    assert rank_metrics(points, "lorentz", links)["mean_rank"] == pytest.approx(theirs["mean_rank"] - 1)


def test_a_path_on_a_line_is_reconstructed():
    points = torch.arange(10.0)[:, None]
    edges = np.stack([np.arange(9), np.arange(1, 10)])
    links = links_without_loops(edges, 10, directed=False)
    assert rank_metrics(points, "euclidean", links) == {"map": 1, "mean_rank": 1}
    distances = graph_distances(links, np.arange(10))
    found = distortion_metrics(7 * points, "euclidean", distances)  # a scale does not matter
    assert found == pytest.approx({"distortion": 0, "worst_distortion": 1}, abs=1e-12)


def test_points_at_one_place_gain_nothing():
    links = links_without_loops(random_links(40), 40, directed=False)
    found = rank_metrics(torch.zeros(40, 2), "euclidean", links)
    assert found["mean_rank"] > 10
    assert found["map"] < 0.5
    assert distortion_metrics(torch.zeros(40, 2), "euclidean", graph_distances(links, np.arange(40))) == {}


def test_a_sample_of_nodes():
    points, links = random_points(40), links_without_loops(random_links(40), 40, directed=False)
    parts = [rank_metrics(points, "lorentz", links, np.array([node])) for node in range(40)]
    assert rank_metrics(points, "lorentz", links)["map"] == pytest.approx(np.mean([part["map"] for part in parts]))


def test_distances_in_a_graph_are_those_of_networkx():
    edges = random_links(30, share=0.04)
    graph = nx.Graph(map(tuple, edges.T.tolist()))
    found = graph_distances(links_without_loops(edges, 30, directed=False), np.arange(30))
    for source, row in zip(found.sources, found.hops, strict=True):
        known = nx.single_source_shortest_path_length(graph, int(source)) if source in graph else {source: 0}
        assert row.tolist() == [known.get(node, -1) for node in range(30)]


def test_distortion_by_its_definition():
    points, links = random_points(25), links_without_loops(random_links(25, share=0.08), 25, directed=False)
    graph = graph_distances(links, np.arange(25))
    found = distortion_metrics(points, "lorentz", graph)
    distance = lorentz.pairwise_distance(points, points).numpy()
    reached = graph.hops > 0
    ratios = distance[reached] / graph.hops[reached]
    least = min(np.abs(scale * ratios - 1).mean() for scale in 1 / ratios)  # the optimum is at one of these
    assert found["distortion"] == pytest.approx(least)
    assert found["worst_distortion"] == pytest.approx(ratios.max() / ratios.min())


def test_points_that_are_not_finite():
    links = links_without_loops(random_links(10, share=0.5), 10, directed=False)
    with pytest.raises(NonFiniteError, match="NaN or infinity"):
        rank_metrics(torch.full((10, 2), math.nan), "euclidean", links)
