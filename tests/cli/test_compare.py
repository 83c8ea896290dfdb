"""``h2hgcn compare``: one table, processes that can be stopped and killed, and what cannot be compared."""

import json
import os
import signal
import time
import tomllib

import pytest

from h2hgcn.errors import DataError
from h2hgcn.experiments.runner import Outcome

GRAPH = ("--edges", "my.csv", "--features", "x.csv")
COMMAND = ("compare", "--models", "gcn,mlp", *GRAPH, "--seeds", 2, "--epochs", 3, "--out", "c")


def times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("result.json")}


def test_models_side_by_side(run, files, request):
    result = run(*COMMAND, "--jobs", 2)
    request.getfixturevalue("inline")  # one look at processes is enough
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("gcn, mlp for lp on my, clean split, 2 seeds, to c\n")
    assert all(name in result.stdout for name in ("model", "test auc", "val", "parameters", "s/run"))
    assert "…" not in result.stdout
    assert "no learning" in result.stdout
    before = times(files / "c")
    assert {path.parent.name for path in before} == {"gcn-seed0", "gcn-seed1", "mlp-seed0", "mlp-seed1"}
    told = json.loads(run(*COMMAND, "--json").stdout)
    assert times(files / "c") == before  # what is finished is not run again
    assert {row["model"] for row in told["models"]} == {"gcn", "mlp"}
    compared = any(row["p_value"] is not None for row in told["models"])  # not those that are no better than chance
    assert ("Welch's t-test over seeds" in result.stdout) == compared
    assert all(len(row["test"]) == 2 for row in told["models"])
    for row in told["models"]:
        trained = json.loads((files / "c" / f"{row['model']}-seed1" / "result.json").read_text())
        assert row["test"]["1"] == trained["metrics"]["test"]["auc"]
    gcn, mlp = (
        tomllib.loads((files / "c" / f"{model}-seed0" / "config.toml").read_text())["task"] for model in ("gcn", "mlp")
    )
    assert all(gcn[name] == mlp[name] for name in ("protocol", "split_seed", "val", "test"))
    changed = run(*COMMAND, "--set", "training.eval_every=2")
    assert changed.returncode == 2
    assert "training.eval_every is 1 there and 2 now" in changed.stderr


def test_usual_models_are_compared_if_none_are_named(run, files, inline):
    result = run("compare", *GRAPH, "--seeds", 1, "--epochs", 1, "--search", "none", "--json")
    assert result.returncode == 0, result.stderr
    assert {row["model"] for row in json.loads(result.stdout)["models"]} == {"h2h-gcn", "hgcn", "gcn", "mlp"}


