"""Degrees and shared neighbors: features against networkx, the fit against scikit-learn, ranks against a loop."""

import networkx as nx
import numpy as np
import pytest
import torch
from runs import Flat, same_weights, scale_free, small_fit
from samples import random_graph
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from h2hgcn.tasks import LinkPrediction
from h2hgcn.tasks.metrics import auc
from h2hgcn.tasks.neighborhoods import Neighborhoods, NeighborhoodTerms, out_of_fold
from h2hgcn.training import load_run
from h2hgcn.training.recommending import recommend_links_of

pytestmark = pytest.mark.filterwarnings("ignore:.*structural ones were made")


def edges_of(seed=0):
    return random_graph(30, 90, seed)[0].T.numpy()


def all_pairs(count):
    pairs = np.stack(np.meshgrid(np.arange(count), np.arange(count), indexing="ij"), -1).reshape(-1, 2)
    return pairs[pairs[:, 0] != pairs[:, 1]]


def of_degree(degree):
    return np.array([np.log1p(degree), np.log1p(degree) ** 2])


def of_end(degree, all_degrees):
    """A node without edges counts as the others do on average."""
    return of_degree(degree) if degree else np.mean([of_degree(one) for one in all_degrees if one], axis=0)


@pytest.mark.parametrize("directed", [False, True])
def test_features_by_definition(directed):
    edges = edges_of()
    arcs = nx.DiGraph() if directed else nx.Graph()
    arcs.add_nodes_from(range(30))
    arcs.add_edges_from((a, b) for a, b in edges.tolist() if a != b)
    graph = nx.Graph(arcs)
    found = Neighborhoods(edges, 30, directed)
    pairs = all_pairs(30)
    for (a, b), row in zip(pairs.tolist(), found.features(pairs), strict=True):
        common = list(nx.common_neighbors(graph, a, b))
        shared = [
            len(common),
            sum(1 / np.log(graph.degree[c]) for c in common),
            sum(1 / graph.degree[c] for c in common),
        ]
        known = arcs.has_edge(a, b)
        out, into = (arcs.out_degree, arcs.in_degree) if directed else (arcs.degree, arcs.degree)
        ends = [of_end(of[node] - known, [count for _, count in of]) for of, node in ((out, a), (into, b))]
        np.testing.assert_allclose(row, np.concatenate([np.log1p(shared), *(ends if directed else [sum(ends)])]))


@pytest.mark.parametrize("directed", [False, True])
def test_parts_for_a_search_add_up(directed):
    found = Neighborhoods(edges_of(), 30, directed)
    weights = np.random.RandomState(0).randn(2, 7 if directed else 5)
    pairs = all_pairs(30)
    pairs = pairs[~found._are_edges(pairs)]
    parts = found.of_nodes(weights, 0)[:, pairs[:, 0]] + found.of_nodes(weights, 1)[:, pairs[:, 1]]
    rows = found.of_rows(weights, np.arange(30))
    np.testing.assert_allclose(parts + rows[:, *pairs.T], weights @ found.features(pairs).T, atol=1e-9)


def test_two_hops_are_those_of_the_highest_index(monkeypatch):
    found = Neighborhoods(edges_of(), 30)
    near = found.two_hops(np.arange(30), 30)
    index = found.of_rows(np.array([[0.0, 1.0, 0.0]]), np.arange(30))[0]
    for node in range(30):
        others = near[node][near[node] >= 0]
        assert set(others.tolist()) - {node} == set(index[node].nonzero()[0].tolist()) - {node}
        scores = index[node][others[others != node]]
        assert (np.diff(scores) <= 1e-9).all()
    star = Neighborhoods(np.stack([np.zeros(2000, int), np.arange(1, 2001)], 1), 2001)
    assert (star.two_hops(np.array([1, 2]), 5) == -1).all()  # only a hub leads on


