"""``h2hgcn evaluate``."""

import json
import shutil

import numpy as np
import pytest
from runs import shapes as shapes_of

from h2hgcn.cli.console import print_classes
from h2hgcn.datasets import DATASETS
from h2hgcn.datasets.registry import NamedDataset


@pytest.mark.parametrize("name", ["lp", "nc", "gc"])
def test_metrics_are_those_of_the_end_of_training(run, trained, shapes, name):
    result = run("evaluate", trained / name, "--json")
    told = json.loads(result.stdout)
    kept = json.loads((trained / name / "result.json").read_text())
    assert told["selection"] == kept["selection"]
    for part in ("val", "test"):
        assert told["metrics"][part] == pytest.approx(kept["metrics"][part], abs=1e-6)


def test_the_table_marks_the_metric_that_selects(run, trained):
    result = run("evaluate", trained / "nc")
    assert result.stdout.startswith("metric              validation  test")
    assert "accuracy (selects)" in result.stdout
    assert result.stderr == ""


def test_classes_in_detail(run, trained):
    """In the terminal, in JSON and in the result alike."""
    printed = run("evaluate", trained / "nc").stdout
    kept = json.loads((trained / "nc" / "result.json").read_text())["details"]
    assert json.loads(run("evaluate", trained / "nc", "--json").stdout)["details"] == kept
    assert [one["name"] for one in kept["classes"]] == ["blue", "green", "red"]
    lines = [line.split() for line in printed.splitlines()]
    assert ["class", "precision", "recall", "f1", "support"] in lines
    assert ["true", "class,", "predicted", "as", "blue", "green", "red"] in lines
    for one, counts in zip(kept["classes"], kept["confusion"], strict=True):
        shares = [f"{one[name]:.4f}" for name in ("precision", "recall", "f1")]
        assert [one["name"], *shares, str(one["support"])] in lines
        assert [one["name"], *map(str, counts)] in lines
    assert "recall" not in run("evaluate", trained / "lp").stdout


def test_many_classes_are_not_printed(capsys):
    row = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1}
    names = [f"a long name {k}" for k in range(21)]
    details = {
        "classes": [{"name": name, **row} for name in names],
        "confusion": np.eye(21, dtype=int).tolist(),
    }
    print_classes(details)
    assert capsys.readouterr().out == ""
    print_classes({"classes": details["classes"][:20], "confusion": np.eye(20, dtype=int).tolist()})
    printed = capsys.readouterr().out
    assert "a long name 19" in printed
    assert "confusion matrix is wider than this terminal" in printed


def test_a_collection_that_is_not_the_same_is_refused(run, trained, monkeypatch):
    monkeypatch.setitem(DATASETS, "shapes", NamedDataset("others", "26 graphs", ("gc",), lambda root: shapes_of(26)))
    result = run("evaluate", trained / "gc")
    assert result.returncode == 2
    assert "shapes is not what" in result.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["evaluate", "lp"], "graph.safetensors is missing; give the run's command again"),
        (["predict", "lp", "pairs.csv"], "graph.safetensors is missing; give the run's command again"),
        (["recommend", "lp", "--node", "n01"], "the run does not hold its graph; run its command again"),
    ],
)
def test_a_graph_that_is_gone(run, trained, tmp_path, command, message):
    shutil.copytree(trained / "lp", tmp_path / "lp")
    (tmp_path / "lp" / "graph.safetensors").unlink()
    result = run(*command)
    assert result.returncode == 2
    assert message in result.stderr


@pytest.mark.parametrize("command", ["evaluate", "predict", "recommend", "embed"])
@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("none", "none is not a folder; give the folder of a run"),
        ("file", "file is not a folder"),
        ("empty", "empty holds no config.toml; give the folder of a run"),
        ("damaged", "model.safetensors is damaged"),
        ("config", "config.toml is damaged"),
    ],
)
def test_what_is_no_run_is_refused(run, trained, tmp_path, command, folder, message):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for name, part in (("damaged", "model.safetensors"), ("config", "config.toml")):
        shutil.copytree(trained / "lp", tmp_path / name)
        whole = (tmp_path / name / part).read_bytes()
        (tmp_path / name / part).write_bytes(whole[: len(whole) // 2])
    options = {"recommend": ["--node", "n01"], "embed": ["--out", "e.csv"]}
    result = run(command, folder, *options.get(command, []))
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stdout == ""
