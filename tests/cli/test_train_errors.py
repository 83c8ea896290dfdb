"""What ``h2hgcn train`` refuses, and what it says when something breaks."""

import os
import shutil
from errno import ENOSPC

import pytest
import torch
from filelock import FileLock

from h2hgcn import files as atomic
from h2hgcn.tasks.links import LinkProblem

GRAPH = ("--edges", "my.csv", "--features", "x.csv", "--epochs", 2, "--out", "r")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "xx"], "'xx' is not one of 'lp', 'nc', 'gc', 'embed'"),
        (["--model", "h2h-gnc"], "command line: 'h2h-gnc' is not a model; did you mean 'h2h-gcn'?"),
        (["--dataset", "coora"], "command line: 'coora' is not a named dataset; did you mean 'cora'?"),
        (["--protocol", "dirty"], "[task] protocol='dirty' is not known; use one of clean, legacy"),
        (["--task", "nc", "--protocol", "planetoid"], "came without train_mask"),
        (["--set", "model.dropoot=0.5"], "[model] has no option 'dropoot'; did you mean 'dropout'?"),
        (["--set", "model.dropout=much"], "[model] dropout='much' must be a number"),
        (["--set", "mudel.dropout=0.5"], "there is no section 'mudel'; did you mean 'model'?"),
        (["--set", "dropout=0.5"], "write it as section.option=value"),
        (["--set", "model.dropout"], "write it as section.option=value"),
        (["--set", "data.edges=my.csv"], "use the flags"),
        (["--epochs", "0"], "training.epochs=0 must be at least 1"),
        (["--epochs", "many"], "'--epochs'"),
        (["--dim", "0"], "dim=0"),
        (["--set", "model.dropout=7"], "dropout=7"),
        (["--seed", "-1"], "seed=-1 must be an integer"),
        (["--device", "tpu"], "device='tpu' is not known"),
        (["--config", "bad.toml"], "bad.toml: [training] has no option 'epoch'; did you mean 'epochs'?"),
        (["--config", "none.toml"], "none.toml is not there"),
        (["--edges", "none.csv"], "none.csv does not exist"),
        (["--config", "deep.toml"], "deep.toml is not TOML: maximum recursion depth exceeded"),
        (["--config", "long.toml"], "long.toml is not TOML: Exceeds the limit"),
        (["--dim", 10**23], "dim has more than 64 bits; choose a smaller number"),
        (["--graphs", "~nosuchuser/graphs"], "~nosuchuser/graphs does not exist"),
        (["--edges", ""], "--edges is empty; name a file of edges"),
        (["--edges", "cora"], "that is a named dataset"),
        (["--edges", "my.csv", "--dataset", "cora"], "both given; choose one"),
        (["--edges", "my.csv", "--source", "source"], "--source and --target belong together"),
        (["--labels", "y.csv"], "labels: only for a graph of your own; name its edges"),
        (["--dataset", "disease", "--labels", "y.csv"], "disease is a named dataset"),
        (["--task", "gc", "--edges", "my.csv"], "the task gc does not fit my, which is one graph; choose lp or nc"),
        (["--task", "lp", "--dataset", "enzymes"], "which is a collection of graphs; choose gc"),
        (["--task", "nc", "--edges", "my.csv"], "has no labels"),
        (["--task", "nc", "--edges", "my.csv", "--labels", "one.csv"], "the class red; there is nothing to tell apart"),
        (["--edges", "few.csv"], "no edge is left for the val part of 3"),
        (["--edges", "broken.csv"], "broken.csv, line 2: 1 field where the first line has 2"),
        (["--out", "."], "not empty and not a run"),
        (["--out", "my.csv"], "my.csv is a file"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, files, arguments, message):
    (files / "one.csv").write_text((files / "y.csv").read_text().replace("green", "red").replace("blue", "red"))
    (files / "bad.toml").write_text("[training]\nepoch = 3\n")
    (files / "deep.toml").write_text(f"a = {'[' * 2000}{']' * 2000}")
    (files / "long.toml").write_text(f"[model]\ndim = {'9' * 5000}")
    (files / "few.csv").write_text("1,2\n2,3\n3,4\n")
    (files / "broken.csv").write_text("1,2\n2;3\n")
    before = sorted(files.rglob("*"))
    result = run("train", *arguments)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert sorted(files.rglob("*")) == before


def test_candidates_that_all_fail_are_listed_with_their_reasons(run, files):
    result = run(
        "train", "--edges", "my.csv", "--dim", 4, "--epochs", 2, "--set", "model.stem=false", "--search", "fast"
    )
    assert result.returncode == 2
    assert "candidate settings failed:\n" in result.stderr
    reason = next(line for line in result.stderr.splitlines() if "orthonormal columns cannot map" in line)
    assert "features-2-half" in reason


def test_numbers_that_go_bad_end_with_exit_code_1(run, files, monkeypatch):
    loss = LinkProblem.loss
    monkeypatch.setattr(LinkProblem, "loss", lambda *arguments: loss(*arguments) * float("nan"))
    result = run("train", *GRAPH)
    assert result.returncode == 1
    assert "the loss is nan" in result.stderr
    assert "lower lr" in result.stderr


@pytest.mark.parametrize("size", [1 << 55, 1 << 62])
def test_too_little_memory_ends_with_exit_code_1(run, files, monkeypatch, size):
    monkeypatch.setattr(LinkProblem, "loss", lambda *_: torch.empty(size))
    result = run("train", *GRAPH)
    assert result.returncode == 1
    assert "there is not enough memory; try a smaller dim" in result.stderr


def test_a_folder_that_is_taken_away_ends_with_exit_code_1(run, files, monkeypatch):
    loss = LinkProblem.loss
    monkeypatch.setattr(LinkProblem, "loss", lambda *args: shutil.rmtree(files / "r", True) or loss(*args))
    result = run("train", *GRAPH)
    assert result.returncode == 1
    assert "r: the run's folder was deleted or renamed while it was trained; put it back" in result.stderr


@pytest.mark.parametrize("successes", [1, 4])
def test_a_full_disk_ends_with_exit_code_1_and_nothing_is_lost(run, files, monkeypatch, successes):
    left = [None] * successes

    def fill(file):
        if not left:
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        left.pop()

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", fill)
        result = run("train", *GRAPH)
    assert result.returncode == 1
    assert "no space left on device; make room and give the same command again" in result.stderr
    assert run("train", *GRAPH).returncode == 0
    assert not list((files / "r").rglob("*.part"))


def test_a_folder_in_use_is_left_alone(run, files):
    (files / "r").mkdir()
    with FileLock(files / "r" / ".lock"):
        result = run("train", *GRAPH)
    assert result.returncode == 2
    assert "another process trains in r" in result.stderr


def test_a_run_of_another_version_is_left_alone(run, files):
    assert run("train", *GRAPH).returncode == 0
    config = files / "r" / "config.toml"
    config.write_text(config.read_text().replace("format = 1", "format = 99"))
    for command in (["train", *GRAPH], ["evaluate", "r"]):
        result = run(*command)
        assert result.returncode == 2
        assert "has the format 99" in result.stderr
