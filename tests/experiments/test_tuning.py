import json

import pytest

from h2hgcn.errors import DataError
from h2hgcn.experiments.cells import Outcome
from h2hgcn.experiments.config import read_experiment
from h2hgcn.experiments.sections import merged
from h2hgcn.experiments.spaces import Choice, Range
from h2hgcn.experiments.tuning import Tuning, open_study, write_settings

SPACE = {
    ("model", "dim"): Choice((8, 16)),
    ("model", "stem_activation"): Choice(("none", "relu")),
    ("model", "num_layers"): Range(1, 3),
    ("training", "lr"): Range(0.001, 0.1, log=True),
}


def score_of(cell):
    """Best at a learning rate of 0.01 and three layers; the test score is the opposite, so that a glance would show."""
    experiment = read_experiment(cell.flags)
    value = experiment.model_options["num_layers"] / 3 - abs(experiment.settings.lr - 0.01)
    return Outcome("finished", {"selection": "auc", "metrics": {"val": {"auc": value}, "test": {"auc": -value}}})


def carry_out(tuning, trials, stop_after=None, outcome=score_of):
    """Runs cells one by one, and leaves off without a word where a process would have been killed."""
    cells = []
    with open_study(tuning) as study:
        for number, cell in enumerate(study.cells(trials)):
            if number == stop_after:
                break
            cells.append(cell)
            study.finish(number, outcome(cell))
        return study.results, cells


def settings_of(cells):
    return [{name: cell.flags[name] for name in ("model", "training", "seed")} for cell in cells]


def test_the_first_trial_has_the_settings_before_and_the_best_comes_first(tmp_path):
    tuning = Tuning({}, SPACE, tmp_path / "study")
    results, cells = carry_out(tuning, 15)
    assert cells[0].flags["training"]["lr"] == 0.01  # of the preset
    assert cells[0].flags["model"]["stem_activation"] == "none"
    assert len(results) == 15
    scores = [result.score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert results[0].settings["model"]["num_layers"] == 3
    assert not list((tmp_path / "study" / "unfinished").glob("*"))


def test_a_study_that_was_killed_goes_on_as_if_nothing_had_happened(tmp_path):
    whole = carry_out(Tuning({}, SPACE, tmp_path / "whole"), 14)[1]
    broken = Tuning({}, SPACE, tmp_path / "broken")
    parts = []
    for stop_after in (3, 9, None):
        journal = tmp_path / "broken" / "study.journal"
        if journal.exists():
            journal.write_bytes(journal.read_bytes() + b'{"op_code": 4, "wor')
            journal.with_name("study.journal.lock").touch()
        parts += carry_out(broken, 14, stop_after)[1]
    assert settings_of(parts) == settings_of(whole)
    assert carry_out(broken, 14)[1] == []
    assert len(carry_out(broken, 16)[0]) == 16


def test_seeds_are_averaged_and_bad_numbers_are_no_scores(tmp_path):
    def outcome(cell):
        if cell.flags["model"]["num_layers"] == 2:
            return Outcome("diverged", {}, "the loss is nan")
        score = score_of(cell)
        score.result["metrics"]["val"]["auc"] += cell.flags["seed"]
        return score

    results, cells = carry_out(Tuning({"seed": 5}, SPACE, tmp_path, num_seeds=2), 8, outcome=outcome)
    assert {cell.flags["seed"] for cell in cells} == {5, 6}
    for result in results:
        if result.settings["model"]["num_layers"] == 2:
            assert result.score is None
        else:
            expected = result.settings["model"]["num_layers"] / 3 - abs(result.settings["training"]["lr"] - 0.01) + 5.5
            assert result.score == pytest.approx(expected)
    assert results[-1].score is None


def test_the_best_settings_as_a_file_are_those_of_the_trial(tmp_path):
    tuning = Tuning({"training": {"epochs": 7}}, SPACE, tmp_path)
    results, _ = carry_out(tuning, 12)
    for result in results:
        write_settings(tmp_path / "best.toml", tuning, result, "chosen\nby a test")
        assert (tmp_path / "best.toml").read_text().startswith("# chosen\n# by a test\n[data]\n")
        by_file = read_experiment({}, tmp_path / "best.toml")
        assert by_file.digest == read_experiment(merged(tuning.flags, result.settings)).digest
        assert by_file.settings.epochs == 7


def test_folders_of_other_studies_and_of_other_processes(tmp_path):
    carry_out(Tuning({}, SPACE, tmp_path), 1)
    with pytest.raises(DataError, match="holds a study of other settings"):
        carry_out(Tuning({"training": {"epochs": 7}}, SPACE, tmp_path), 1)
    with pytest.raises(DataError, match="holds a study of other settings"):
        carry_out(Tuning({}, SPACE | {("model", "dim"): Choice((2,))}, tmp_path), 1)
    tuning = Tuning({}, SPACE, tmp_path)
    with open_study(tuning), pytest.raises(DataError, match="another process tunes in"), open_study(tuning):
        pass


def test_no_test_score_is_kept(tmp_path):
    carry_out(Tuning({}, SPACE, tmp_path), 5)
    for line in (tmp_path / "study.journal").read_text().splitlines():
        values = json.loads(line).get("values")
        assert values is None or values[0] > -0.1  # test scores are below