def labeled_rows(seed=0, count=870):
    """Pairs whose links are told by their features and, less well, by a decoder; and as many that are not links."""
    random = np.random.RandomState(seed)
    graph = Neighborhoods(edges_of(), 30)
    pairs = all_pairs(30)[random.permutation(870)[:count]]
    features = graph.features(pairs)
    chance = 1 / (1 + np.exp(-(features[:, 1] * 2 + features[:, 3] - 3)))
    labels = random.rand(len(pairs)) < chance
    rows = np.column_stack([random.randn(len(pairs)) + labels, features])
    others = np.column_stack([random.randn(len(pairs)), features])[random.rand(len(pairs)) > chance]
    return graph, pairs, rows, labels, others


def test_fit_is_that_of_scikit_learn_and_helps():
    graph, pairs, rows, labels, others = labeled_rows()
    terms = NeighborhoodTerms()
    assert terms.fit(rows, labels, others)
    assert terms.fitted
    found = terms(torch.from_numpy(rows[:, 0]), graph, torch.from_numpy(pairs)).numpy()
    both, y = np.concatenate([rows, others]), np.r_[labels, np.zeros(len(others), bool)]
    logits = []
    for ratio in (1, 100):
        weights = np.where(y, 1.0, ratio * labels.sum() / (~y).sum())
        expected = make_pipeline(StandardScaler(), LogisticRegression())
        expected.fit(both, y, logisticregression__sample_weight=weights)
        level = np.quantile(expected.decision_function(both[~y]), 0.98)
        logits.append((expected.decision_function(rows), level))
    (first, _), (top, level) = logits
    both_pieces = first + 10 * np.maximum(top - level, 0)
    assert min(np.abs(found - first).max(), np.abs(found - both_pieces).max()) < 1e-3
    fair = out_of_fold(rows, labels, others)
    assert auc(fair[labels], fair[~labels]) > auc(rows[labels, 0], rows[~labels, 0]) + 0.02


def test_the_top_decides_where_the_order_of_all_pairs_is_as_good():
    """Some pairs with the highest logits are not links; the feature tells them, at some cost to nothing else."""
    random = np.random.RandomState(0)
    links = np.column_stack([random.normal(3, 1, 200), np.zeros((200, 5))])
    others = np.column_stack([random.normal(0, 1, 20_000), np.zeros((20_000, 5))])
    false_friends = random.permutation(20_000)[:60]  # too few to matter for the AUC
    others[false_friends, 0] += 6
    others[false_friends, 1] = 1
    rows, labels = np.concatenate([links, others[:200]]), np.arange(400) < 200
    terms = NeighborhoodTerms()
    assert terms.fit(rows, labels, others[200:])
    slopes, weights, biases = terms.pieces
    of_links, of_others = ((some @ np.column_stack([slopes, weights]).T + biases).max(1) for some in (links, others))
    before = (1 / (1 + (others[:, 0] > links[:, :1]).sum(1))).mean()
    after = (1 / (1 + (of_others > of_links[:, None]).sum(1))).mean()
    assert after > 3 * before


def test_too_few_links_for_a_calibration_have_one_piece():
    """Logits of the second piece are no probabilities, and nothing would turn them into such."""
    links = np.column_stack([np.linspace(2, 4, 19), np.zeros((19, 5))])
    others = np.column_stack([np.random.RandomState(0).normal(0, 1, 2000), np.zeros((2000, 5))])
    others[:10, :2] = 9, 1  # which are told by their feature
    terms = NeighborhoodTerms()
    assert terms.fit(np.concatenate([links, others[:40]]), np.arange(59) < 19, others[40:])
    _, weights, biases = terms.pieces
    assert (weights[0] == weights[1]).all()
    assert biases[0] == biases[1]


