import hashlib

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from torch_geometric.utils import coalesce, to_networkx

from h2hgcn.datasets.disease import generate_disease

SEEDS = [0, 1, 2]
NOISELESS = {
    "trait_noise": 0.0,
    "susceptibility_noise": 0.0,
    "shared_noise": 0.0,
    "num_noise_features": 0,
    "examined": 1.0,
}


class Tree:
    """Arrays of a generated graph, and as many pairs without an edge as there are edges."""

    def __init__(self, seed):
        data = generate_disease(seed=seed)
        self.x, self.y = data.x.double().numpy(), data.y.numpy()
        self.edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].numpy()
        self.random = np.random.RandomState(seed)
        self.others = self._pairs_without_edge()

    def _pairs_without_edge(self):
        count = self.edges.shape[1]
        pairs = self.random.randint(len(self.x), size=(2, 2 * count))
        low, high = pairs.min(0), pairs.max(0)
        known = np.isin(low * len(self.x) + high, self.edges[0] * len(self.x) + self.edges[1])
        return pairs[:, (low != high) & ~known][:, :count]


@pytest.fixture(scope="module", params=SEEDS)
def tree(request):
    return Tree(request.param)


def classifiers():
    return {
        "linear": make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
        "boosting": HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0),
    }


def link_auc(scores, other_scores):
    truth = np.repeat([1, 0], [len(scores), len(other_scores)])
    return roc_auc_score(truth, np.concatenate([scores, other_scores]))


def neighbor_sums(x, edges):
    sums, degree = np.zeros_like(x), np.zeros((len(x), 1))
    for ends, others in (edges, edges[::-1]):
        np.add.at(sums, ends, x[others])
        np.add.at(degree, ends, 1)
    return sums, degree


@given(num_nodes=st.integers(2, 60), seed=st.integers(0, 2**32 - 1), max_children=st.integers(1, 4))
def test_a_tree_of_any_size(num_nodes, seed, max_children):
    data = generate_disease(num_nodes, seed, max_children=max_children)
    assert data.num_nodes == num_nodes == len(data.y)
    assert nx.is_tree(to_networkx(data, to_undirected=True))
    assert data.num_edges == 2 * (num_nodes - 1)
    assert torch.equal(data.edge_index, coalesce(data.edge_index))
    # a parent besides the children
    assert int(torch.bincount(data.edge_index[0]).max()) <= max_children + 1


def test_the_default():
    data = generate_disease()
    assert 2000 <= data.num_nodes <= 3000
    assert (data.x.dtype, data.edge_index.dtype, data.y.dtype) == (torch.float32, torch.int64, torch.int64)
    assert (data.directed, data.name) == (False, "disease")
    assert data.y.unique().tolist() == [0, 1]
    assert data.is_undirected()
    assert not data.has_self_loops()


def test_the_same_on_every_machine():
    data = generate_disease()
    numbers = torch.cat([data.x.double().mul(1000).round().long().flatten(), data.edge_index.flatten(), data.y])
    digest = hashlib.sha256(numbers.numpy().astype("<i8").tobytes()).hexdigest()
    assert digest == "4528957fff7400e911e0a631d4119db49baa4a4b320d3e836c63bd6c2b70de17"


def test_only_the_seed_counts():
    first = generate_disease(100, seed=3)
    np.random.seed(7)
    torch.manual_seed(7)
    again, other = generate_disease(100, seed=3), generate_disease(100, seed=4)
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.edge_index, again.edge_index)
    assert torch.equal(first.y, again.y)
    assert not torch.equal(first.x, other.x)


@pytest.mark.parametrize("inheritance", [0.5, 0.95])
def test_children_resemble_their_parents_as_told(inheritance):
    data = generate_disease(1000, num_traits=400, inheritance=inheritance, **NOISELESS)
    ends, others = data.x[data.edge_index]
    assert (ends * others).mean().item() == pytest.approx(inheritance, abs=0.02)
    assert data.x.square().mean().item() == pytest.approx(1, abs=0.02)


def test_the_shared_error_is_one_number_a_node():
    clean = generate_disease(500, **NOISELESS)
    shared = generate_disease(500, **NOISELESS | {"shared_noise": 0.8})
    error = shared.x - clean.x
    torch.testing.assert_close(error, error[:, :1].expand_as(error), rtol=0, atol=1e-5)
    assert error[:, 0].std().item() == pytest.approx(0.8, rel=0.1)


