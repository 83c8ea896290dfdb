import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import random_graph
from sklearn.metrics import average_precision_score, roc_auc_score
from torch_geometric.data import Data

from h2hgcn.datasets import split_edges
from h2hgcn.tasks.metrics import class_metrics, link_metrics
from h2hgcn.tasks.trivial import trivial_link_scores

scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30).map(np.array)


@given(positive=scores, negative=scores)
def test_link_metrics_by_definition(positive, negative):
    metrics = link_metrics(positive, negative, hits_at=(1, 3))
    wins = [(p > n) + (p == n) / 2 for p in positive for n in negative]
    assert metrics["auc"] == pytest.approx(np.mean(wins))
    ranks = [1 + sum(n > p for n in negative) + sum(n == p for n in negative) / 2 for p in positive]
    assert metrics["mrr"] == pytest.approx(np.mean([1 / rank for rank in ranks]))
    for k in (1, 3):
        best = sorted(negative, reverse=True)
        expected = np.mean([p > best[k - 1] for p in positive]) if k <= len(best) else 1
        assert metrics[f"hits@{k}"] == pytest.approx(expected)
    truth, ranked = np.repeat([1, 0], [len(positive), len(negative)]), np.concatenate([positive, negative])
    assert metrics["auc"] == pytest.approx(roc_auc_score(truth, ranked))
    assert metrics["ap"] == pytest.approx(average_precision_score(truth, ranked))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_without_a_rank_are_refused(bad):
    with pytest.raises(ValueError, match="NaN or infinity"):
        link_metrics(np.array([1.0, bad]), np.array([0.0]))


classes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1).map(np.array)


def f1(truth, predicted, label):
    both = ((truth == label) & (predicted == label)).sum()
    either = (truth == label).sum() + (predicted == label).sum()
    return 2 * both / either if either else 0.0


@given(pairs=classes)
def test_class_metrics_by_definition(pairs):
    truth, predicted = pairs.T
    metrics = class_metrics(truth, predicted, 3)
    assert metrics["accuracy"] == pytest.approx((truth == predicted).mean())
    assert metrics["macro_f1"] == pytest.approx(np.mean([f1(truth, predicted, k) for k in range(3)]))
    assert "f1" not in metrics
    two = class_metrics(truth % 2, predicted % 2, 2)
    assert two["f1"] == pytest.approx(f1(truth % 2, predicted % 2, 1))


def test_trivial_scores_against_loops():
    index, _ = random_graph(40, 120)
    split = split_edges(Data(edge_index=index, num_nodes=40), 0.2, 0.2)
    x = np.random.RandomState(0).randn(40, 3)
    scores = trivial_link_scores(x, split)
    neighbors = {k: set() for k in range(40)}
    for a, b in split.train.tolist():
        neighbors[a].add(b)
        neighbors[b].add(a)

    def auc(score):
        return link_metrics(*(np.array([score(a, b) for a, b in p]) for p in (split.test, split.test_neg)))["auc"]

    assert scores["degree product"] == pytest.approx(auc(lambda a, b: len(neighbors[a]) * len(neighbors[b])))
    assert scores["common neighbours"] == pytest.approx(auc(lambda a, b: len(neighbors[a] & neighbors[b])))
    adamic_adar = auc(lambda a, b: sum(1 / np.log(len(neighbors[c])) for c in neighbors[a] & neighbors[b]))
    assert scores["Adamic-Adar"] == pytest.approx(adamic_adar)
    assert scores["feature distance"] == pytest.approx(auc(lambda a, b: -np.linalg.norm(x[a] - x[b])))
