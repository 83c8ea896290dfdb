"""The longer benchmarks run, at sizes at which they say nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def figures(name, *arguments):
    command = [sys.executable, str(BENCHMARKS / name), *map(str, arguments), "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def rows_of(figures):
    return next(value for value in figures.values() if isinstance(value, list))


def test_epochs_by_size(tmp_path):
    plot = tmp_path / "plot.svg"
    rows = rows_of(figures("scale.py", "--parts", "epochs", "--sizes", 2000, "--seconds", 0.01, "--plot", plot))
    assert [row["training"] for row in rows] == ["full batch", "sampled"]
    for row in rows:
        assert row["µs an edge"] == pytest.approx(1e6 * row["seconds"] / row["edges"])
        assert row["by the least"] == 1
        assert 100 < row["MB"] < 2000
    assert "</svg>" in plot.read_text()


def test_an_epoch_beside_a_gcn():
    rows = rows_of(figures("training.py", "--datasets", "disease", "--tasks", "nc", "--dim", 8, "--repeats", 1))
    assert [row["task"] for row in rows] == ["nc"]
    assert all(row["ratio"] > 0 for row in rows)


def test_decoders_of_directed_links():
    rows = rows_of(figures("direction.py", "--packages", "networkx", "--seeds", 1, "--epochs", 2, "--dim", 4))
    assert [row["decoder"] for row in rows] == ["symmetric", "directed"]
    assert rows[0]["direction AUC"] == 0.5
    assert rows[0]["edges"] > 1000


def test_the_likeliest_links():
    pytest.importorskip("faiss")
    rows = rows_of(figures("top_links.py", "--sizes", 300, "--dim", 4, "--top", 20))
    assert [row["nodes"] for row in rows] == [300, 300]
    assert all(row["true"] == 20 and float(row["recall"]) > 0.9 for row in rows)


def test_reconstruction_of_a_closure():
    (row,) = rows_of(figures("reconstruction.py", "--nodes", 60, "--dims", 3, "--ours"))
    assert row["MAP"] > 0.9
    assert 1 <= row["mean rank"] < row["ancestors mean rank"] + 1
    assert row["gensim's own MAP"] < row["ancestors MAP"]


def test_calibration():
    found = figures(
        "calibration.py",
        "--links",
        "disease",
        "--classes",
        "disease",
        "--link-seeds",
        1,
        "--class-seeds",
        1,
        "--epochs",
        5,
    )
    (links,), (classes,) = found["Links"], found["Classes"]
    assert links["ECE after"] < links["ECE before"]
    assert links["top ECE after"] < links["top ECE before"]
    assert 0 <= classes["ECE after"] <= 1
    assert 0 < classes["perfect"] < 0.5
