"""``h2hgcn tune``: a study in a folder, settings in a file, and what cannot be tuned."""

import json
import signal
import sys
import time
import tomllib

import pytest

GRAPH = ("--edges", "my.csv", "--features", "x.csv")
COMMAND = ("tune", *GRAPH, "--trials", 3, "--epochs", 3)


def test_settings_are_chosen_and_trained_with(run, files):
    result = run(*COMMAND, "--jobs", 2)
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("h2h-gcn for lp on my, clean split, 3 trials of 1 run each, to runs/tune-my-lp")
    assert "the best of 3 trials" in result.stdout
    assert "validation auc" in result.stdout
    trials = json.loads(run(*COMMAND, "--json").stdout)  # nothing is run again
    assert sorted(trial["trial"] for trial in trials) == [0, 1, 2]
    best = files / "runs" / "tune-my-lp-h2h-gcn" / "best.toml"
    assert f"validation auc {trials[0]['validation']:.4f}, the best of 3 trials, seed 0" in best.read_text()
    trained = json.loads(run("train", "--config", best, "--out", "trained", "--json").stdout)
    assert trained["metrics"]["val"]["auc"] == trials[0]["validation"]
    assert len(json.loads(run(*COMMAND[:-4], "--trials", 4, "--epochs", 3, "--json").stdout)) == 4


def test_what_flags_say_is_not_searched(run, files):
    (files / "space.toml").write_text("[model]\ndim = [2, 3]\nnum_layers = [1, 2]\n")
    command = ("tune", *GRAPH, "--space", "space.toml", "--trials", 2, "--epochs", 2, "--seeds", 2, "--out", "t")
    told = json.loads(run(*command, "--dim", 5, "--json").stdout)
    assert all(set(trial["settings"]["model"]) == {"num_layers"} for trial in told)
    settings = tomllib.loads((files / "t" / "best.toml").read_text())
    assert settings["model"]["dim"] == 5


def test_a_study_that_is_stopped_goes_on(process, run, files):
    long = (*COMMAND[:-2], "--epochs", 10**7, "--set", "training.patience=none", "--jobs", 1)
    started = process(*long)
    trial = files / "runs" / "tune-my-lp-h2h-gcn" / "unfinished" / "trial0" / "seed0" / "metrics.jsonl"
    while started.poll() is None and not trial.exists():
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    _, stderr = started.communicate()
    assert started.returncode == 1
    assert "stopped: 0 of 3 trials; the same command goes on" in stderr
    assert trial.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "hgnc"), "'hgnc' is not a model"),
        (("--space", "none.toml"), "none.toml is not there"),
        (("--task", "nc"), "no labels"),
        (("--set", "model.heads=2"), "has no option 'heads'"),
    ],
)
def test_what_cannot_be_tuned(run, files, arguments, message):
    result = run("tune", *GRAPH, *arguments)
    assert result.returncode == 2
    assert message in result.stderr


def test_without_optuna(run, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = run(*COMMAND)
    assert result.returncode == 2
    assert "pip install h2hgcn[tune]" in result.stderr
