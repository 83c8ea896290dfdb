from types import SimpleNamespace

import pytest
from runs import small_fit

from h2hgcn.training.doubts import distrust_of, doubts_about


def problem(val=200, test=200, task="lp"):
    return SimpleNamespace(split=SimpleNamespace(val=[0] * val, test=[0] * test), task=SimpleNamespace(name=task))


def result(test=0.9, trivial=0.6, best_epoch=7, selection="auc", val=0.9):
    return {
        "selection": selection,
        "metrics": {"val": {selection: val}, "test": {selection: test}},
        "trivial": {"feature distance": trivial, "degree product": 0.1},
        "best_epoch": best_epoch,
        "epochs": 9,
    }


def test_a_good_result_needs_no_remark():
    assert doubts_about(result(), problem()) == []


@pytest.mark.parametrize(
    ("one", "other", "doubt"),
    [
        (
            result(test=0.55),
            problem(),
            "feature distance reaches a test auc of 0.6000 without learning, the model 0.55",
        ),
        (result(test=0.4, trivial=0.3), problem(), "a test auc of 0.4000 is below chance"),
        (result(val=0.3), problem(), "a validation auc of 0.3000 is below chance"),
        (result(val=0.3, test=0.4, trivial=0.2), problem(), "a validation auc of 0.3000 and a test auc of 0.4000 are"),
        (result(), problem(val=14), "the validation part has 14 links only"),
        (result(), problem(test=3, task="gc"), "the test part has 3 graphs only"),
        (result(best_epoch=1), problem(), "the first epoch was the best"),
    ],
)
def test_doubts(one, other, doubt):
    (found,) = doubts_about(one, other)
    assert found.startswith(doubt)


def test_below_chance_is_said_also_where_a_trivial_score_is_better():
    poor = result(test=0.08, trivial=0.5)
    doubts = doubts_about(poor, problem())
    assert [doubt.split(" ")[0] for doubt in doubts] == ["feature", "a"]
    assert distrust_of(poor | {"doubts": [*doubts, "the test part has 3 links only: its metrics are coarse"]}) == doubts


def test_a_run_carries_its_doubts():
    run = small_fit()
    assert run.result["doubts"] == doubts_about(run.result, run.problem)
    assert "the test part has" in " ".join(run.result["doubts"])
    assert repr(run).startswith("Run(h2h-gcn for lp: val auc 0.")
