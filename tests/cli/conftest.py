"""The command line in this process, since a new one takes seconds to import PyTorch; and small graphs for it."""

import io
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from runs import shapes as shapes_of
from runs import write_graphs

import h2hgcn
from h2hgcn.cli import main
from h2hgcn.datasets import DATASETS
from h2hgcn.datasets.registry import NamedDataset

NODES = [f"n{k:02}" for k in range(40)]


class Result(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def invoke(folder, *arguments):
    """Runs the command line in a folder, as a person there would."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.chdir(folder)
        patch.setenv("H2HGCN_CACHE", str(folder / "cache"))
        patch.setenv("COLUMNS", "200")
        patch.delenv("H2HGCN_DATA", raising=False)
        patch.setattr(sys, "argv", ["h2hgcn", *map(str, arguments)])
        with (
            redirect_stdout(io.StringIO()) as stdout,
            redirect_stderr(io.StringIO()) as stderr,
            pytest.raises(SystemExit) as stopped,
        ):
            main()
    return Result(stopped.value.code or 0, stdout.getvalue(), stderr.getvalue())


@pytest.fixture
def run(tmp_path):
    return partial(invoke, tmp_path)


@pytest.fixture
def inline(monkeypatch):
    """Runs of many in this process, one after the other; an outcome for a cell may be given instead of a run."""
    from h2hgcn.experiments.runner import Outcome, run_cell

    given = {}

    def run_cells(cells, total, jobs, finished, force=False):
        for cell in cells:
            outcome = given.get(cell.folder.name) or run_cell(cell)
            finished(cell, outcome if isinstance(outcome, Outcome) else Outcome("failed", {}, error=outcome))

    monkeypatch.setattr("h2hgcn.cli.console.run_cells", run_cells)
    return given


@pytest.fixture
def process(tmp_path):
    """Starts the command line as a process of its own."""
    package = Path(h2hgcn.__file__).parents[1]
    environment = os.environ | {"H2HGCN_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(package)}
    started = []

    def start(*arguments):
        command = [sys.executable, "-W", "ignore", "-m", "h2hgcn", *map(str, arguments)]
        started.append(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
            )
        )
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def files(tmp_path):
    """Files of a graph in the folder of the test."""
    write_files(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with the files of a graph, and with short runs on it: lp, nc, and gc on a collection."""
    folder = tmp_path_factory.mktemp("trained")
    write_files(folder)
    graph = ["--edges", "my.csv", "--features", "x.csv"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DATASETS, "shapes", SHAPES)
        for arguments in (
            ["--out", "lp", *graph],
            ["--out", "nc", *graph, "--labels", "y.csv", "--task", "nc"],
            ["--out", "gc", "--dataset", "shapes"],
        ):
            result = invoke(folder, "train", "--epochs", 3, "--search", "none", *arguments)
            assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="session")
def at():
    """Runs the command line in a folder that is named first."""
    return invoke


@pytest.fixture(scope="session")
def train_graphs():
    """The command that trains on the folder ``shapes``."""
    return ("train", "--task", "gc", "--graphs", "shapes", "--labels", "shapes-y.csv", "--epochs", 3,
            "--set", "task.num_folds=4")  # fmt: skip


@pytest.fixture(scope="session")
def learned(tmp_path_factory, train_graphs):
    """A folder with two folders of graphs, and with a short run on the first of them."""
    folder = tmp_path_factory.mktemp("learned")
    write_graphs(folder / "shapes")
    write_graphs(folder / "new", 6, seed=3)
    result = invoke(folder, *train_graphs, "--search", "none", "--out", "run")
    assert result.returncode == 0, result.stderr
    assert "no features were given; structural ones were made" in result.stderr
    return folder


@pytest.fixture
def shapes(monkeypatch):
    """The collection of the run gc, as a named dataset."""
    monkeypatch.setitem(DATASETS, "shapes", SHAPES)


def write_files(folder):
    """A ring with chords, texts as ids, with features, labels, and a graph that shares two of its nodes."""
    random = np.random.RandomState(0)
    edges = [(k, (k + step) % len(NODES)) for step in (1, 7) for k in range(len(NODES))]
    numbers = random.normal(size=(len(NODES), 3)).round(3).tolist()
    write_rows(folder / "my.csv", ["source", "target"], [(NODES[a], NODES[b]) for a, b in edges])
    write_rows(
        folder / "x.csv", ["id", "height", "age", "size"], [(n, *x) for n, x in zip(NODES, numbers, strict=True)]
    )
    write_rows(
        folder / "y.csv", ["id", "label"], [(node, ("red", "green", "blue")[k % 3]) for k, node in enumerate(NODES)]
    )
    write_rows(folder / "new.csv", ["source", "target"], [("n01", "new1"), ("new1", "new2"), ("n02", "n01")])
    new = [("n01", 1, 0.5, 0), ("n02", 0, 0, 1), ("new1", 0.1, 0.2, 0.3), ("new2", -1, 0, 2)]
    write_rows(folder / "newx.csv", ["id", "height", "age", "size"], new)
    write_rows(folder / "pairs.csv", ["source", "target"], [("n01", "n02"), ("n03", "n30")])


def write_rows(path, header, rows):
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in (header, *rows)))


SHAPES = NamedDataset("rings and stars", "40 graphs", ("gc",), lambda root: shapes_of(40))
