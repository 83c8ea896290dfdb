"""``h2hgcn explain``."""

import json

import pyarrow.csv
import pytest

from h2hgcn.training import load_run


def test_a_class(run, trained):
    result = run("explain", trained / "nc", "--node", "n01", "-k", 3, "--epochs", 2)
    assert result.returncode == 0, result.stderr
    assert "n01: " in result.stdout
    assert "probability" in result.stdout
    found = json.loads(run("explain", trained / "nc", "--node", "n01", "-k", 3, "--epochs", 2, "--json").stdout)
    assert found["nodes"] == ["n01"]
    assert found["probability"] == pytest.approx(float(load_run(trained / "nc").predict(["n01"]).max()), abs=1e-5)
    assert len(found["edges"]) == 3
    assert {part["feature"] for part in found["features"]} == {"age", "height", "size"}


def test_a_link_to_a_file(run, trained, tmp_path):
    arguments = ("explain", trained / "lp", "--node", "n01", "--with", "n05", "--epochs", 2, "--out", "why.csv")
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    table = pyarrow.csv.read_csv(tmp_path / "why.csv")
    assert table.column_names == ["kind", "source", "target", "feature", "value", "change", "mask"]
    assert table["kind"].to_pylist().count("edge") == 10
    again = run(*arguments)
    assert again.returncode == 2
    assert "why.csv is there already; name another file, or use --force" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nc", "--node", "x"), "there is no node 'x'"),
        (("lp", "--node", "n01"), "this run predicts links: name both nodes of a pair"),
        (("nc", "--node", "n01", "--with", "n02"), "this run predicts classes: name one node"),
        (("gc", "--node", "1"), "a run of --task gc cannot be explained"),
    ],
)
def test_bad_input(run, trained, shapes, arguments, message):
    name, *rest = arguments
    result = run("explain", trained / name, *rest)
    assert result.returncode == 2
    assert message in result.stderr
