"""``h2hgcn.train`` and ``h2hgcn train`` are one."""

import inspect

import pytest

import h2hgcn
from h2hgcn.cli.train import train

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")

SAME = ("config.toml", "model.safetensors", "embeddings.parquet", "graph.safetensors")


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (("--edges", "my.csv"), {"data": "my.csv"}),
        (
            ("--edges", "my.csv", "--features", "x.csv", "--dim", 8, "--seed", 5, "--set", "model.dropout=0.2"),
            {"data": "my.csv", "features": "x.csv", "dim": 8, "seed": 5, "settings": {"model.dropout": 0.2}},
        ),
        (
            (
                "--task", "nc", "--edges", "my.csv", "--labels", "y.csv", "--source", "target", "--target", "source",
                "--directed", "--weights", "none",
            ),
            {
                "task": "nc", "data": "my.csv", "labels": "y.csv", "columns": ("target", "source"), "directed": True,
                "weights": False,
            },
        ),
        (("--dataset", "disease", "--model", "gcn"), {"data": "disease", "model": "gcn"}),
    ],
)  # fmt: skip
def test_the_same_files_bit_for_bit(run, files, monkeypatch, flags, options):
    assert run("train", *flags, "--epochs", 3, "--out", "a").returncode == 0
    monkeypatch.chdir(files)
    ours = h2hgcn.train(**options, epochs=3, out="b")
    assert run("train", "--config", "b/config.toml", "--out", "c").returncode == 0
    for name in SAME:
        assert (files / "a" / name).read_bytes() == (files / "b" / name).read_bytes()
        found, _, _ = (files / "b" / name).read_bytes().partition(b"\n[search]\n")  # c knew its settings beforehand
        assert (files / "c" / name).read_bytes().partition(b"\n[search]\n")[0] == found
    loaded = h2hgcn.train(**options, epochs=3, out="a")
    assert loaded.metrics == ours.metrics


def test_a_run_from_memory_is_run_again_from_python(run, files):
    h2hgcn.train([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")] * 2 + [(f"n{k}", f"n{k + 1}") for k in range(30)],
                 epochs=1, out=files / "m")  # fmt: skip
    result = run("train", "--config", "m/config.toml", "--out", "again")
    assert result.returncode == 2
    assert "came from memory, not from files; run it again from Python" in result.stderr


def test_every_flag_is_a_keyword():
    flags = inspect.signature(train).parameters.keys() - {"json"}  # of the terminal
    renamed = {
        "dataset": "data",
        "edges": "data",
        "graphs": "data",
        "source": "columns",
        "target": "columns",
        "log": "loggers",
        "data": "root",
    }
    keywords = inspect.signature(h2hgcn.train).parameters.keys()
    assert {renamed.get(flag, flag) for flag in flags} == keywords - {"verbose"}
