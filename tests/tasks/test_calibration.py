"""Calibration against scikit-learn, brute force and laws; and what runs make of it."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from runs import Flat, same_weights, shapes, small_data, small_fit
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report, confusion_matrix
from torch_geometric.data import Data

from h2hgcn.tasks import GraphClassification, LinkPrediction, NodeClassification
from h2hgcn.tasks import metrics as calibration
from h2hgcn.tasks.metrics import (
    CLASS_BINS,
    LINK_BINS,
    ClassCalibration,
    LinkCalibration,
    calibration_error,
    likeliest,
    reliability,
)
from h2hgcn.training import load_run

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")


def links_of(count=20_000, seed=0, slope=2.0, bias=-4.0):
    """Logits of pairs that are links with the probability ``sigmoid(slope · logit + bias)``, all of weight 1."""
    random = np.random.RandomState(seed)
    logits = random.normal(0, 1.5, count)
    labels = random.rand(count) < expit(slope * logits + bias)
    return logits, labels, np.ones(count)


def fitted(logits, labels, weights):
    found = LinkCalibration().double()
    assert found.fit(logits, labels, weights)
    assert found.fitted
    return found


def test_link_probabilities_are_those_that_links_were_drawn_with():
    logits, labels, weights = links_of()
    found = fitted(logits, labels, weights)(torch.from_numpy(logits)).numpy()
    wanted = expit(2 * logits - 4)
    assert np.abs(found - wanted).max() < 0.06
    assert np.abs(found - wanted).mean() < 0.005


def test_with_one_slope_it_is_a_logistic_regression(monkeypatch):
    monkeypatch.setattr(calibration, "_ROUGHNESS", 1e9)
    monkeypatch.setattr(calibration, "_STEEPNESS", 0.0)
    logits, labels, weights = links_of(2000)
    weights = np.where(labels, 3.0, 7.0)
    found = fitted(logits, labels, weights)(torch.from_numpy(logits)).numpy()
    wanted = LogisticRegression(C=1e6).fit(logits[:, None], labels, sample_weight=weights)
    assert found == pytest.approx(wanted.predict_proba(logits[:, None])[:, 1], abs=2e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["good", "useless", "backward", "separate", "ties"])
def test_links_keep_their_order_and_their_number(kind, seed):
    logits, labels, weights = links_of(3000, seed)
    weights = np.where(labels, 3.0, 40.0)
    if kind == "useless":
        logits = np.random.RandomState(100 + seed).normal(size=len(logits))
    elif kind == "backward":
        logits = -logits
    elif kind == "separate":
        logits = logits + 50 * labels
    elif kind == "ties":
        logits = logits.round()
    found = fitted(logits, labels, weights)
    steps = torch.linspace(float(logits.min()) - 20, float(logits.max()) + 20, 2001, dtype=torch.float64)
    inside = (found(steps) > 1e-12) & (found(steps) < 1 - 1e-12)  # beyond, doubles end
    assert (found(steps).diff()[inside[1:] & inside[:-1]] > 0).all()
    chances = found(torch.from_numpy(logits)).numpy()
    assert (weights * chances).sum() == pytest.approx(weights[labels].sum(), rel=0.02)
    if kind == "useless":
        rate = weights[labels].sum() / weights.sum()
        assert np.quantile(chances, [0.05, 0.95]) == pytest.approx(rate, rel=0.5)
    assert (found.float()(steps.float()).diff() >= 0).all()


def test_few_links_are_not_calibrated():
    logits, labels = np.arange(200.0), np.arange(200) >= 181
    found = LinkCalibration()
    assert not found.fit(logits, labels, np.ones(200))
    assert not found.fitted
    given = torch.tensor([-1.0, 0.0, 2.0])
    torch.testing.assert_close(found(given), given.sigmoid())
    assert found.fit(logits, np.arange(200) >= 180, np.ones(200))
    assert not found.fit(logits, np.ones(200, dtype=bool), np.ones(200))


def classes_of(count=5000, seed=0, temperature=2.5):
    random = np.random.RandomState(seed)
    logits = random.normal(0, 4, (count, 3))
    y = (softmax(logits / temperature, 1).cumsum(1) < random.rand(count, 1)).sum(1)
    return logits, y


def test_temperatures_are_those_that_classes_were_drawn_with():
    logits, y = classes_of()
    found = ClassCalibration(4).double()
    padded = np.column_stack([logits, np.full(len(y), -50.0)])  # a class that nobody has
    assert found.fit(padded, y)
    assert found.temperatures[:3].tolist() == pytest.approx([2.5] * 3, rel=0.1)
    chances = found(torch.from_numpy(padded))
    assert (chances.argmax(1).numpy() == padded.argmax(1)).all()
    torch.testing.assert_close(chances.sum(1), torch.ones(len(y), dtype=torch.float64))


def test_one_temperature_is_that_of_a_search(monkeypatch):
    monkeypatch.setattr(calibration, "_ALIKE", 1e9)
    logits, y = classes_of(300)
    found = ClassCalibration(3).double()
    assert found.fit(logits, y)

    def loss(log_factor):
        return -log_softmax(logits * np.exp(log_factor), 1)[range(300), y].sum() + log_factor**2 / 2

    wanted = np.exp(-minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)
    assert found.temperatures.tolist() == pytest.approx([wanted] * 3, rel=1e-3)


def test_temperatures_are_finite_if_all_is_right_and_1_for_few():
    logits = 10 * np.eye(3)[np.arange(60) % 3]
    found = ClassCalibration(3)
    assert not found.fit(logits[:19], np.arange(19) % 3)
    assert not found.fitted
    assert found.fit(logits, np.arange(60) % 3)
    assert 0.01 < float(found.temperatures.min()) < 1.01


@pytest.mark.parametrize("edges", [CLASS_BINS, LINK_BINS])
def test_calibration_error_by_definition(edges):
    random = np.random.RandomState(0)
    chances = np.concatenate([10 ** random.uniform(-7, 0, 500), [0.0, 1.0, 0.2]])
    came_true, weights = random.rand(503) < 0.3, random.uniform(1, 5, 503)
    total = 0.0
    bins = reliability(chances, came_true, weights, edges)
    for low, high in pairwise(edges.tolist()):
        inside = ((chances > low) | (low == 0)) & (chances <= high)
        if inside.any():
            w = weights[inside] / weights[inside].sum()
            total += weights[inside].sum() / weights.sum() * abs(w @ chances[inside] - w @ came_true[inside])
    assert calibration_error(bins) == pytest.approx(total)
    assert sum(one["count"] for one in bins) == pytest.approx(weights.sum())


def test_probabilities_that_are_right_have_no_error():
    chances = np.repeat([0.1, 0.5, 1.0], 10)
    came_true = np.concatenate([np.arange(10) < 1, np.arange(10) < 5, np.ones(10)]).astype(bool)
    assert calibration_error(reliability(chances, came_true, None, CLASS_BINS)) == pytest.approx(0)


def test_the_likeliest_include_all_that_are_equal():
    chances, weights = np.array([0.1, 0.9, 0.5, 0.5, 0.2]), np.array([1.0, 2.0, 1.0, 1.0, 1.0])
    assert likeliest(chances, weights, 1).tolist() == [1]
    assert likeliest(chances, weights, 3).tolist() == [1, 2, 3]
    assert likeliest(chances, weights, 99).tolist() == [0, 1, 2, 3, 4]


def clustered(directed=False):
    graph = nx.powerlaw_cluster_graph(100, 4, 0.8, seed=1)
    x = 10 * np.linalg.eigh(nx.to_numpy_array(graph))[1][:, -8:]
    index = torch.tensor(list(graph.edges)).T
    index = index if directed else torch.cat([index, index.flip(0)], 1)
    return Data(edge_index=index, num_nodes=100, directed=directed, x=torch.from_numpy(x).float())


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("terms", [False, True])
def test_a_run_calibrates_links_and_changes_no_other_metric(tmp_path, directed, terms):
    data = clustered(directed)
    task = LinkPrediction(val=0.2, test=0.2, neighborhood_terms=terms)
    plain = small_fit(LinkPrediction(val=0.2, test=0.2, neighborhood_terms=terms, calibrate=False), data, Flat)
    run = small_fit(task, data, Flat, folder=tmp_path)
    assert run.model.head.calibrated
    for part in ("val", "test"):
        for name, value in plain.metrics[part].items():
            if not name.startswith("ece"):
                assert run.metrics[part][name] == value
    assert run.metrics["test"]["ece"] < plain.metrics["test"]["ece"] / 5
    assert "ece" not in run.metrics["val"]
    again = load_run(tmp_path, data, Flat)
    assert same_weights(run, again)
    assert again.evaluate() == run.metrics["test"]
    assert again.details() == run.result["details"]
    nodes = range(100)
    known = {tuple(pair) for pair in run.problem.split.train.tolist()}
    pairs = [(a, b) for a in nodes for b in nodes if (a < b or (directed and a != b)) and (a, b) not in known]
    with torch.no_grad():
        logits = torch.from_numpy(run.problem._scores(run.model, run.embeddings, np.array(pairs)))
    expected = float(run.model.head.probabilities(logits).sum())  # of all pairs that are not training edges
    hidden = len(run.problem.split.val) + len(run.problem.split.test)
    assert expected == pytest.approx(hidden, rel=0.25)
    bins = run.details("test")["reliability"]
    assert sum(one["count"] for one in bins) == pytest.approx(len(pairs))
    assert sum(one["count"] * one["actual"] for one in bins) == pytest.approx(hidden)


def test_a_sample_of_pairs_stands_for_all(monkeypatch):
    task, data = LinkPrediction(val=0.2, test=0.2), clustered()
    whole = small_fit(task, data, Flat)
    monkeypatch.setattr("h2hgcn.tasks.links._MOST_PAIRS", 2000)
    monkeypatch.setattr("h2hgcn.tasks.links._CHUNK", 300)
    run, again = (small_fit(task, data, Flat) for _ in range(2))
    assert same_weights(run, again)
    bins, of_whole = (one.details()["reliability"] for one in (run, whole))
    assert sum(one["count"] for one in bins) == pytest.approx(sum(one["count"] for one in of_whole))
    pairs = [[0, 1], [5, 50], [7, 9]]
    assert run.predict(pairs).tolist() == pytest.approx(whole.predict(pairs).tolist(), rel=0.3)


def test_pairs_of_a_node_with_itself_are_left_out():
    """The legacy protocol has them among links and others; as near as can be, they would be the likeliest of all."""
    data = clustered()
    data.self_loops = torch.arange(0, 100, 2)
    run = small_fit(LinkPrediction(val=0.2, test=0.2, protocol="legacy"), data, Flat)
    split = run.problem.split
    assert (split.test[:, 0] == split.test[:, 1]).any()
    known, hidden = (
        int((part[:, 0] != part[:, 1]).sum()) for part in (split.train, np.vstack([split.val, split.test]))
    )
    bins = run.details()["reliability"]
    assert sum(one["count"] for one in bins) == pytest.approx(100 * 99 / 2 - known)
    assert sum(one["count"] * one["actual"] for one in bins) == pytest.approx(hidden)


def test_all_who_show_probabilities_show_the_same(tmp_path):
    run = small_fit(LinkPrediction(val=0.2, test=0.2, neighborhood_terms=True), clustered(), folder=tmp_path)
    found = run.recommend(7, 5)
    pairs = [[7, link.node] for link in found]
    wanted = run.predict(pairs).tolist()
    assert [link.probability for link in found] == pytest.approx(wanted)
    assert run.link_probabilities(np.array(pairs)).tolist() == pytest.approx(wanted)
    assert [link.probability for link in run.recommend([7], 5)] == pytest.approx(wanted)
    logits = run.link_logits(np.array(pairs))
    assert (logits.diff() <= 0).all()
    assert not torch.allclose(logits.sigmoid(), torch.tensor(wanted), rtol=0.1)


def test_too_few_validation_links_are_told_with_what_to_do():
    run = small_fit(LinkPrediction(val=0.04, test=0.2), clustered(), Flat)
    assert not run.model.head.calibrated
    wanted = "probabilities are not calibrated: that takes 20 validation links, and there are 15; use more with --set"
    assert any(doubt.startswith(wanted) for doubt in run.result["doubts"])
    silent = small_fit(LinkPrediction(val=0.04, test=0.2, calibrate=False), clustered(), Flat)
    assert not any("calibrated" in doubt for doubt in silent.result["doubts"])


@pytest.mark.parametrize(
    "task",
    [NodeClassification(num_centroids=6), GraphClassification(num_folds=2, num_centroids=6, batch_size=8)],
    ids=["nc", "gc"],
)
def test_classes_in_detail_are_those_of_scikit_learn(tmp_path, task):
    data = shapes(120) if task.name == "gc" else small_data("nc")
    if task.name == "gc":
        data.train, data.val, data.test = torch.arange(120).split(40)
    run = small_fit(task, data, folder=tmp_path)
    assert run.model.head.calibrated
    truth, predicted = run.problem.classes(run.model, "test")
    wanted = classification_report(truth, predicted, output_dict=True, zero_division=0)
    details = run.result["details"]
    assert [one["name"] for one in details["classes"]] == run.classes
    for k, one in enumerate(details["classes"]):
        assert one["precision"] == pytest.approx(wanted[str(k)]["precision"])
        assert one["recall"] == pytest.approx(wanted[str(k)]["recall"])
        assert one["f1"] == pytest.approx(wanted[str(k)]["f1-score"])
        assert one["support"] == wanted[str(k)]["support"]
    assert details["confusion"] == confusion_matrix(truth, predicted).tolist()
    again = load_run(tmp_path, data)
    assert again.details() == details
    assert again.evaluate() == run.metrics["test"]
    chances = again.predict()[run.problem.split.test]
    assert (chances.argmax(1).numpy() == predicted).all()
    sure = chances.max(1).values.double().numpy()
    assert run.metrics["test"]["ece"] == pytest.approx(
        calibration_error(reliability(sure, predicted == truth, None, CLASS_BINS)), abs=1e-6
    )


def test_temperatures_are_fitted_out_of_fold_where_feature_terms_were_fitted():
    """On the nodes that chose the share of the features, it looks better than it is."""
    random = np.random.RandomState(0)
    y = random.randint(3, size=300)
    x = torch.from_numpy((random.rand(300, 40) < 0.05 + 0.2 * (np.arange(40) % 3 == y[:, None])).astype(np.float32))
    edges = torch.from_numpy(random.randint(300, size=(2, 200)))
    data = Data(x=x, y=torch.from_numpy(y), edge_index=torch.cat([edges, edges.flip(0)], 1))
    run = small_fit(NodeClassification(feature_terms=True, num_centroids=6, val=0.2), data)
    head, val = run.model.head, run.problem.split.val
    assert head.features.fitted
    points = run.embeddings[val]
    logits = head(points, run.model.distance_scale).detach().double().numpy()
    mixed = head.features.out_of_fold(logits, x[val], y[val])
    seen = head.features(torch.from_numpy(logits), x[val]).detach().numpy()
    losses = [-log_softmax(some, 1)[range(len(val)), y[val]].mean() for some in (seen, mixed)]
    assert losses[0] < losses[1] < losses[0] + 0.2
    wanted = ClassCalibration(3)
    wanted.fit(mixed, y[val])
    torch.testing.assert_close(wanted.temperatures, head.classes.calibration.temperatures)
