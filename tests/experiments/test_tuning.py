import json

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from h2hgcn.errors import DataError, PlaceError
from h2hgcn.experiments.config import read_experiment
from h2hgcn.experiments.presets import merged
from h2hgcn.experiments.runner import Outcome
from h2hgcn.experiments.tune import Tuning, open_study, write_settings
from h2hgcn.training.folder import BusyFolderError

SPACE = {
    "model.dim": CategoricalDistribution((8, 16)),
    "model.stem_activation": CategoricalDistribution(("none", "relu")),
    "model.num_layers": IntDistribution(1, 3),
    "training.lr": FloatDistribution(0.001, 0.1, log=True),
}


def score_of(cell):
    """Best at a learning rate of 0.01 and three layers; the test score is the opposite, so that a glance would show."""
    experiment = read_experiment(cell.flags)
    value = experiment.model_options.get("num_layers", 2) / 3 - abs(experiment.settings.lr - 0.01)
    return Outcome("finished", {"selection": "auc", "metrics": {"val": {"auc": value}, "test": {"auc": -value}}})


def carry_out(tuning, trials, stop_after=None, outcome=score_of):
    """Runs cells one by one, and leaves off without a word where a process would have been killed."""
    cells = []
    with open_study(tuning) as study:
        for number, cell in enumerate(study.cells(trials)):
            if number == stop_after:
                break
            cells.append(cell)
            study.finish(cell, outcome(cell))
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
        assert (tmp_path / "best.toml").read_text().startswith("# chosen\n# by a test\nseed = 0\n\n[data]\n")
        by_file = read_experiment({}, tmp_path / "best.toml")
        assert by_file.digest == read_experiment(merged(tuning.flags, result.settings)).digest
        assert by_file.settings.epochs == 7


def test_folders_of_other_studies_and_of_other_processes(tmp_path):
    carry_out(Tuning({}, SPACE, tmp_path), 1)
    with pytest.raises(DataError, match="holds a study with other settings;"):
        carry_out(Tuning({"training": {"epochs": 7}}, SPACE, tmp_path), 1)
    with pytest.raises(DataError, match="holds a study with another search space;"):
        carry_out(Tuning({}, SPACE | {"model.dim": CategoricalDistribution((2,))}, tmp_path), 1)
    with pytest.raises(DataError, match="holds a study with other data;"):
        carry_out(Tuning({}, SPACE, tmp_path, fingerprint="of a file that was changed"), 1)
    with pytest.raises(DataError, match="holds a study with other seeds;"):
        carry_out(Tuning({}, SPACE, tmp_path, num_seeds=2), 1)
    tuning = Tuning({}, SPACE, tmp_path)
    with open_study(tuning), pytest.raises(DataError, match="another process tunes in"), open_study(tuning):
        pass


def test_no_test_score_is_kept(tmp_path):
    carry_out(Tuning({}, SPACE, tmp_path), 5)
    for line in (tmp_path / "study.journal").read_text().splitlines():
        values = json.loads(line).get("values")
        assert values is None or values[0] > -0.1  # test scores are below


def test_killed_after_any_line_of_the_journal_a_study_proposes_the_same(tmp_path):
    whole = settings_of(carry_out(Tuning({}, SPACE, tmp_path / "whole"), 3)[1])
    lines = (tmp_path / "whole" / "study.journal").read_bytes().splitlines(keepends=True)
    for count in range(len(lines) + 1):
        folder = tmp_path / f"{count}"
        folder.mkdir()
        (folder / "study.journal").write_bytes(b"".join(lines[:count]) + b'{"op')
        results, cells = carry_out(Tuning({}, SPACE, folder), 3)
        assert sorted(result.number for result in results) == [0, 1, 2]
        assert settings_of(cells) == whole[len(whole) - len(cells) :]


def test_a_journal_that_lacks_nothing_but_its_last_line_end_is_whole(tmp_path):
    tuning = Tuning({}, SPACE, tmp_path)
    carry_out(tuning, 3)
    journal = tmp_path / "study.journal"
    written = journal.read_bytes()
    journal.write_bytes(written.rstrip(b"\n"))
    assert carry_out(tuning, 3)[1] == []
    assert journal.read_bytes().startswith(written)


def test_the_first_trial_draws_nothing(tmp_path):
    """The learning rate of the preset lies outside the space, and stays."""
    tuning = Tuning(
        {}, {"training.lr": FloatDistribution(0.5, 0.9), "model.num_layers": IntDistribution(1, 3)}, tmp_path
    )
    results, cells = carry_out(tuning, 2)
    assert "lr" not in cells[0].flags.get("training", {})
    assert read_experiment(cells[0].flags).digest == tuning.base.digest
    assert cells[1].flags["training"]["lr"] >= 0.5
    assert len(results) == 2


def test_seeds_of_a_trial_that_failed(tmp_path):
    """A sibling that still runs keeps its folder, and the others do not begin."""
    folder = tmp_path / "unfinished" / "trial0"
    with open_study(Tuning({}, SPACE, tmp_path, num_seeds=4)) as study:
        cells = study.cells(1)
        first, second = next(cells), next(cells)
        for cell in (first, second):
            cell.folder.mkdir(parents=True)
        assert study.finish(first, Outcome("diverged", {}, "the loss is nan")).why == "the loss is nan"
        assert (folder / "seed1").exists()
        assert list(cells) == []
        assert study.finish(second, Outcome("diverged", {}, "the loss is nan")) is None
        assert not folder.exists()


def test_folders_of_trials_that_are_over_are_removed(tmp_path):
    carry_out(Tuning({}, SPACE, tmp_path), 1)
    remains = tmp_path / "unfinished" / "trial0" / "seed0"
    remains.mkdir(parents=True)
    carry_out(Tuning({}, SPACE, tmp_path), 2)
    assert not remains.exists()


def test_errors_of_settings_fail_a_trial_and_others_end_the_study(tmp_path):
    def outcome(error):
        return lambda cell: Outcome("failed", {}, str(error), error=error)

    results, _ = carry_out(Tuning({}, SPACE, tmp_path / "a"), 2, outcome=outcome(DataError("no such heads")))
    assert [result.score for result in results] == [None, None]
    for error in (OSError("no space"), BusyFolderError("another process"), PlaceError("files are missing")):
        with pytest.raises(type(error)):
            carry_out(Tuning({}, SPACE, tmp_path / "b"), 2, outcome=outcome(error))
    assert len(carry_out(Tuning({}, SPACE, tmp_path / "b"), 2)[1]) == 2


@pytest.mark.parametrize("damage", [b"{]\n", b"\xff\xfe\n", b"3\n", b'{"op_code": 4}\n'])
def test_a_damaged_journal_is_told(tmp_path, damage):
    carry_out(Tuning({}, SPACE, tmp_path), 1)
    path = tmp_path / "study.journal"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], damage, *lines[2:]]))
    with pytest.raises(DataError, match=r"study.journal.* damaged.*restore it from a copy"):
        carry_out(Tuning({}, SPACE, tmp_path), 2)


def test_large_seeds_and_their_samplers(tmp_path):
    first, second = (carry_out(Tuning({"seed": seed}, SPACE, tmp_path / f"{seed}"), 2)[1] for seed in (0, 10**6))
    assert first[1].flags["training"]["lr"] != second[1].flags["training"]["lr"]
