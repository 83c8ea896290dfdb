import sys

import pytest
from runs import small_fit
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from h2hgcn.errors import DataError
from h2hgcn.training.folder import RunFolder


def scalars(folder, name):
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(name)]


def test_curves_can_be_read(tmp_path):
    run = small_fit(folder=tmp_path, tensorboard=True, settings={"eval_every": 2, "schedule": "cosine"})
    for name, key in (("train/loss", "loss"), ("train/lr", "lr")):
        assert scalars(tmp_path, name) == [(row["epoch"], pytest.approx(row[key])) for row in run.history]
    validated = [(row["epoch"], row["val"]) for row in run.history if "val" in row]
    assert [epoch for epoch, _ in validated] == [2, 4]
    for metric in ("auc", "ap", "mrr"):
        assert scalars(tmp_path, f"val/{metric}") == [(epoch, pytest.approx(val[metric])) for epoch, val in validated]


def test_a_run_that_goes_on_repeats_no_step(tmp_path):
    """Epochs 3 and 4 were drawn, but no checkpoint knows of them."""

    def kill(report, state):
        if report.epoch == 4:
            raise KeyboardInterrupt

    folder = RunFolder(tmp_path)
    small_fit(folder=tmp_path, epochs=6, tensorboard=True, should_stop=lambda: len(folder.read_history()) == 2)
    with pytest.raises(KeyboardInterrupt):
        small_fit(folder=tmp_path, epochs=6, tensorboard=True, on_epoch=kill, settings={"checkpoint_seconds": 1000})
    assert len(scalars(tmp_path, "train/loss")) == len(folder.read_history()) == 4
    run = small_fit(folder=tmp_path, epochs=6, tensorboard=True)
    assert scalars(tmp_path, "train/loss") == [(row["epoch"], pytest.approx(row["loss"])) for row in run.history]


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    folder = tmp_path / "run"
    with pytest.raises(DataError, match=r"pip install 'h2hgcn\[tensorboard\]'"):
        small_fit(folder=folder, tensorboard=True)
    assert not folder.exists()
    assert small_fit(folder=folder).finished
