"""``h2hgcn tune``: a study in a folder, settings in a file, and what cannot be tuned."""

import json
import signal
import sys
import time
import tomllib

import pytest

from h2hgcn.experiments.runner import Outcome

GRAPH = ("--edges", "my.csv", "--features", "x.csv")
COMMAND = ("tune", *GRAPH, "--trials", 3, "--epochs", 3)


def test_settings_are_chosen_and_trained_with(run, files, request):
    result = run(*COMMAND, "--jobs", 2)
    request.getfixturevalue("inline")  # one look at processes is enough
    assert result.returncode == 0, result.stderr
    chosen, started = result.stderr.splitlines()[:2]
    assert chosen.startswith("settings: ")
    assert started.startswith("h2h-gcn for lp on my, clean split, 3 trials of 1 run each, to runs/tune-my-lp")
    assert "the best of 3 trials" in result.stdout
    assert "validation auc" in result.stdout
    told = json.loads(run(*COMMAND, "--json").stdout)  # nothing is run again
    assert told["metric"] == "auc"
    trials = told["trials"]
    assert sorted(trial["trial"] for trial in trials) == [0, 1, 2]
    best = files / "runs" / "tune-my-lp-h2h-gcn" / "best.toml"
    assert f"validation auc {trials[0]['validation']:.4f}, the best of 3 trials, seed 0" in best.read_text()
    trained = json.loads(run("train", "--config", best, "--out", "trained", "--json").stdout)
    assert trained["metrics"]["val"]["auc"] == trials[0]["validation"]
    assert len(json.loads(run(*COMMAND[:-4], "--trials", 4, "--epochs", 3, "--json").stdout)["trials"]) == 4


def test_what_flags_say_is_not_searched(run, files, inline):
    (files / "space.toml").write_text("[model]\ndim = [2, 3]\nnum_layers = [1, 2]\n")
    command = ("tune", *GRAPH, "--space", "space.toml", "--trials", 2, "--epochs", 2, "--seeds", 2, "--out", "t")
    told = json.loads(run(*command, "--dim", 5, "--json").stdout)
    assert all(set(trial["settings"]["model"]) == {"num_layers"} for trial in told["trials"])
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
    assert "stopped: 0 of 3 trials; the same command resumes" in stderr
    assert trial.exists()


def test_the_settings_of_the_first_trial_are_searched_once(run, files, inline, monkeypatch):
    assert run(*COMMAND, "--out", "t").returncode == 0
    assert not list((files / "t" / ".start").rglob("*.safetensors"))
    monkeypatch.setattr("h2hgcn.training.race._advance", None)
    again = run(*COMMAND[:-4], "--trials", 4, "--epochs", 3, "--out", "t", "--json")
    assert again.returncode == 0, again.stderr
    assert len(json.loads(again.stdout)["trials"]) == 4


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


def test_a_folder_of_something_else_is_left_alone(run, files):
    (files / "mine").mkdir()
    (files / "mine" / "best.toml").write_text("mine")
    (files / "file").touch()
    for out, message in (("mine", "mine holds best.toml, but no study"), ("file", "file is a file; choose a folder")):
        result = run(*COMMAND, "--out", out)
        assert result.returncode == 2
        assert message in result.stderr
    assert [path.name for path in (files / "mine").iterdir()] == ["best.toml"]
    assert (files / "mine" / "best.toml").read_text() == "mine"


def test_notes_about_what_is_asked_for(run, files, inline):
    (files / "space.toml").write_text("[model]\ndim = [2, 3]\nnum_layers = [1, 2]\n")
    command = ("tune", *GRAPH, "--space", "space.toml", "--epochs", 2, "--dim", 5)
    result = run(*command, "--trials", 2)
    assert "note: model.dim: not searched, although space.toml names it" in result.stderr
    assert "2 trials are there already, more than --trials 1" in run(*command, "--trials", 1).stderr
    (files / "my.csv").write_text((files / "my.csv").read_text() + "n00,n05\n")
    changed = run(*command, "--trials", 2)
    assert changed.returncode == 2
    assert "holds a study with other data" in changed.stderr


def test_every_trial_that_fails_is_a_failure(run, files, inline):
    inline["seed0"] = Outcome("diverged", {}, "the loss is nan")
    result = run(*COMMAND)
    assert result.returncode == 1
    assert "note: trial 0 failed: the loss is nan" in result.stderr
    assert "error: every trial failed" in result.stderr
    assert not (files / "runs" / "tune-my-lp-h2h-gcn" / "best.toml").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\nnum_layers = [0, 2]\n", "space.toml: [model] num_layers = 0: "),
        ("", "there is nothing to search"),
        ("[model]\ndim = [4]\n", "there is nothing to search"),
    ],
)
def test_spaces_that_cannot_be_searched(run, files, text, message):
    (files / "space.toml").write_text(text)
    result = run("tune", *GRAPH, "--space", "space.toml", "--dim", 3)
    assert result.returncode == 2
    assert message in result.stderr
    assert not (files / "runs").exists()


def test_without_optuna(run, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = run(*COMMAND)
    assert result.returncode == 2
    assert "pip install 'h2hgcn[tune]'" in result.stderr
