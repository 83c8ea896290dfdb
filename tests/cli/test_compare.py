"""``h2hgcn compare``: one table, processes that can be stopped and killed, and what cannot be compared."""

import json
import os
import signal
import time

import pytest

GRAPH = ("--edges", "my.csv", "--features", "x.csv")
COMMAND = ("compare", "--models", "gcn,mlp", *GRAPH, "--seeds", 2, "--epochs", 3, "--out", "c")


def times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("result.json")}


def test_models_side_by_side(run, files):
    result = run(*COMMAND, "--jobs", 2)
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("gcn, mlp for lp on my, clean split, 2 seeds, to c\n")
    assert all(name in result.stdout for name in ("model", "test auc", "val", "parameters", "s/run"))
    assert "…" not in result.stdout
    assert "no learning" in result.stdout
    assert "Welch's t-test over seeds" in result.stdout
    before = times(files / "c")
    assert {path.parent.name for path in before} == {"gcn-seed0", "gcn-seed1", "mlp-seed0", "mlp-seed1"}
    told = json.loads(run(*COMMAND, "--json").stdout)
    assert times(files / "c") == before  # what is finished is not run again
    assert {row["model"] for row in told["models"]} == {"gcn", "mlp"}
    assert all(len(row["test"]) == 2 for row in told["models"])
    for row in told["models"]:
        trained = json.loads((files / "c" / f"{row['model']}-seed1" / "result.json").read_text())
        assert row["test"]["1"] == trained["metrics"]["test"]["auc"]
    split = {(files / "c" / f"{model}-seed0" / "config.toml").read_text().split("[task]")[1].split("negatives")[0]
             for model in ("gcn", "mlp")}  # fmt: skip
    assert len(split) == 1
    changed = run(*COMMAND[:-4], "--epochs", 4, "--out", "c")
    assert changed.returncode == 2
    assert "training.epochs is 3 there and 4 now" in changed.stderr


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
            assert "stopped: 0 of 1 runs; the same command goes on" in stderr
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


def test_a_process_that_dies_is_a_failure(run, files, monkeypatch):
    """As when the memory is used up."""
    monkeypatch.setattr("h2hgcn.experiments.pool._run", _die)
    result = run(*COMMAND, "--jobs", 1)
    assert result.returncode == 1
    assert "error: a process died" in result.stderr


def _die(cell):
    os.kill(os.getpid(), signal.SIGKILL)
