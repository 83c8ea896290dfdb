"""A logistic regression on features beside the network, against scikit-learn."""

import numpy as np
import pytest
import torch
from runs import SMALL, same_weights, small_fit
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from torch_geometric.data import Data

from h2hgcn.tasks import NodeClassification
from h2hgcn.tasks import heads as feature_terms
from h2hgcn.tasks.heads import FeatureTerms, fit_regression
from h2hgcn.training import load_run

TRAIN, VAL, TEST = np.arange(120), np.arange(120, 200), np.arange(200, 300)


def words(num_classes=3, seed=0):
    """Words that tell the class, most of them absent; few edges that tell nothing."""
    random = np.random.RandomState(seed)
    y = random.randint(num_classes, size=300)
    chance = 0.03 + 0.22 * (np.arange(40) % num_classes == y[:, None])
    x = (random.rand(300, 40) < chance).astype(np.float32) * random.randint(1, 4, (300, 1)).astype(np.float32)
    edges = random.randint(300, size=(2, 100))
    return Data(
        x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=torch.from_numpy(np.hstack([edges, edges[::-1]]))
    )


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("kind", ["words", "sparse", "numbers"])
def test_regression_is_that_of_scikit_learn(kind, num_classes):
    data = words(num_classes)
    x, y = data.x.double(), data.y.numpy()
    if kind == "numbers":
        x = x + torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype) + 5
    given = x.to_sparse_csr() if kind == "sparse" else x
    weights, bias, unit_rows = fit_regression(given, y, TRAIN, VAL, num_classes)
    assert unit_rows == (kind != "numbers")
    first = StandardScaler() if kind == "numbers" else Normalizer()
    models = [make_pipeline(first, LogisticRegression(C=c, max_iter=200)).fit(x[TRAIN], y[TRAIN]) for c in (1.0, 10.0)]
    best = max(models, key=lambda model: model.predict_log_proba(x[VAL])[range(len(VAL)), y[VAL]].mean())
    rows = Normalizer().fit_transform(x) if unit_rows else x.numpy()
    np.testing.assert_allclose(log_softmax(rows @ weights + bias, 1), best.predict_log_proba(x), atol=1e-3)


def test_classes_without_a_training_node():
    data = words()
    y = data.y.numpy()
    weights, bias, _ = fit_regression(data.x, y, TRAIN[y[TRAIN] != 1], VAL[y[VAL] != 1], 4)
    assert weights.shape == (40, 4)
    assert (weights[:, [1, 3]] == 0).all()
    assert (bias[[1, 3]] == -30).all()


def test_it_is_used_where_it_helps_alone():
    data = words()
    y = data.y.numpy()
    logits = np.random.RandomState(0).randn(len(VAL), 3)
    terms = FeatureTerms(40, 3)
    assert torch.equal(terms.mix, torch.tensor([1.0, 0.0]))
    assert terms.fit(logits, data.x, y, TRAIN, VAL)
    added = terms(torch.from_numpy(logits), data.x[VAL])
    assert (added.argmax(1).numpy() == y[VAL]).mean() > (logits.argmax(1) == y[VAL]).mean() + 0.3
    perfect = FeatureTerms(40, 3)
    assert not perfect.fit(10 * np.eye(3)[y[VAL]], data.x, y, TRAIN, VAL)
    assert not perfect.fitted


@pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")
def test_a_run_fits_and_keeps_it(tmp_path):
    data = words()
    run = small_fit(NodeClassification(feature_terms=True, num_centroids=6), data, SMALL, epochs=3, folder=tmp_path)
    assert run.metrics["test"]["accuracy"] > 0.8
    assert run.metrics["val"]["accuracy_network"] < run.metrics["val"]["accuracy"]
    assert run.result["trivial"]["logistic regression"] > 0.8
    again = load_run(tmp_path)
    assert same_weights(run, again)
    assert again.evaluate("test") == run.metrics["test"]
    assert again.evaluate("val") == run.metrics["val"]
    chances = again.predict()
    torch.testing.assert_close(chances.sum(1), torch.ones(300))
    val = run.problem.split.val
    terms, network = run.model.head.features, run.model.head(run.embeddings[val], run.model.distance_scale)
    without_each = terms.out_of_fold(network.detach().double().numpy(), data.x[val].numpy(), data.y[val].numpy())
    assert run.metrics["val"]["accuracy"] == (without_each.argmax(1) == data.y[val].numpy()).mean()
    nodes = run.problem.split.test
    assert (chances[nodes].argmax(1) == data.y[nodes]).float().mean() == pytest.approx(run.metrics["test"]["accuracy"])
    torch.testing.assert_close(again.predict(data=data), chances)
    torch.testing.assert_close(again.predict([5, 7], data=data), chances[[5, 7]])


@pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")
def test_features_of_the_graph_itself_and_too_many_are_left_out(monkeypatch):
    data = words()
    task = NodeClassification(feature_terms=True, num_centroids=6)
    monkeypatch.setattr(feature_terms, "_PRODUCTS", 1000)
    run = small_fit(task, data, epochs=2)
    assert not run.model.head.features.fitted
    assert any("logistic regression was skipped" in doubt for doubt in run.result["doubts"])
    data.structural = True
    run = small_fit(task, data, epochs=2)
    assert run.model.head.features is None
    assert "logistic regression" not in run.result["trivial"]
