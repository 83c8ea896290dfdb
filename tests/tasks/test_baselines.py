"""Baselines against loops, networkx and dense linear algebra."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from samples import random_graph
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.nn.models import LabelPropagation

from h2hgcn.datasets import split_edges
from h2hgcn.datasets.disease import generate_disease
from h2hgcn.layers import prepare_adjacency
from h2hgcn.tasks import NodeClassification, baselines, link_baselines
from h2hgcn.tasks.baselines import propagated_classes, run_baselines, truncated_svd
from h2hgcn.tasks.metrics import link_metrics
from h2hgcn.tasks.neighborhoods import link_matrix, shared_neighbors

NAMES = [
    "best single feature", "feature distance", "feature cosine", "degree product", "common neighbors", "Adamic-Adar",
    "truncated SVD",
]  # fmt: skip


def small_split(directed=False):
    index, _ = random_graph(40, 120)
    return split_edges(Data(edge_index=index, num_nodes=40, directed=directed), 0.2, 0.2)


def undirected(split):
    """The training graph for networkx."""
    graph = nx.Graph(split.train.tolist())
    graph.add_nodes_from(range(split.num_nodes))
    return graph


def metrics_of(split, score):
    return link_metrics(*(np.array([score(a, b) for a, b in part.tolist()]) for part in (split.test, split.test_neg)))


@pytest.mark.parametrize("directed", [False, True])
def test_link_baselines_by_definition(directed):
    split = small_split(directed)
    x = np.random.RandomState(0).randn(40, 3)
    x[5] = 0
    found, skipped = link_baselines(x, split)
    assert list(found) == NAMES
    assert not skipped
    graph = undirected(split)
    lengths = np.linalg.norm(x, axis=1)

    def validation_auc(k):
        return link_metrics(*(-abs(x[p[:, 0], k] - x[p[:, 1], k]) for p in (split.val, split.val_neg)))["auc"]

    best = max(range(3), key=validation_auc)
    expected = {
        "best single feature": lambda a, b: -abs(x[a, best] - x[b, best]),
        "feature distance": lambda a, b: -np.linalg.norm(x[a] - x[b]),
        "feature cosine": lambda a, b: x[a] @ x[b] / lengths[a] / lengths[b] if 5 not in (a, b) else 0,
        "degree product": lambda a, b: graph.degree[a] * graph.degree[b],
        "common neighbors": lambda a, b: len(list(nx.common_neighbors(graph, a, b))),
        "Adamic-Adar": lambda a, b: next(nx.adamic_adar_index(graph, [(a, b)]))[2],
    }
    for name, score in expected.items():
        of_pairs = {metric: value for metric, value in found[name].items() if not metric.startswith("precision@")}
        assert of_pairs == pytest.approx(metrics_of(split, score)), name


@pytest.mark.parametrize("edges", [30, 300, 1500])
def test_shared_neighbors_against_sparse_rows(edges):
    """The product of rows that each pair would copy, also for pairs of a node with itself and for a hub."""
    random = np.random.RandomState(edges)
    ends = np.concatenate([random.randint(0, 80, (2, edges)), [np.zeros(60, int), np.arange(60)]], axis=1)
    graph = sp.csr_array((np.ones(ends.shape[1]), tuple(ends)), shape=(80, 80))
    graph = sp.csr_array(((graph + graph.T) > 0).astype(np.float64))
    weights = random.rand(80)
    pairs = np.stack(np.meshgrid(np.arange(80), np.arange(80)), -1).reshape(-1, 2)
    old = (graph[pairs[:, 0]] * sp.csr_array(graph * weights)[pairs[:, 1]]).sum(1)
    graph.sort_indices()
    found = shared_neighbors(graph, np.column_stack([weights, np.ones(80)]), pairs)
    np.testing.assert_allclose(found[:, 0], np.asarray(old).ravel(), rtol=1e-12)
    np.testing.assert_array_equal(found[:, 1], (graph @ graph).toarray()[tuple(pairs.T)])


def test_a_hub_takes_no_memory_for_each_pair(monkeypatch):
    """Rows of the hub for all its test pairs would have 4 · 10^8 entries; indexing rows is not even tried."""
    monkeypatch.setattr(sp.csr_array, "__getitem__", lambda *_: pytest.fail("rows were copied"))
    star = torch.stack([torch.zeros(60_000, dtype=torch.long), torch.arange(1, 60_001)])
    split = split_edges(Data(edge_index=star, num_nodes=60_001), 0.05, 0.1)
    graph = link_matrix(split.train, 60_001)
    assert not shared_neighbors(graph, np.ones((60_001, 1)), split.test).any()
    leaves = np.unique(split.train)[1:3]
    assert shared_neighbors(graph, np.ones((60_001, 1)), leaves[None]).tolist() == [[1]]


def test_truncated_svd_against_a_dense_one():
    graph = link_matrix(small_split().train, 40)
    values, vectors = truncated_svd(graph, 6)
    left, singular, right = np.linalg.svd(graph.toarray().astype(np.float64))
    np.testing.assert_allclose(abs(values), singular[:6], rtol=1e-6)
    np.testing.assert_allclose(vectors * values @ vectors.T, (left[:, :6] * singular[:6]) @ right[:6], atol=1e-6)


@pytest.mark.parametrize("graph", [nx.star_graph(300), nx.empty_graph(5)], ids=["star", "few"])
def test_truncated_svd_of_graphs_of_low_rank(graph):
    """A star has two values that are not 0, and its leaves all have the same vector: pairs of them the same score."""
    graph.add_edges_from([(0, 1), (0, 2), (0, 3), (0, 4)])
    ends = torch.tensor(list(graph.edges)).T
    split = split_edges(Data(edge_index=ends, num_nodes=len(graph)), 0.25, 0.25)
    metrics, skipped = link_baselines(np.ones((len(graph), 1)), split)
    assert not skipped
    assert metrics["truncated SVD"]["auc"] == pytest.approx(0.5, abs=0.1 if len(graph) > 5 else 0.5)


def test_two_blocks_are_found_by_truncated_svd():
    graph = nx.stochastic_block_model([60, 60], [[0.3, 0.02], [0.02, 0.3]], seed=0)
    split = split_edges(Data(edge_index=torch.tensor(list(graph.edges)).T, num_nodes=120))
    assert link_baselines(np.ones((120, 1)), split).metrics["truncated SVD"]["auc"] > 0.7


def test_sparse_features_give_the_same():
    split = small_split()
    x = np.random.RandomState(0).randn(40, 5) * (np.random.RandomState(1).rand(40, 5) < 0.3)
    expected = link_baselines(x, split).metrics
    for sparse in (sp.csr_array(x), sp.coo_array(x), *to_torch(x)):
        found, skipped = link_baselines(sparse, split)
        assert not skipped
        for name in NAMES:
            assert found[name] == pytest.approx(expected[name])


def to_torch(x):
    dense = torch.from_numpy(x)
    return dense.requires_grad_(), dense.detach().to_sparse_coo(), dense.detach().to_sparse_csr()


def test_blocks_of_pairs_change_nothing(monkeypatch):
    split, x = small_split(), np.random.RandomState(0).randn(40, 3)
    expected = link_baselines(x, split).metrics
    monkeypatch.setattr(baselines, "_BLOCK", 7)
    assert link_baselines(x, split).metrics == expected


def test_what_is_too_large_is_skipped_and_says_so(monkeypatch):
    monkeypatch.setattr(baselines, "_MOST_COLUMNS", 2)
    monkeypatch.setattr(baselines, "_VECTOR_NUMBERS", 100)
    metrics, skipped = link_baselines(np.ones((40, 3)), small_split())
    assert list(metrics) == NAMES[1:-1]
    assert skipped == {
        "best single feature": "3 features are too many to try one by one",
        "truncated SVD": "the graph is too large for it, with 40 nodes",
    }


@pytest.mark.parametrize(
    ("error", "reason"),
    [(MemoryError("Unable to allocate 57 GiB"), "Unable to allocate 57 GiB"), (np.linalg.LinAlgError(), "LinAlgError")],
)
def test_a_baseline_that_fails_is_skipped(error, reason):
    def fails():
        raise error

    metrics, skipped = run_baselines({"bad": fails, "good": lambda: {"auc": 0.5}})
    assert metrics == {"good": {"auc": 0.5}}
    assert skipped == {"bad": reason}


def two_paths():
    """Nodes 0-4 in a row, 5-9 in another, and 10 alone."""
    edges = torch.tensor([[k, k + 1] for k in (0, 1, 2, 3, 5, 6, 7, 8)]).T
    return prepare_adjacency(torch.cat([edges, edges.flip(0)], 1), None, 11)


def test_labels_go_along_edges_and_the_most_frequent_one_elsewhere():
    labels = torch.tensor([0, -1, -1, -1, 0, 1, -1, -1, -1, -1, -1])
    found = propagated_classes(two_paths(), labels, torch.tensor([0, 4, 5]))
    assert found.tolist() == [0] * 5 + [1] * 5 + [0]


def test_against_the_fixed_point_of_the_equation():
    """Zhou's form: F = α S F + (1 - α) Y, whose solution is worked out densely."""
    labels = torch.tensor([0, 0, 1, 2, 2, 1, 1, 0, 2, 2, 0])
    train = torch.tensor([0, 3, 5, 8])
    adjacency = two_paths()
    (source, target), weights = adjacency.edges(self_loops=False)
    dense = torch.zeros(11, 11).index_put((target, source), weights.float())
    scale = dense.sum(1).clamp_min(1).rsqrt()
    given = torch.zeros(11, 3).index_put((train, labels[train]), torch.ones(4))
    solved = torch.linalg.solve(torch.eye(11) - 0.9 * scale[:, None] * dense * scale, 0.1 * given)
    expected = solved[:10].argmax(1).tolist()
    assert propagated_classes(adjacency, labels, train)[:10].tolist() == expected