def test_a_comparison_that_is_stopped_or_killed_goes_on(process, run, files):
    long = ("compare", "--models", "gcn", *GRAPH, "--seeds", 1, "--epochs", 10**7, "--set", "training.patience=none")
    metrics = files / "runs" / "compare-my-lp" / "gcn-seed0" / "metrics.jsonl"
    for number in (signal.SIGINT, signal.SIGKILL):
        size = metrics.stat().st_size if metrics.exists() else 0
        started = process(*long)
        while started.poll() is None and not (metrics.exists() and metrics.stat().st_size > size):
            time.sleep(0.05)
        started.send_signal(number)
        _, stderr = started.communicate()
        if number == signal.SIGINT:
            assert started.returncode == 1, stderr
            assert "stopped: 0 of 1 runs; the same command resumes" in stderr
    # the child of a parent that was killed ends with its epoch, and lets go of the folder
    short = ("train", "--model", "gcn", *GRAPH, "--out", metrics.parent, "--force", "--epochs", 2)
    deadline = time.monotonic() + 60
    while (result := run(*short)).returncode and time.monotonic() < deadline:
        assert "another process trains in" in result.stderr
        time.sleep(0.2)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--models", "gcn,mpl"), "'mpl' is not a model; did you mean 'mlp'?"),
        (("--models", "gcn,gin"), "the model gin is for gc, not for lp; use h2h-gcn, "),
        (("--models", "gcn,gcn"), "name each model once"),
        (("--models", "gcn", "--set", "model.heads=2"), "has no option 'heads'"),
        (("--models", "gcn", "--task", "nc"), "no labels"),
    ],
)
def test_what_cannot_be_compared(run, files, arguments, message):
    result = run("compare", *GRAPH, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert not (files / "runs").exists()


def test_one_run_that_cannot_be_leaves_the_others(run, files, inline):
    inline["gcn-seed1"] = DataError("gcn-seed1 is not empty and not a run")
    result = run(*COMMAND)
    assert result.returncode == 2
    assert "gcn-seed1 is not empty and not a run" in result.stderr
    assert "test auc" in result.stdout
    inline["gcn-seed1"] = Outcome("diverged", {}, "the loss is nan")
    told = json.loads(run(*COMMAND, "--json").stdout)
    scores = {row["model"]: row["test"] for row in told["models"]}
    assert scores["gcn"]["1"] is None
    assert scores["mlp"]["1"] is not None


def test_all_that_diverges_is_a_failure(run, files, inline):
    inline |= dict.fromkeys(("gcn-seed0", "gcn-seed1"), Outcome("diverged", {}, "the loss is nan"))
    result = run("compare", "--models", "gcn", *GRAPH, "--seeds", 2)
    assert result.returncode == 1
    assert "test auc" in result.stdout
    assert "all runs diverged" in result.stderr


def test_seeds_and_what_is_not_learnt(run, files, inline):
    trained = {"selection": "auc", "trivial": {}, "seconds": 1.0, "parameters": 2}
    for model, val in (("gcn", 0.5), ("mlp", 0.6)):
        metrics = {"val": {"auc": val}, "test": {"auc": 0.75}}
        inline[f"{model}-seed0"] = Outcome("finished", {**trained, "metrics": metrics})
    result = run("compare", "--models", "gcn,mlp", *GRAPH, "--seeds", 1, "--vary-split")
    assert ", another split for each seed, 1 seed, to " in result.stderr
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "no better than chance" in lines["gcn"]
    assert lines["mlp"].endswith("best") or "best" in lines["mlp"]
    assert "over 1 seed\n" in result.stdout


def test_tuned_models_are_compared(run, files, inline):
    """With the files that h2hgcn tune writes, as they are."""
    (files / "space.toml").write_text("[model]\ndim = [3, 4]\n")
    for model in ("gcn", "mlp"):
        tuned = run("tune", "--model", model, *GRAPH, "--space", "space.toml", "--trials", 2, "--epochs", 2)
        assert tuned.returncode == 0, tuned.stderr
    configs = [argument for model in ("gcn", "mlp") for argument in ("--config", f"runs/tune-my-lp-{model}/best.toml")]
    result = run("compare", "--models", "gcn,mlp", *configs, "--seeds", 1, "--out", "c")
    assert result.returncode == 0, result.stderr
    for model in ("gcn", "mlp"):
        chosen = tomllib.loads((files / f"runs/tune-my-lp-{model}/best.toml").read_text())
        trained = tomllib.loads((files / f"c/{model}-seed0/config.toml").read_text())
        assert trained["model"]["dim"] == chosen["model"]["dim"]
        assert trained["data"]["edges"] == chosen["data"]["edges"]
    assert "which is not among --models hgcn" in run("compare", "--models", "hgcn", *configs).stderr


def test_a_process_that_dies_is_a_failure(run, files, monkeypatch):
    """As when the memory is used up."""
    monkeypatch.setattr("h2hgcn.experiments.runner._run", _die)
    result = run(*COMMAND, "--jobs", 1)
    assert result.returncode == 1
    assert "error: a process died" in result.stderr


def _die(cell):
    os.kill(os.getpid(), signal.SIGKILL)