def test_what_does_not_help_changes_nothing():
    random = np.random.RandomState(0)
    _, _, rows, _, others = labeled_rows(count=60)
    labels = np.arange(60) < 30
    terms = NeighborhoodTerms()
    sure = np.column_stack([np.where(labels, 2.5, -2.5) + random.rand(60), rows[:, 1:]])
    assert not terms.fit(sure, labels, np.column_stack([-2.5 + random.rand(len(others)), others[:, 1:]]))
    few = np.r_[0:9, 30:60]
    assert not terms.fit(rows[few], labels[few], others)
    told = rows[:, 1] > 0
    misled = np.column_stack([np.where(told, -1.0, 1.0) + random.randn(60), rows[:, 1:]])
    unlike = np.column_stack([1 + random.randn(len(others)), others[:, 1:]])[others[:, 1] == 0]
    assert not terms.fit(misled, told, unlike)
    assert not terms.fitted
    assert (terms.slopes == 1).all()


def test_scores_out_of_fold_are_by_weights_without_the_pair():
    """Labels that nothing tells: weights that saw a pair know it a little, others do not."""
    gaps = []
    for seed in range(10):
        _, _, rows, _, _ = labeled_rows(seed, count=60)
        labels = np.random.RandomState(seed).rand(60) < 0.5
        seen = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, labels).decision_function(rows)
        fair = out_of_fold(rows, labels, np.empty((0, 6)))
        gaps.append(auc(seen[labels], seen[~labels]) - auc(fair[labels], fair[~labels]))
    assert np.mean(gaps) > 0.1


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("model", [None, Flat])
def test_a_run_fits_keeps_and_ranks_by_them(tmp_path, directed, model):
    task = LinkPrediction(val=0.2, neighborhood_terms=True)
    data = scale_free(directed)
    more = {} if model is None else {"model": model}
    run = small_fit(task, data=data, epochs=5, folder=tmp_path, **more)
    assert run.model.head.sees_neighborhoods
    assert run.metrics["test"]["auc"] > run.metrics["test"]["auc_decoder"] + 0.05
    assert abs(run.metrics["val"]["auc"] - run.metrics["test"]["auc"]) < 0.3
    again = load_run(tmp_path, data, model)
    assert same_weights(run, again)
    assert again.evaluate() == run.metrics["test"]
    assert again.evaluate("val") == run.metrics["val"]
    for direction in ("out", "in") if directed else (None,):
        found = again.recommend(7, 4, direction=direction)
        many = recommend_links_of(again, [7, 9], 4, "exact", direction)
        assert many["other"][:4].tolist() == [link.node for link in found]
        linked = {
            7,
            *(
                b if a == 7 else a
                for a, b in again.links.T.tolist()
                if 7 in (a, b) and (not directed or (a, b).index(7) == (direction == "in"))
            ),
        }
        free = [node for node in range(200) if node not in linked]
        pairs = [[node, 7] if direction == "in" else [7, node] for node in free]
        chances = again.predict(pairs)
        best = [free[place] for place in (-chances).argsort(stable=True)[:4].tolist()]
        assert [link.node for link in found] == best
        assert [link.probability for link in found] == pytest.approx(chances.sort(descending=True).values[:4].tolist())


def test_an_index_finds_what_an_exact_search_does(tmp_path):
    pytest.importorskip("faiss")
    run = small_fit(LinkPrediction(val=0.2, neighborhood_terms=True), data=scale_free(), epochs=5, folder=tmp_path)
    said = []
    found = recommend_links_of(run, None, 3, "hnsw", say=said.append)
    exact = recommend_links_of(run, None, 3, "exact")
    assert (found["other"] == exact["other"]).mean() > 0.95
    assert said


def test_predictions_on_the_graph_with_all_its_edges():
    """A link of the graph is scored as if it were not there, so that it is not told by itself."""
    data = scale_free()
    run = small_fit(LinkPrediction(val=0.2, neighborhood_terms=True), data=data, epochs=5)
    pairs = data.edge_index.T[:20]
    found = run.predict(pairs.tolist(), data=data)
    points = run.encode(data)
    alone = run.model.head(points, pairs, run.model.distance_scale)
    graph = Neighborhoods(data.edge_index.T.numpy(), 200)
    wanted = run.model.head.probabilities(run.model.head.neighborhood(alone, graph, pairs))
    assert found == pytest.approx(wanted.detach(), rel=1e-4)
