"""``h2hgcn split``, and a split that comes with labels."""

import json
import tomllib

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from h2hgcn.training import load_run


@pytest.mark.parametrize(("name", "read"), [("s.csv", pyarrow.csv.read_csv), ("s.parquet", pyarrow.parquet.read_table)])
def test_links(run, trained, tmp_path, name, read):
    result = run("split", trained / "lp", "--out", name)
    assert (result.returncode, result.stdout) == (0, "")
    table = read(tmp_path / name).to_pydict()
    split = load_run(trained / "lp").problem.split
    rows = list(zip(table["split"], table["label"], table["source"], table["target"], strict=True))
    for part in ("train", "val", "test"):
        for label, pairs in ((1, getattr(split, part)), (0, getattr(split, f"{part}_neg", []))):
            expected = {(f"n{a:02}", f"n{b:02}") for a, b in pairs}
            assert {row[2:] for row in rows if row[:2] == (part, label)} == expected
    assert len(rows) == len(set(rows))


def test_graphs(run, trained, shapes, tmp_path):
    assert run("split", trained / "gc", "--out", "s.parquet").returncode == 0
    table = pyarrow.parquet.read_table(tmp_path / "s.parquet").to_pydict()
    assert sorted(table["graph"]) == list(range(40))
    assert all(label == str(graph % 2) for graph, label in zip(table["graph"], table["label"], strict=True))
    assert set(table["split"]) == {"train", "val", "test"}


def test_a_split_of_nodes_can_be_given_again(run, files, trained):
    """The file is one of labels, with the same split and so the same result."""
    assert run("split", trained / "nc", "--out", "split.csv").returncode == 0
    graph = ("--edges", "my.csv", "--features", "x.csv", "--task", "nc", "--epochs", 3, "--search", "none")
    result = run("train", *graph, "--labels", "split.csv", "--out", "again")
    assert result.returncode == 0, result.stderr
    assert "given split" in result.stderr
    before, again = (load_run(folder) for folder in (trained / "nc", files / "again"))
    for part in ("train", "val", "test"):
        assert np.array_equal(*(np.sort(getattr(run.problem.split, part)) for run in (before, again)))
    config = tomllib.loads((files / "again" / "config.toml").read_text())
    assert config["task"]["protocol"] == "given"
    assert "finished already" in run("train", *graph, "--labels", "split.csv", "--out", "again").stderr
    assert run("train", "--config", "again/config.toml", "--out", "third").returncode == 0
    clean = run("train", *graph, "--labels", "split.csv", "--protocol", "clean", "--out", "clean")
    assert "clean split" in clean.stderr
    metrics = [
        json.loads((folder / "result.json").read_text())["metrics"] for folder in (files / "again", files / "third")
    ]
    assert metrics[0] == metrics[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "id,label,split\nn00,red,train\nn01,blue,tst\n",
            "y.csv, line 3: the split 'tst' is not train, val or test",
        ),
        (
            "id,label,split\nn00,red,train\nn01,,test\n",
            "y.csv, line 3: the node is in the test split, but has no label",
        ),
        (
            "id,label,split\nn00,red,train\nn01,blue,train\nn02,red,test\n",
            "the given split has no val nodes; mark some in the column 'split'",
        ),
    ],
)
def test_splits_that_cannot_be_used(run, files, text, message):
    (files / "y.csv").write_text(text)
    result = run("train", "--task", "nc", "--edges", "my.csv", "--labels", "y.csv", "--search", "none", "--out", "r")
    assert result.returncode == 2
    assert message in result.stderr


def test_a_task_that_holds_nothing_out(run, files):
    assert run("train", "--task", "embed", "--edges", "my.csv", "--epochs", 1, "--out", "r").returncode == 0
    result = run("split", "r", "--out", "s.csv")
    assert (result.returncode, "holds nothing out" in result.stderr) == (2, True)
    refused = run("split", "r", "--out", "s.txt")
    assert (refused.returncode, "tables are written as .csv or .parquet" in refused.stderr) == (2, True)
