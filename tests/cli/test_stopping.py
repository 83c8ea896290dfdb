"""Stopping a run and going on with it."""

import signal
import time

import pytest

from h2hgcn.cli.stopping import StopAfterEpoch

# some seconds of training, and no early end
LONG = ("train", "--edges", "my.csv", "--features", "x.csv", "--epochs", 300, "--set", "training.patience=none")




@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_epoch_and_the_same_command_goes_on(process, run, files, number):
    started = process(*LONG, "--out", "stopped")
    metrics = files / "stopped" / "metrics.jsonl"
    while started.poll() is None and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.02)
    started.send_signal(number)
    stdout, stderr = started.communicate()
    assert started.returncode == 1, stderr
    assert "stopping: when this epoch is over" in stderr
    epoch = len(metrics.read_text().splitlines())
    assert f"stopped: after epoch {epoch}; the same command goes on from there" in stderr
    assert stdout == ""
    assert "is not finished; run its command again" in run("evaluate", "stopped").stderr
    again = run(*LONG, "--out", "stopped")
    assert again.returncode == 0, again.stderr
    assert f"going on from epoch {epoch}" in again.stdout
    assert len(metrics.read_text().splitlines()) == 300


def test_a_run_that_was_stopped_ends_as_one_that_was_not(run, files, monkeypatch):
    command = ("train", "--edges", "my.csv", "--features", "x.csv", "--epochs", 4)
    asked = iter([False, False, True])
    with monkeypatch.context() as patch:
        patch.setattr(StopAfterEpoch, "wanted", lambda self: next(asked))
        assert run(*command, "--out", "stopped").returncode == 1
    assert "going on from epoch 2" in run(*command, "--out", "stopped").stdout
    assert run(*command, "--out", "whole").returncode == 0
    weights = [(files / folder / "model.safetensors").read_bytes() for folder in ("stopped", "whole")]
    assert weights[0] == weights[1]


def test_a_second_signal_stops_at_once():
    before = signal.getsignal(signal.SIGINT)
    with StopAfterEpoch() as stop:
        assert not stop.wanted()
        signal.raise_signal(signal.SIGINT)
        assert stop.wanted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_is_stopped_at_once_keeps_its_checkpoint(run, files, monkeypatch):
    def stop(self):
        raise KeyboardInterrupt

    command = ("train", "--edges", "my.csv", "--features", "x.csv", "--epochs", 4, "--out", "r")
    monkeypatch.setattr(StopAfterEpoch, "wanted", stop)
    result = run(*command)
    assert result.returncode == 1
    assert "stopped: at once; the same command goes on from the last checkpoint" in result.stderr
    monkeypatch.undo()
    assert run(*command).returncode == 0
