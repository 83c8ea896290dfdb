"""The benchmark of many graphs: its rivals against oracles, its records and its tables."""

import json
from itertools import pairwise
from types import SimpleNamespace

import any_graph
import graph_sources
import networkx as nx
import numpy as np
import pytest
import rivals
from any_graph import Cell, measure, read_records, run, tables

from h2hgcn.errors import DataError
from h2hgcn.tasks import LinkPrediction, NodeClassification

CHEAP = ("degree product", "common neighbors", "Adamic-Adar", "truncated SVD")
CARDS = {"graph": "les-miserables", "task": "lp", "data": "a", "nodes": 77, "edges": 254, "features": False}


@pytest.fixture(scope="module")
def links():
    return LinkPrediction(split_seed=0).bind(graph_sources.load("les-miserables"))


@pytest.fixture(scope="module")
def blocks():
    return NodeClassification(split_seed=0).bind(graph_sources.load("block-model"))


def record(method, seed, value, **changes):
    metrics = dict.fromkeys(("auc", "ap", "mrr"), value)
    return CARDS | {"method": method, "seed": seed, "val": metrics, "test": metrics, "seconds": 1.0} | changes


@pytest.mark.parametrize(
    ("method", "oracle"),
    [
        (rivals.degree_product, nx.preferential_attachment),
        (rivals.adamic_adar, nx.adamic_adar_index),
        (rivals.common_neighbors, lambda graph, pairs: [(len(set(graph[u]) & set(graph[v])),) for u, v in pairs]),
    ],
)
def test_scores_without_training_are_networkx_s(links, method, oracle):
    graph = nx.Graph(links.split.train.tolist())
    pairs = np.array([pair for pair in links.split.test_neg if all(node in graph for node in pair)])
    [(_, score)] = method(links, 0)
    expected = [value for *_, value in oracle(graph, [tuple(pair) for pair in pairs.tolist()])]
    np.testing.assert_allclose(score(pairs), expected)


def test_isolated_ends_are_ends_of_held_out_edges():
    """In a graph where every node has an edge, so the score knows the split and nothing of links."""
    tree = LinkPrediction(split_seed=0).bind(graph_sources.load("disease"))
    [(_, score)] = rivals.isolated_end(tree, 0)
    nodes = np.arange(tree.num_nodes)
    alone = nodes[score(np.stack([nodes, nodes], 1)) == 2]
    assert len(alone) > 0
    assert set(alone) <= set(np.concatenate([tree.split.val, tree.split.test]).ravel())
    assert not set(alone) & set(tree.split.train.ravel())


def test_walks_go_along_edges(blocks):
    graph = rivals.adjacency_of(blocks)
    graph.sort_indices()
    walks = np.full((50, 12), -1)
    rivals._walk(graph.indptr, graph.indices, np.arange(50), 0.5, 0, walks)
    steps = [step for walk in walks.tolist() for step in pairwise(walk)]
    assert len(steps) == 550
    assert all(graph[one, other] == 1 for one, other in steps)


def test_steps_away_are_more_frequent_at_a_small_q():
    graph = nx.to_scipy_sparse_array(nx.barbell_graph(6, 0), format="csr")
    graph.sort_indices()
    crossings = []
    for q in (0.1, 10.0):
        walks = np.full((4000, 3), -1)
        rivals._walk(graph.indptr, graph.indices, np.zeros(4000, dtype=np.int64), q, 0, walks)
        crossings.append((walks[:, 2] == 6).sum() / (walks[:, 1] == 5).sum())
    # from 0 over 5: five neighbors beside or at 0 of weight 1, and the other end of weight 1/q
    np.testing.assert_allclose(crossings, [10 / 15, 0.1 / 5.1], atol=0.05)


def test_poincare_distance_is_that_of_the_package():
    import torch

    from h2hgcn.geometry import lorentz, poincare

    points = np.random.RandomState(0).uniform(-0.5, 0.5, (10, 3))
    pairs = np.array([[0, 1], [2, 3], [4, 5]])
    on_sheet = poincare.to_lorentz(torch.from_numpy(points))
    expected = lorentz.distance(on_sheet[pairs[:, 0]], on_sheet[pairs[:, 1]])
    np.testing.assert_allclose(-rivals._poincare_closeness(points, pairs), expected)


def test_gcn_learns_blocks(blocks):
    classes = dict(rivals._gnn_classes("GCN", blocks, 0))
    assert max(rivals.val_accuracy(blocks, predicted) for predicted in classes.values()) > 0.8


