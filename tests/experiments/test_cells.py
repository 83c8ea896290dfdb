import pytest

from h2hgcn.errors import NonFiniteError
from h2hgcn.experiments import cells
from h2hgcn.experiments.cells import Cell, run_cell

FLAGS = {"data": {"dataset": "disease"}, "model": {"dim": 2}, "training": {"epochs": 2}}


def test_a_run_is_trained_and_stopped_and_loaded(tmp_path):
    cell = Cell(FLAGS, tmp_path / "run")
    assert run_cell(cell, lambda: True).status == "stopped"
    finished = run_cell(cell)
    assert finished.status == "finished"
    assert finished.result["epochs"] == 2
    assert run_cell(cell).result == finished.result


def test_numbers_that_go_bad_are_an_outcome(tmp_path, monkeypatch):
    def diverge(*_, **__):
        raise NonFiniteError("epoch 3: the loss is nan")

    monkeypatch.setattr(cells, "fit", diverge)
    outcome = run_cell(Cell(FLAGS, tmp_path / "run"))
    assert (outcome.status, outcome.result, outcome.message) == ("diverged", {}, "epoch 3: the loss is nan")


def test_other_errors_are_raised(tmp_path):
    with pytest.raises(ValueError, match="no option 'dimm'"):
        run_cell(Cell(FLAGS | {"model": {"dimm": 2}}, tmp_path / "run"))
