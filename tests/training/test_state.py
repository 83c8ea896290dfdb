"""Runs that are killed, stopped or out of disk, and go on as if nothing had been."""

import json
import multiprocessing
import os
import random
import signal
import stat
import time
import tomllib
from errno import ENOSPC

import pytest
import torch
from runs import TASKS, change, curve, last_weights, same_weights, small_fit, train_slowly

from h2hgcn.cli.console import StopAfterEpoch
from h2hgcn.errors import DataError
from h2hgcn.files import read_tensors, write_tensors
from h2hgcn.training import load_run
from h2hgcn.training.folder import RunFolder

EPOCHS = 40
CHECKPOINT = "checkpoint/latest.safetensors"


def epochs_done(folder):
    file = RunFolder(folder).metrics
    return file.read_bytes().count(b"\n") if file.exists() else 0


def wait_for(condition, child):
    deadline = time.monotonic() + 60
    while not condition() and child.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def assert_all_files_are_whole(folder):
    for file in folder.rglob("*.safetensors"):
        if not file.name.startswith("."):
            read_tensors(file)
    for file in folder.glob("*.toml"):
        tomllib.loads(file.read_text())
    for file in folder.glob("*.json"):
        json.loads(file.read_text())


def test_killed_when_it_gets_more_epochs_and_the_same_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    children = multiprocessing.get_context("forkserver")
    children.set_forkserver_preload(["h2hgcn.training"])
    settings = {"checkpoint_seconds": 0.05}
    small_fit(folder=tmp_path, epochs=5, settings=settings)
    child = children.Process(target=train_slowly, args=(tmp_path, EPOCHS))
    child.start()
    wait_for(lambda: epochs_done(tmp_path) > 8, child)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert_all_files_are_whole(tmp_path)
    with pytest.raises(DataError, match="not finished"):  # the old result does not pass for that of more epochs
        load_run(tmp_path)
    run = small_fit(folder=tmp_path, epochs=EPOCHS, settings=settings)
    assert same_weights(run, small_fit(epochs=EPOCHS))
    assert [row["epoch"] for row in run.history] == [*range(1, EPOCHS + 1)]