@pytest.mark.parametrize("method", ["node2vec", "Poincaré"])
def test_gensim_methods_beat_chance(links, method, monkeypatch):
    pytest.importorskip("gensim")
    monkeypatch.setattr(rivals, "TOKENS", 20_000)
    monkeypatch.setattr(rivals, "POINCARE_RELATIONS", 4_000)
    _, metrics = any_graph.train_rival(links, "lp", method, 0)
    assert metrics["test"]["auc"] > 0.6


def test_a_stopped_run_measures_what_is_missing(tmp_path):
    path = tmp_path / "records.jsonl"
    cells = [Cell("les-miserables", "lp", method, 0) for method in CHEAP]
    run(cells[:2], path, 1)
    first = path.read_text()
    path.write_text(first + '{"graph": "les-mis')
    run(cells, path, 1)
    assert path.read_text().startswith(first)
    assert [item["method"] for item in read_records(path)] == list(CHEAP)
    assert [title for title in tables(read_records(path)) if "AUC" in title] == [
        "Links, AUC, graphs without features",
        "Links, AUC of answerable pairs, graphs without features",
    ]


def test_records_without_a_metric_are_measured_again_and_left_out_of_its_table(tmp_path):
    path, cells = tmp_path / "records.jsonl", [Cell("les-miserables", "lp", CHEAP[0], 0)]
    run(cells, path, 1)
    (older,) = read_records(path)
    del older["test"]["auc_answerable"]
    path.write_text(json.dumps(older) + "\n")
    assert [title for title in tables([older]) if "AUC" in title] == ["Links, AUC, graphs without features"]
    run(cells, path, 1)
    run(cells, path, 1)
    assert [("auc_answerable" in record["test"]) for record in read_records(path)] == [False, True]


def test_the_default_and_the_rivals_have_the_same_split(links, monkeypatch):
    seen = []

    def run_experiment(experiment, data, *_, **__):
        seen.append(experiment.task.bind(data).split)
        return SimpleNamespace(result={"metrics": {}}, config={"search": {"chosen": ""}})

    monkeypatch.setattr("h2hgcn.experiments.train.run_experiment", run_experiment)
    any_graph.train_default(graph_sources.load("les-miserables"), "lp", 0)
    np.testing.assert_array_equal(seen[0].test, links.split.test)
    np.testing.assert_array_equal(seen[0].test_neg, links.split.test_neg)


def test_a_graph_that_is_missing_is_skipped_with_a_word(monkeypatch):
    def nowhere():
        raise DataError("install it")

    monkeypatch.setitem(graph_sources.GRAPHS, "nowhere", graph_sources.Source(nowhere))
    assert measure(Cell("nowhere", "lp", "Adamic-Adar", 0)) == "nowhere skipped: install it"


def test_the_summary_counts_ties_and_names_the_largest_deficit():
    ties = [record("h2h-gcn", seed, 0.9) for seed in (0, 1)] + [record("GCN", 0, 0.904), record("GCN", 1, 0.904)]
    other = {"graph": "grid", "data": "b"}
    behind = [record("h2h-gcn", 0, 0.7, **other), record("GCN", 0, 0.8, **other), record("node2vec", 0, 0.75, **other)]
    found = tables(ties + behind)
    summary = found["Summary"][0]
    assert summary["graphs"] == 2
    assert summary["h2h-gcn best or within 0.005"] == 1
    assert summary["largest deficit"] == "0.100 (grid, GCN)"
    row = found["Links, AUC, graphs without features"][0]
    assert (row["h2h-gcn"], row["GCN"]) == ("0.900 ± 0.000", "**0.904 ± 0.000**")


def test_means_are_over_the_seeds_that_all_methods_have():
    found = tables([record("GCN", 0, 0.9), record("node2vec", 0, 0.8), record("node2vec", 1, 0.1)])
    row = found["Links, AUC, graphs without features"][0]
    assert (row["GCN"], row["node2vec"], row["seeds"]) == ("**0.900**", "0.800", 1)


def test_records_of_a_graph_that_has_changed_do_not_count():
    old, new = record("GCN", 0, 0.9), record("GCN", 1, 0.5, data="b")
    assert tables([old, new])["Links, AUC, graphs without features"][0]["GCN"] == "**0.500**"


def test_a_graph_that_has_changed_is_measured_again(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record("Adamic-Adar", 0, 0.5)) + "\n")
    run([Cell("les-miserables", "lp", "Adamic-Adar", 0)], path, 1)
    assert len(read_records(path)) == 2
