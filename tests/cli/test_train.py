"""``h2hgcn train``: what it says, writes, and does not write over."""

import json
import re
import shutil

import pytest

from h2hgcn.cli.console import stderr

GRAPH = ("--edges", "my.csv", "--features", "x.csv")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_says_what_it_learnt_and_where_it_is(run, files):
    result = run("train", *GRAPH, "--epochs", 2)
    folder = files / "runs" / "my-lp-h2h-gcn-seed0"
    assert result.returncode == 0, result.stderr
    assert "auc (selects)" in result.stdout
    assert "baseline: degree product, auc" in result.stdout
    for name in ("config.toml", "model.safetensors", "embeddings.parquet", "report.html"):
        assert (folder / name).stat().st_size
        assert f"runs/my-lp-h2h-gcn-seed0/{name}  " in result.stdout
    assert not stderr.is_terminal
    announced, *notes = result.stderr.splitlines()
    wanted = r"h2h-gcn for lp on my, clean split, the best of \d+ settings, to runs/my-lp-h2h-gcn-seed0"
    assert re.fullmatch(wanted, announced)
    assert re.match(r"settings: \S+, best of \d+ on validation data \(", notes[0])
    coarse = "note: the validation part has 4 links and the test part has 8 links only: their metrics are coarse"
    assert coarse in notes


def test_a_run_is_replaced_by_force_alone(run, files):
    command = ("train", *GRAPH, "--epochs", 2, "--json", "--out", "r")
    first = run(*command)
    before = contents(files / "r")
    again = run(*command)
    assert again.returncode == 0
    assert "finished already, in r; --force trains it again" in again.stderr
    assert again.stdout == first.stdout
    other = run(*command, "--seed", 1)
    assert other.returncode == 2
    assert "seed is 0 there and 1 now" in other.stderr
    assert "finished" not in other.stderr
    assert contents(files / "r") == before
    assert run(*command, "--seed", 1, "--force").returncode == 0
    assert contents(files / "r")["model.safetensors"] != before["model.safetensors"]


def test_json_is_alone_on_stdout(run, files):
    result = run("train", "--edges", "my.csv", "--epochs", 2, "--json")
    told = json.loads(result.stdout)
    assert told["finished"]
    assert told["resumed_from"] is None
    assert told["metrics"]["test"].keys() - told["metrics"]["val"].keys() == {"precision@8", "ece", "ece_top"}
    assert (files / told["folder"] / "result.json").exists()
    assert "no features were given" in result.stderr


def test_a_runs_configuration_runs_it_again(run, files):
    options = ("--task", "nc", "--labels", "y.csv", "--epochs", 3, "--set", "model.dropout=0.2", "--seed", 5)
    assert run("train", *GRAPH, *options, "--out", "a").returncode == 0
    (files / "elsewhere").mkdir()
    shutil.copy(files / "a" / "config.toml", files / "elsewhere" / "my.toml")
    again = run("train", "--config", "elsewhere/my.toml", "--out", "b")
    assert "elsewhere/my.toml, to b" in again.stderr
    assert again.returncode == 0, again.stderr
    for name in ("config.toml", "model.safetensors", "embeddings.parquet"):
        first, _, _ = (files / "a" / name).read_bytes().partition(b"\n[search]\n")  # the other knew its settings
        assert (files / "b" / name).read_bytes() == first


def test_data_that_changed_since_are_told(run, files):
    assert run("train", *GRAPH, "--epochs", 1, "--out", "a").returncode == 0
    (files / "x.csv").write_text((files / "x.csv").read_text().replace("0.", "1."))
    assert (
        "my is not what the configuration was written for"
        in run("train", "--config", "a/config.toml", "--out", "b").stderr
    )


def test_graphs_of_a_collection(run, shapes):
    result = run("train", "--dataset", "SHAPES", "--epochs", 2)
    assert result.returncode == 0, result.stderr
    assert "runs/shapes-gc-h2h-gcn-seed0/embeddings.parquet  a point for each graph" in result.stdout


def test_curves_for_tensorboard(run, files):
    assert run("train", *GRAPH, "--epochs", 1, "--tensorboard", "--out", "r").returncode == 0
    assert list((files / "r" / "tensorboard").iterdir())


def test_curves_for_several_loggers(run, files, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    assert run("train", *GRAPH, "--epochs", 1, "--log", "tensorboard", "--log", "wandb", "--out", "r").returncode == 0
    assert list((files / "r" / "tensorboard").iterdir())
    assert list((files / "r" / "wandb").glob("offline-run-*/*.wandb"))


def test_a_logger_that_is_not_known(run, files):
    result = run("train", *GRAPH, "--log", "wandbb", "--out", "r")
    assert result.returncode == 2
    assert "'wandbb' is not a logger; did you mean 'wandb'?" in result.stderr
    assert not (files / "r").exists()
