"""The examples run, and find more than a trivial score does."""

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs a script in this process, since a new one takes seconds to import PyTorch; returns what it prints."""

    def script(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return script


def test_tree_link_prediction(run):
    output = run("tree_link_prediction.py", "--epochs", 100)
    ours, trivial = (float(value) for value in re.findall(r"test AUC.*: +([\d.]+)", output))
    assert ours > 0.9
    assert ours > trivial + 0.1


@pytest.mark.filterwarnings("ignore::h2hgcn.errors.DataWarning")  # companies without relations are noticed
def test_own_graph(run, tmp_path):
    output = run("own_graph.py", "--epochs", 60, "--out", tmp_path / "chain")
    ours, trivial = (float(value) for value in re.findall(r"test AUC ([\d.]+);.* has ([\d.]+)", output)[0])
    assert ours > trivial + 0.05
    found, by_chance = (float(re.search(text, output)[1]) for text in (r"(\d+) of the", r"would be (\d+\.\d)"))
    assert found > 2 * by_chance
    assert len(re.findall(r"^  \S+ +probability 0\.\d+, distance", output, re.MULTILINE)) == 10
    assert (tmp_path / "chain" / "companies.svg").stat().st_size > 10_000
    assert (tmp_path / "chain" / "run" / "report.html").exists()


def test_layer_in_pyg(run):
    output = run("layer_in_pyg.py", "--epochs", 40)
    flat, hyperbolic = (float(value) for value in re.findall(r"test accuracy ([\d.]+)", output))
    assert min(flat, hyperbolic) > 0.7
    assert float(re.search(r"at most (\S+)", output)[1]) < 1e-5


# what Lightning says about this machine and about loaders without worker processes
@pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_lightning(run):
    pytest.importorskip("lightning", reason="the example needs Lightning: pip install lightning")
    output = run("lightning_nodes.py", "--epochs", 6)
    assert float(re.search(r"test accuracy ([\d.]+)", output)[1]) > 0.7
    assert float(re.search(r"at most (\S+)", output)[1]) < 1e-5