def test_label_propagation_of_a_graph_that_is_too_large(monkeypatch):
    monkeypatch.setattr(baselines, "_MESSAGES", 1000)
    metrics, skipped = NodeClassification().bind(generate_disease(300)).baselines("test")
    assert set(metrics) == {"majority class", "logistic regression"}
    assert skipped == {"label propagation": "the graph is too large for it, with 598 edges and 2 classes"}


def test_baselines_of_node_classes():
    problem = NodeClassification().bind(generate_disease(300))
    metrics, skipped = problem.baselines("test")
    assert set(metrics) == {"majority class", "label propagation", "logistic regression"}
    assert all(set(scores) == {"accuracy", "macro_f1", "f1"} for scores in metrics.values())
    assert not skipped


def test_one_class_for_all_is_the_other_when_f1_is_what_counts():
    problem = NodeClassification(selection="f1").bind(generate_disease(300))
    share = float(problem.y[torch.as_tensor(problem.split.test)].float().mean())
    assert 0 < share < 0.5
    metrics = problem.baselines("test").metrics
    assert metrics["majority class"]["f1"] == 0
    assert metrics["always class 1"]["f1"] == pytest.approx(2 * share / (1 + share))


def test_label_propagation_is_that_of_pyg():
    random = np.random.RandomState(0)
    adjacency = prepare_adjacency(torch.from_numpy(random.randint(0, 60, (2, 150))), None, 60)
    labels, train = torch.from_numpy(random.randint(0, 3, 60)), torch.arange(12)
    index, weights = gcn_norm(*adjacency.edges(self_loops=False), 60, add_self_loops=False)
    scores = LabelPropagation(50, 0.9)(labels, index, train, weights.float())
    reached = scores.amax(1) > 0
    found = torch.from_numpy(propagated_classes(adjacency, labels, train))
    assert torch.equal(found[reached], scores.argmax(1)[reached])
