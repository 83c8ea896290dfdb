"""The live line on a terminal."""

import io

import pytest
from rich.console import Console

from h2hgcn.cli import console as progress
from h2hgcn.training.loop import EpochReport, TrainingState


@pytest.fixture
def terminal(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(progress, "stderr", console)
    return console.file


def test_it_shows_epoch_loss_metric_and_time(run, files, terminal):
    result = run("train", "--edges", "my.csv", "--features", "x.csv", "--epochs", 3, "--json", "--search", "none")
    shown = terminal.getvalue()
    assert result.returncode == 0, result.stderr
    assert "3/3" in shown
    assert "loss " in shown
    assert "validation auc " in shown
    assert "0:00:00" in shown


def test_it_shows_the_metric_that_selects(run, files, terminal):
    graph = ("--edges", "my.csv", "--features", "x.csv", "--labels", "y.csv")
    run("train", *graph, "--task", "nc", "--epochs", 2, "--set", "task.selection=macro_f1")
    assert "validation macro_f1 " in terminal.getvalue()


def test_epochs_of_an_earlier_process_do_not_count_for_the_time_left(terminal):
    bar = progress.TrainingProgress(100)
    assert bar.resumed_from is None
    state = TrainingState(best={"auc": 0.5})
    bar.update(EpochReport(91, 0.5, {"auc": 0.5}, 0.1, 1.0, "auc"), state)
    assert bar.resumed_from == 90
    assert bar._progress.tasks[0].completed == 91
    assert sum(sample.completed for sample in bar._progress.tasks[0]._progress) <= 1
