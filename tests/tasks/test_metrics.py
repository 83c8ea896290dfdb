import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score

from h2hgcn.errors import NonFiniteError
from h2hgcn.tasks.metrics import auc, class_metrics, link_metrics

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
        expected = np.mean([p > best[k - 1] for p in positive]) if k <= len(best) else None
        assert metrics.get(f"hits@{k}") == (None if expected is None else pytest.approx(expected))
    truth = np.repeat([1, 0], [len(positive), len(negative)])
    assert metrics["ap"] == pytest.approx(average_precision_score(truth, np.concatenate([positive, negative])))
    assert auc(positive, negative) == metrics["auc"]


classes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1).map(np.array)


@given(pairs=classes)
def test_class_metrics_by_definition(pairs):
    truth, predicted = pairs.T
    metrics = class_metrics(truth, predicted, 3)
    assert metrics["accuracy"] == pytest.approx((truth == predicted).mean())
    macro = f1_score(truth, predicted, labels=[0, 1, 2], average="macro", zero_division=0.0)
    assert metrics["macro_f1"] == pytest.approx(macro)
    assert "f1" not in metrics
    two = class_metrics(truth % 2, predicted % 2, 2)
    assert two["f1"] == pytest.approx(f1_score(truth % 2, predicted % 2, zero_division=0.0))


def test_scores_that_are_no_numbers():
    for bad in (np.nan, np.inf):
        with pytest.raises(NonFiniteError):
            link_metrics(np.array([1.0, bad]), np.array([0.0]))