def test_killed_ten_times_and_the_same_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    children = multiprocessing.get_context("forkserver")  # they begin with everything imported, which takes seconds
    children.set_forkserver_preload(["h2hgcn.training"])
    settings = {"checkpoint_seconds": 0.05}  # those of the children, since files say them
    expected = small_fit(epochs=EPOCHS, folder=tmp_path / "straight", settings=settings)
    folder = tmp_path / "killed"
    moments = random.Random(0)
    for kill in range(10):
        child = children.Process(target=train_slowly, args=(folder, EPOCHS))
        child.start()
        if kill == 9:  # in the midst of what is written at the end
            wait_for(lambda: epochs_done(folder) == EPOCHS, child)
        elif kill:
            before = epochs_done(folder)
            wait_for(lambda before=before: epochs_done(folder) > before, child)
        time.sleep(moments.uniform(0, 0.1))
        assert child.is_alive() or kill == 9
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert_all_files_are_whole(folder)
    assert epochs_done(folder) > 0
    run = small_fit(epochs=EPOCHS, folder=folder, settings=settings)
    files = [RunFolder(path).model.read_bytes() for path in (tmp_path / "straight", folder)]
    assert files[0] == files[1]
    assert curve(run) == curve(expected)
    assert curve(load_run(folder)) == curve(expected)
    assert run.metrics == expected.metrics
    assert not list(folder.rglob("*.part"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("task", TASKS)
def test_a_run_that_is_asked_to_stop_goes_on_later(task, number, tmp_path):
    settings = {"stiefel_method": "radam", "checkpoint_seconds": 1000, "schedule": "cosine"}
    expected = small_fit(task, epochs=6, settings=settings)
    with StopAfterEpoch() as stop:
        run = small_fit(
            task, epochs=6, settings=settings, folder=tmp_path, should_stop=stop.wanted,
            on_epoch=lambda report, state: report.epoch == 2 and os.kill(os.getpid(), number),
        )  # fmt: skip
    assert not run.finished
    assert run.result["epochs"] == len(run.history) == 2
    assert "test" not in run.metrics
    with pytest.raises(DataError, match="not finished"):
        load_run(tmp_path)
    with pytest.raises(DataError, match="not finished"):
        run.save(tmp_path / "copy")
    resumed = small_fit(task, epochs=6, settings=settings | {"checkpoint_seconds": 0}, folder=tmp_path)
    assert same_weights(resumed, expected)
    assert curve(resumed) == curve(expected)


def test_stopped_before_the_first_epoch_again_and_again(tmp_path):
    """A line that a killed run wrote after its checkpoint must not be counted by one that adds nothing."""
    small_fit(epochs=6, folder=tmp_path, should_stop=lambda: epochs_done(tmp_path) == 2)
    with RunFolder(tmp_path).metrics.open("ab") as file:
        file.write(b'{"epoch": 3, "loss"')
    for _ in range(2):
        assert not small_fit(epochs=6, folder=tmp_path, should_stop=lambda: True).finished
    assert curve(small_fit(epochs=6, folder=tmp_path)) == curve(small_fit(epochs=6)) == curve(load_run(tmp_path))
    assert not small_fit(epochs=6, should_stop=lambda: True).metrics["val"]


class FullDisk:
    """A disk on which nothing more can be written from the ``last + 1``-th file on."""

    def __init__(self, last):
        self.left = last
        self.fsync = os.fsync

    def __call__(self, file):
        self.left -= not stat.S_ISDIR(os.fstat(file).st_mode)
        if self.left < 0:
            raise OSError(ENOSPC, "No space left on device")
        self.fsync(file)


# the configuration, the graph, the empty history, the first lines and checkpoint, some later ones, model, embeddings,
# report, result
@pytest.mark.parametrize("last", [0, 1, 2, 3, 4, 5, 8, 11, 13, 14, 15, 16])
def test_a_full_disk_costs_nothing_but_time(last, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", FullDisk(last))
        with pytest.raises(OSError, match="No space left"):
            small_fit(folder=tmp_path / "run")
    assert_all_files_are_whole(tmp_path / "run")
    assert not list(tmp_path.rglob("*.part"))
    assert same_weights(small_fit(folder=tmp_path / "run"), small_fit())


def test_a_run_needs_seventeen_writes(tmp_path, monkeypatch):
    """The number that the test before counts on."""
    disk = FullDisk(100)
    monkeypatch.setattr(os, "fsync", disk)
    small_fit(folder=tmp_path)
    assert disk.left == 83


def shorter(tensor):
    return tensor.reshape(-1)[:1]


def double(tensor):
    return tensor.double()


def not_finite(tensor):
    return tensor * torch.nan


def edit_all(tensors, ending, edit):
    for name in [name for name in tensors if name.endswith(f".{ending}")]:
        tensors[name] = edit(tensors[name])


def rewrite(path, edit):
    tensors, about = read_tensors(path)
    edit(tensors, about)
    write_tensors(path, tensors, about)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: change(path, lambda data: data[:-5]), "damaged"),
        (lambda path: change(path, lambda data: data[:50]), "damaged"),
        (lambda path: change(path, lambda data: b""), "damaged"),
        (lambda path: rewrite(path, lambda tensors, about: tensors.pop("model.encoder.stem.bias")), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: tensors.pop("best.encoder.stem.bias")), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: about.clear()), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: about["state"].update(more=1)), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: about["numbers"].update(x=1)), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: about["state"].update(epoch="2")), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: edit_all(tensors, "exp_avg", shorter)), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: edit_all(tensors, "exp_avg_sq", double)), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: edit_all(tensors, "exp_avg", not_finite)), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: edit_all(tensors, "step", torch.zeros_like)), "another mod"),
        (lambda path: rewrite(path, lambda tensors, about: edit_all(tensors, "bias", double)), "another model"),
        (lambda path: rewrite(path, lambda tensors, about: edit_all(tensors, "bias", not_finite)), "holds NaN"),
        (lambda path: rewrite(path, lambda tensors, about: tensors.pop("optimizer.0.0.exp_avg")), "another model"),
        (
            lambda path: rewrite(path, lambda tensors, about: tensors.update({"optimizer.9.0.step": torch.ones(())})),
            "another model",
        ),
        (lambda path: change(path, lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]), "damaged"),
    ],
)
def test_a_checkpoint_that_cannot_be_used(spoil, message, tmp_path):
    small_fit(folder=tmp_path, should_stop=lambda: epochs_done(tmp_path) == 2)
    spoil(tmp_path / CHECKPOINT)
    kept = (tmp_path / CHECKPOINT).read_bytes()
    with pytest.raises(DataError, match=f"latest.safetensors is .*{message}.*force"):
        small_fit(folder=tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == kept
    assert same_weights(small_fit(folder=tmp_path, force=True), small_fit())


def test_a_checkpoint_is_of_one_moment(tmp_path):
    small_fit(folder=tmp_path, epochs=5, settings={"lr": 0.05})
    tensors, about = read_tensors(tmp_path / CHECKPOINT)
    assert about["state"]["epoch"] == 5
    best = {name: value for name, value in tensors.items() if name.startswith("best.")}
    weights = load_run(tmp_path).model.state_dict()
    assert all(torch.equal(value, weights[name.removeprefix("best.")]) for name, value in best.items())
    assert last_weights(tmp_path).keys() == weights.keys()
