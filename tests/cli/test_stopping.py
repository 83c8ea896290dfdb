"""Stopping a run and resuming it."""

import json
import signal
import time
import tomllib

import pytest

from h2hgcn.cli.console import StopAfterEpoch

GRAPH = ("--edges", "my.csv", "--features", "x.csv", "--search", "none")


def stop_after(monkeypatch, epochs):
    """As if a signal had come in the last of so many epochs."""
    answers = iter([False] * epochs + [True])
    monkeypatch.setattr(StopAfterEpoch, "wanted", lambda self: next(answers))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_epoch_and_the_same_command_goes_on(process, run, files, monkeypatch, number):
    endless = ("train", *GRAPH, "--epochs", 10**9, "--set", "training.patience=none", "--out", "r", "--json")
    started = process(*endless)
    metrics = files / "r" / "metrics.jsonl"
    while started.poll() is None and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.02)
    started.send_signal(number)
    stdout, stderr = started.communicate()
    epoch = json.loads(stdout)["epochs"]
    assert started.returncode == 1
    assert epoch == len(metrics.read_text().splitlines())
    assert "stopping: after this epoch; a second Ctrl-C stops now" in stderr
    assert f"stopped: after epoch {epoch}; the same command resumes from the last checkpoint" in stderr
    assert "is not finished; run its command again" in run("evaluate", "r").stderr
    stop_after(monkeypatch, 2)
    resumed = run(*endless)
    assert f"resuming after epoch {epoch}\n" in resumed.stderr
    again = json.loads(resumed.stdout)
    assert (again["resumed_from"], again["epochs"]) == (epoch, epoch + 2)


def test_a_run_that_was_stopped_ends_as_one_that_was_not(run, files, monkeypatch):
    command = ("train", *GRAPH, "--epochs", 4)
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        assert run(*command, "--out", "stopped").returncode == 1
    assert "resumed from epoch 2" in run(*command, "--out", "stopped").stdout
    assert run(*command, "--out", "whole").returncode == 0
    weights = [(files / folder / "model.safetensors").read_bytes() for folder in ("stopped", "whole")]
    assert weights[0] == weights[1]


def test_a_search_that_is_killed_ends_with_the_same_choice_and_weights(process, run, files):
    command = ("train", "--edges", "my.csv", "--search", "fast", "--epochs", 20, "--set", "model.dim=4")
    killed = process(*command, "--out", "killed")
    search = files / "killed" / ".search"
    while killed.poll() is None and len(list(search.glob("*/*.json"))) < 2:
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert list(search.glob("*/*.json"))
    assert not (files / "killed" / "config.toml").exists()
    assert run(*command, "--out", "killed").returncode == 0
    assert run(*command, "--out", "whole").returncode == 0
    choices = [tomllib.loads((files / name / "config.toml").read_text())["search"] for name in ("killed", "whole")]
    assert choices[0] == choices[1]
    weights = [(files / name / "model.safetensors").read_bytes() for name in ("killed", "whole")]
    assert weights[0] == weights[1]


def test_a_second_signal_stops_at_once():
    before = signal.getsignal(signal.SIGINT)
    with StopAfterEpoch() as stop:
        assert not stop.wanted()
        signal.raise_signal(signal.SIGINT)
        assert stop.wanted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)  # what ends now is not disturbed
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_is_stopped_at_once_keeps_its_checkpoint(run, files, monkeypatch):
    def stop(self):
        raise KeyboardInterrupt

    command = ("train", *GRAPH, "--epochs", 4, "--out", "r")
    monkeypatch.setattr(StopAfterEpoch, "wanted", stop)
    result = run(*command)
    assert result.returncode == 1
    assert "stopped: at once; the same command resumes from the last checkpoint" in result.stderr
    monkeypatch.undo()
    assert run(*command).returncode == 0


def test_force_would_begin_anew_so_it_is_left_out_to_go_on(run, files, monkeypatch):
    stop_after(monkeypatch, 2)
    result = run("train", *GRAPH, "--epochs", 9, "--out", "r", "--force")
    assert "after epoch 2; the same command without --force resumes from the last checkpoint" in result.stderr
