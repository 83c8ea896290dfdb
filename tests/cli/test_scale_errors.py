"""What goes wrong with large graphs and several processes: a message, and exit code 2."""

import json
import shutil

import pytest

from h2hgcn.files import stamped, unstamped

TRAIN = ("train", "--edges", "my.csv", "--features", "x.csv", "--epochs", 1, "--out", "r")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch-size", 8, "--fanout", "15", "--layers", 2], "has 1 numbers, but the encoder has 2 layers"),
        (["--batch-size", 8, "--fanout", "15,0"], "at least 1, or -1 for all"),
        (["--batch-size", 100_000], "training.batch_size=100000 is more than the"),
        (["--batch-size", "many"], "a whole number or 'auto' or 'full'"),
        (["--workers", -1], "training.workers=-1"),
    ],
)
def test_batches_that_do_not_fit(run, files, options, message):
    result = run(*TRAIN, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"RANK": "2", "WORLD_SIZE": "2"},
            "RANK=2, WORLD_SIZE=2: both have to be whole numbers, RANK from 0 to WORLD_SIZE less 1",
        ),
        ({"RANK": "0", "WORLD_SIZE": "two"}, "both have to be whole numbers"),
        ({"RANK": "1", "WORLD_SIZE": "2"}, "without MASTER_ADDR and MASTER_PORT"),
    ],
)
def test_processes_that_contradict_each_other(run, files, monkeypatch, variables, message):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = run(*TRAIN, "--batch-size", 8)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_graph_that_changed_since_it_was_converted(run, files):
    assert run("convert", "--edges", "my.csv", "--features", "x.csv", "--out", "big").returncode == 0
    (files / "my.csv").write_text((files / "my.csv").read_text() + "n01,n20\n")
    result = run("train", "--edges", "big", "--out", "r")
    assert (result.returncode, result.stdout) == (2, "")
    assert "my.csv: it has changed since it was converted" in result.stderr


def test_an_index_of_another_run(run, trained, tmp_path):
    pytest.importorskip("faiss")
    shutil.copytree(trained / "lp", tmp_path / "lp")
    ask = ("recommend", "lp", "--all", "-k", 2, "--index", "hnsw")
    first = run(*ask)
    assert first.returncode == 0
    about = tmp_path / "lp" / "index.json"
    right = about.read_text()
    about.write_text(json.dumps(stamped(unstamped(json.loads(right)) | {"points": "those of another"})))
    result = run(*ask)  # builds it again
    assert (result.returncode, result.stdout) == (0, first.stdout)
    assert json.loads(about.read_text())["points"] == json.loads(right)["points"]
