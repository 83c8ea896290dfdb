import threading
import time
from contextlib import contextmanager

import pytest

from h2hgcn.errors import DamagedRunError, NonFiniteError, PlaceError
from h2hgcn.experiments import runner as cells
from h2hgcn.experiments.runner import Cell, Outcome, run_cell
from h2hgcn.training.folder import BusyFolderError, RunFolder

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

    monkeypatch.setattr(cells, "run_experiment", diverge)
    outcome = run_cell(Cell(FLAGS, tmp_path / "run"))
    assert (outcome.status, outcome.result, outcome.message) == ("diverged", {}, "epoch 3: the loss is nan")


def test_other_errors_are_raised(tmp_path):
    with pytest.raises(ValueError, match="no option 'dimm'"):
        run_cell(Cell(FLAGS | {"model": {"dimm": 2}}, tmp_path / "run"))


@contextmanager
def held(folder, seconds):
    """Another process trains in a folder for a while."""
    ready = threading.Event()

    def hold():
        with RunFolder(folder).locked():
            ready.set()
            time.sleep(seconds)

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    yield
    thread.join()


def test_a_folder_that_another_process_is_about_to_leave_is_waited_for(tmp_path):
    with held(tmp_path / "run", 1):
        with pytest.raises(BusyFolderError, match="another process trains in"):
            run_cell(Cell(FLAGS, tmp_path / "run", wait_seconds=0))
        assert run_cell(Cell(FLAGS, tmp_path / "run")).status == "finished"


def test_a_run_that_another_process_has_done_meanwhile_is_left_to_it(tmp_path):
    with held(tmp_path / "run", 1), pytest.raises(BusyFolderError):
        run_cell(Cell(FLAGS, tmp_path / "run", elsewhere=lambda: True))


def test_a_run_that_was_done_while_the_data_were_read_is_not_begun(tmp_path):
    with pytest.raises(BusyFolderError, match="has done the run"):
        run_cell(Cell(FLAGS, tmp_path / "run", elsewhere=lambda: True))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["checkpoint/latest.safetensors", "config.toml"])
def test_a_damaged_run_is_begun_anew_in_a_folder_of_its_own(tmp_path, name):
    whole = run_cell(Cell(FLAGS, tmp_path / "whole"))
    asked = iter([False, True])
    assert run_cell(Cell(FLAGS, tmp_path / "run"), lambda: next(asked)).status == "stopped"
    (tmp_path / "run" / name).write_bytes((tmp_path / "run" / name).read_bytes()[:5])
    with pytest.raises(DamagedRunError):
        run_cell(Cell(FLAGS, tmp_path / "run"))
    anew = run_cell(Cell(FLAGS, tmp_path / "run", scratch=True))
    assert anew.result["metrics"] == whole.result["metrics"]


def test_data_that_cannot_be_read_are_not_the_fault_of_settings(tmp_path):
    flags = FLAGS | {"data": {"dataset": "cora"}, "task": {"name": "nc"}}
    with pytest.raises(PlaceError, match="files are missing"):
        run_cell(Cell(flags, tmp_path / "run", root=tmp_path))


def test_the_score_of_what_is_not_finished_is_none():
    result = {"selection": "auc", "metrics": {"val": {"auc": 0.5}, "test": {"auc": 0.25}}}
    assert Outcome("finished", result).score("test") == 0.25
    assert Outcome("diverged", {}).score("test") is None
