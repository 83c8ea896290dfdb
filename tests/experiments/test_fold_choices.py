from dataclasses import replace

import pytest

from h2hgcn.experiments.reproduce import paper_table, record_of, runs_of, table_scores
from h2hgcn.experiments.results_page import shown
from h2hgcn.experiments.runner import Outcome

CONFIG = {"data": {}, "task": {}, "model": {}, "training": {}, "versions": {}}


@pytest.fixture
def table():
    table = paper_table("table3")
    row = replace(table.row("gin"), choices={"enzymes": [{"model": {"dim": 7}}, {"model": {"dim": 9}}]})
    return replace(table, rows=(row,))


def record(run, val, test):
    if val is None:
        return record_of(run, Outcome("diverged", {}, "the loss is nan"))
    result = {
        "selection": "accuracy", "metrics": {"val": {"accuracy": val}, "test": {"accuracy": test}}, "trivial": {},
        "best_epoch": 1, "epochs": 2, "seconds": 3.0, "parameters": 4,
    }  # fmt: skip
    return record_of(run, Outcome("finished", result, config=CONFIG))


def records_of(table, seeds, val):
    """Test scores tell the settings: 0.1, 0.2, 0.3."""
    runs = [run for run in runs_of(table, "legacy", seeds, ("enzymes",)) if run.fold in (0, 1)]
    return [record(run, val(run), 0.1 * (run.choice + 1)) for run in runs]


def test_choices_are_runs_of_their_own(table):
    runs = runs_of(table, "legacy", 1, ("enzymes",))
    assert len(runs) == len({run.key for run in runs}) == 30
    assert [run.flags["model"].get("dim") for run in runs[:3]] == [None, 7, 9]
    assert {run.fold for run in runs[:3]} == {0}
    assert [run.choice for run in runs[:3]] == [0, 1, 2]


def test_each_fold_chooses_on_its_own_validation_part(table):
    best = {0: 1, 1: 2}
    records = records_of(table, 1, lambda run: 0.9 if run.choice == best[run.fold] else 0.8)
    (score,) = table_scores(table, records, "legacy").scores.values()
    assert score.by_seed == pytest.approx({0: 20.0, 1: 30.0})
    assert shown(score) == "25.0 ± 7.1 (2 folds, 2 runs, 3 settings)"


def test_the_choice_is_by_the_mean_over_seeds(table):
    validation = {0: (0.9, 0.1), 1: (0.6, 0.6), 2: (0.5, 0.5)}
    records = records_of(table, 2, lambda run: validation[run.choice][run.seed])
    (score,) = table_scores(table, records, "legacy").scores.values()
    assert score.by_seed == pytest.approx({0: 20.0, 1: 20.0})
    assert score.runs == 4


def test_nothing_is_chosen_before_all_were_run(table):
    records = records_of(table, 1, lambda run: 0.5)
    assert not table_scores(table, records[:2], "legacy").scores
    (score,) = table_scores(table, records[:5], "legacy").scores.values()
    assert score.by_seed == pytest.approx({0: 10.0})  # the first of equals


def test_settings_that_diverge_are_the_last_choice(table):
    records = records_of(table, 2, lambda run: None if (run.choice, run.seed) == (2, 1) else 0.1 * (run.choice + 1))
    (score,) = table_scores(table, records, "legacy").scores.values()
    assert score.by_seed == pytest.approx({0: 20.0, 1: 20.0})
    lost = table_scores(table, records_of(table, 1, lambda run: None), "legacy")
    assert not lost.scores
    assert lost.lost == {("gin", "enzymes"): 2}
