from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from h2hgcn.errors import DataError
from h2hgcn.experiments.cells import Outcome
from h2hgcn.experiments.comparison import plan, tabulate
from h2hgcn.experiments.significance import p_value


def finished(score, val=0.5, trivial=0.6, parameters=7):
    return Outcome(
        "finished",
        {
            "selection": "auc",
            "metrics": {"test": {"auc": score}, "val": {"auc": val}},
            "trivial": {"degree product": trivial},
            "parameters": parameters,
            "seconds": 2.0,
        },
    )


def table_of(scores, *, vary_split=False, outcomes=None):
    """A table of models with these scores, one a seed."""
    models = list(scores)
    comparison = plan({}, ["h2h-gcn"], max(2, *map(len, scores.values())), vary_split=vary_split)
    object.__setattr__(comparison, "experiments", dict.fromkeys(models, comparison.first))
    found = {(model, seed): finished(score) for model in models for seed, score in enumerate(scores[model])}
    return tabulate(comparison, found | (outcomes or {}), dict.fromkeys(models, "lorentz"))


def test_every_model_has_the_same_split_and_every_seed_a_folder(tmp_path):
    comparison = plan({"data": {"dataset": "cora"}, "task": {"name": "lp"}}, ["h2h-gcn"], 3, tmp_path)
    assert comparison.seeds == (0, 1, 2)
    assert {cell.folder for cell in comparison.cells.values()} == {tmp_path / f"h2h-gcn-seed{k}" for k in range(3)}
    assert {cell.flags["task"]["protocol"] for cell in comparison.cells.values()} == {"legacy"}  # as its preset says
    assert {cell.flags["task"]["split_seed"] for cell in comparison.cells.values()} == {1234}
    varied = plan({}, ["h2h-gcn"], 3, tmp_path, vary_split=True)
    assert [cell.flags["task"]["split_seed"] for cell in varied.cells.values()] == [1234, 1235, 1236]
    assert next(iter(plan({}, ["h2h-gcn"], 1).cells.values())).folder == Path("runs/compare-disease-lp/h2h-gcn-seed0")


@pytest.mark.parametrize(
    ("models", "seeds", "message"),
    [
        (["h2h-gcn", "h2h-gcn"], 3, "name each model once"),
        ([], 3, "name each model once"),
        (["h2h-gcn", "h2h-gnc"], 3, "did you mean 'h2h-gcn'"),
        (["h2h-gcn"], 0, "--seeds 0"),
    ],
)
def test_comparisons_that_cannot_be(models, seeds, message):
    with pytest.raises(DataError, match=message):
        plan({}, models, seeds)


def test_the_best_comes_first_and_the_others_are_compared_with_it():
    table = table_of({"a": [0.7, 0.72, 0.71], "b": [0.9, 0.91, 0.92], "c": [0.9, 0.9, 0.92]})
    assert [row.model for row in table.rows] == ["b", "c", "a"]
    assert table.level == 0.025
    best, close, far = table.rows
    assert best.p_value is None
    assert table.differs(close) is False
    assert table.differs(far) is True
    assert far.mean == pytest.approx(0.71)
    assert far.deviation == pytest.approx(0.01)
    assert table.trivial == {"degree product": 0.6}
    assert (best.parameters, best.seconds) == (7, 2.0)


def test_what_diverged_is_no_number():
    bad = Outcome("diverged", {}, "the loss is nan")
    table = table_of({"a": [0.7, 0.8], "b": []}, outcomes={("b", 0): bad, ("b", 1): bad})
    lost = table.rows[-1]
    assert lost.model == "b"
    assert (lost.mean, lost.deviation, lost.diverged, lost.parameters) == (None, None, 2, None)
    assert table.differs(lost) is None


def test_one_seed_tells_nothing_of_noise():
    table = table_of({"a": [0.7], "b": [0.9]})
    assert table.rows[1].p_value is None
    assert table.rows[0].deviation is None


def test_the_tests_are_those_of_scipy():
    first, second = np.array([0.9, 0.92, 0.95]), np.array([0.88, 0.93, 0.9])
    assert p_value(first, second, False) == stats.ttest_ind(first, second, equal_var=False).pvalue
    assert p_value(first, second, True) == stats.ttest_rel(first, second).pvalue
    assert p_value([0.5, 0.5], [0.5, 0.5], False) == 1
    assert p_value([0.5, 0.5], [0.75, 0.75], False) == 0
    assert p_value([0.25, 0.5], [0.5, 0.75], True) == 0
    assert p_value([0.5, 0.6], [0.6], True) is None


def test_varied_splits_are_compared_in_pairs():
    scores = {"a": [0.5, 0.7, 0.9], "b": [0.51, 0.712, 0.911]}
    assert table_of(scores, vary_split=True).rows[1].p_value < 0.01 < table_of(scores).rows[1].p_value