def test_nodes_that_are_not_examined_show_nothing():
    data = generate_disease(num_traits=3, num_noise_features=2, examined=0.75)
    is_empty = (data.x[:, :3] == 0).all(1)
    assert is_empty.double().mean().item() == pytest.approx(0.25, abs=0.03)
    assert (data.x[~is_empty] != 0).all()
    assert (data.x[:, 3:] != 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_disease_reaches_everyone_or_one_at_the_extremes(seed):
    assert generate_disease(300, seed, steepness=0, threshold=-50, outside_contacts=0).y.all()
    assert generate_disease(300, seed, threshold=50, outside_contacts=0).y.sum() == 1
    # of those whom the world outside infects, hardly one infects another
    few = generate_disease(3000, seed, steepness=0, threshold=3.0, outside_contacts=1, recovery=1).y
    assert 0.04 < few.double().mean() < 0.065


@given(seed=st.integers(0, 2**32 - 1), steepness=st.floats(0, 10), threshold=st.floats(-5, 5))
def test_one_source_infects_a_connected_part(seed, steepness, threshold):
    data = generate_disease(200, seed, steepness=steepness, threshold=threshold, outside_contacts=0, recovery=0.5)
    infected = data.y.nonzero().flatten().tolist()
    assert nx.is_connected(to_networkx(data, to_undirected=True).subgraph(infected))


def test_who_is_susceptible_is_infected():
    data = generate_disease(**NOISELESS)
    assert roc_auc_score(data.y, data.x[:, 0]) > 0.9


def test_link_prediction_is_not_trivial(tree):
    pairs = (tree.edges, tree.others)
    for x in (tree.x, StandardScaler().fit_transform(tree.x)):
        ends = [(x[pair[0]], x[pair[1]]) for pair in pairs]
        products = [u * v for u, v in ends]
        assert link_auc(*(-np.linalg.norm(u - v, axis=1) for u, v in ends)) < 0.75
        assert link_auc(*(p.sum(1) for p in products)) < 0.75
        lengths = (np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1) for u, v in ends)
        assert link_auc(*(p.sum(1) / n for p, n in zip(products, lengths, strict=True))) < 0.75
        for column in range(x.shape[1]):
            assert link_auc(*(-abs(u - v)[:, column] for u, v in ends)) < 0.7
            assert link_auc(*((u + v)[:, column] for u, v in ends)) < 0.7
            assert link_auc(*(p[:, column] for p in products)) < 0.7


def test_link_prediction_is_learnable_from_features_and_graph(tree):
    """Features of both ends, and beside them the means over each end's neighbors in the training graph and itself."""
    hidden = tree.edges.shape[1] * 15 // 100
    order = tree.random.permutation(tree.edges.shape[1])
    test, train = tree.edges[:, order[:hidden]], tree.edges[:, order[hidden:]]
    sums, degree = neighbor_sums(tree.x, train)

    def describe(pairs, with_graph, are_training_edges):
        u, v = tree.x[pairs[0]], tree.x[pairs[1]]
        parts = [abs(u - v), u * v]
        if with_graph:
            # a training edge must not give itself away
            known = int(are_training_edges)
            mean_u = (u + sums[pairs[0]] - known * v) / (1 + degree[pairs[0]] - known)
            mean_v = (v + sums[pairs[1]] - known * u) / (1 + degree[pairs[1]] - known)
            parts += [abs(mean_u - mean_v), mean_u * mean_v]
        return np.concatenate(parts, axis=1)

    def score(classifier, with_graph):
        positive, negative = describe(train, with_graph, True), describe(tree.others[:, hidden:], with_graph, False)
        truth = np.repeat([1, 0], [len(positive), len(negative)])
        classifier.fit(np.concatenate([positive, negative]), truth)
        sides = (describe(pairs, with_graph, False) for pairs in (test, tree.others[:, :hidden]))
        return link_auc(*(classifier.predict_proba(side)[:, 1] for side in sides))

    with threadpool_limits(1):
        for name, margin, least in (("linear", 0.07, 0.75), ("boosting", 0.05, 0.85)):
            alone, together = (score(classifiers()[name], with_graph) for with_graph in (False, True))
            assert together > alone + margin
            assert together > least


def test_infection_is_learnable_from_the_neighborhood_and_less_from_a_node_alone(tree):
    assert 0.25 < tree.y.mean() < 0.5
    sums, degree = neighbor_sums(tree.x, tree.edges)
    near = sums / degree
    sums, _ = neighbor_sums(near, tree.edges)
    around = np.concatenate([tree.x, near, sums / degree], axis=1)
    order = tree.random.permutation(len(tree.x))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]

    def scores(classifier, x):
        probability = classifier.fit(x[train], tree.y[train]).predict_proba(x[test])[:, 1]
        return np.array([roc_auc_score(tree.y[test], probability), f1_score(tree.y[test], probability > 0.5)])

    with threadpool_limits(1):
        for name in classifiers():
            alone, together = (scores(classifiers()[name], x) for x in (tree.x, around))
            assert (together > alone + 0.06).all()
            assert 0.84 < together[0] < 0.97


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_nodes": 1}, "num_nodes is 1"),
        ({"max_children": 0}, "pass 1 or more"),
        ({"recovery": 0.0}, "disease ends"),
    ],
)
def test_arguments_that_give_no_tree_or_no_end(arguments, message):
    with pytest.raises(ValueError, match=message):
        generate_disease(**arguments)
