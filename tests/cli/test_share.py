"""``h2hgcn export``, and ``push`` and ``pull`` on a local double of the hub."""

import json
import sys
import tomllib
from functools import partial

import pytest
from hub_double import running_double
from runs import Flat, small_fit

from h2hgcn.errors import DataError
from h2hgcn.models import H2HGCN
from h2hgcn.training import hub as hub_module
from h2hgcn.training import load_run


def test_a_run_is_exported(run, files, trained):
    pytest.importorskip("onnxruntime", reason="the extra export is not installed")
    result = run("export", trained / "lp", "--out", "m.onnx", "--json")
    assert result.returncode == 0, result.stderr
    made = json.loads(result.stdout)
    assert made["inputs"]["pairs"] == ["num_pairs", 2]
    assert made["difference"] < 1e-5
    assert (files / "m.onnx").exists()
    again = run("export", trained / "lp", "--out", "m.onnx")
    assert again.returncode == 2
    assert "m.onnx is there already" in again.stderr


def test_what_is_written_is_printed(run, files, trained, shapes):
    result = run("export", trained / "gc", "--out", "g.pt2", "--graph", "3", "--part", "encoder")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "g.pt2\n"
    assert "outputs: embeddings (1 × 65)" in result.stderr
    assert "largest difference from the run: " in result.stderr


def test_a_run_that_cannot_be_exported(run, files, trained, shapes):
    result = run("export", trained / "gc", "--out", "g.pt2")
    assert result.returncode == 2
    assert "--task gc is in the way: a program is for one fixed graph" in result.stderr
    assert not (files / "g.pt2").exists()


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The real client, on a double of the hub."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="the extra hub is not installed")
    with running_double() as double:
        monkeypatch.setattr(constants, "ENDPOINT", double.address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", double.address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
        yield double


def test_a_run_is_published_with_its_graph(run, files, trained, hub):
    result = run("push", trained / "lp", "ann/tree", "--graph")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{hub.address}/ann/tree/commit/")
    card = hub.repos["ann/tree"]["README.md"].decode()
    trained_run = load_run(trained / "lp")
    assert card.startswith("---\nlibrary_name: h2hgcn\n")
    assert f"| test | auc | {trained_run.metrics['test']['auc']:.4f} |" in card
    assert 'Run.from_pretrained("ann/tree")' in card
    assert str(trained) not in hub.repos["ann/tree"]["config.toml"].decode()
    assert b"OWNER" not in hub.repos["ann/tree"]["README.md"]
    result = run("pull", "ann/tree", "--out", "pulled")
    assert (result.returncode, result.stdout) == (0, "pulled\n"), result.stderr
    pulled = load_run(files / "pulled")
    assert pulled.embeddings.equal(trained_run.embeddings)
    assert run("recommend", "pulled", "--node", "n01").returncode == 0
    again = run("pull", "ann/tree", "--out", "pulled")
    assert (again.returncode, again.stderr) == (2, "error: pulled is there already; name a new folder\n")


def test_without_graph_nothing_of_it_is_published(run, files, trained, hub):
    result = run("push", trained / "nc", "ann/colors")
    assert result.returncode == 0, result.stderr
    published = hub.repos["ann/colors"]
    assert sorted(published) == [
        "README.md", "config.json", "config.toml", "metrics.jsonl", "model.safetensors", "result.json"
    ]  # fmt: skip
    assert all(b"n07" not in data for data in published.values())
    assert tomllib.loads(published["config.toml"].decode())["data"]["edges"] == "my.csv"
    assert run("pull", "ann/colors", "--out", "pulled").returncode == 0
    other = ("--edges", "new.csv", "--features", "newx.csv")
    result = run("predict", "pulled", *other, "--json")
    assert result.returncode == 0, result.stderr


def test_runs_that_are_not_published():
    pytest.importorskip("huggingface_hub", reason="the extra hub is not installed")
    vectors = small_fit(model=partial(H2HGCN, dim=4, node_vectors=True))
    with pytest.raises(DataError, match=r"is of no use without it; pass graph=True \(--graph\)"):
        vectors.push_to_hub("ann/tree")
    with pytest.raises(DataError, match="the model Flat is your own"):
        small_fit(model=Flat).push_to_hub("ann/tree")
    with pytest.raises(DataError, match="the run is not finished"):
        small_fit(should_stop=lambda: True).push_to_hub("ann/tree")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def test_a_hub_that_cannot_be_reached_loses_nothing(run, files, trained, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants", reason="the extra hub is not installed")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # where nobody answers
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(files / "cache"))
    before = contents(trained / "nc")
    result = run("push", trained / "nc", "ann/colors")
    assert result.returncode == 2
    assert "the hub cannot be reached for ann/colors" in result.stderr
    assert contents(trained / "nc") == before
    result = run("pull", "ann/colors", "--out", "pulled")
    assert result.returncode == 2
    assert "the hub cannot be reached for ann/colors" in result.stderr
    assert not (files / "pulled").exists()


def test_what_is_not_on_the_hub(run, files, trained, hub):
    result = run("pull", "ann/nothing", "--out", "pulled")
    assert result.returncode == 2
    assert "ann/nothing is not on the hub, or you may not see it" in result.stderr
    result = run("push", trained / "nc", "a/b/c")
    assert result.returncode == 2
    assert "'a/b/c' is no name on the hub; use OWNER/NAME" in result.stderr
    hub.repos["ann/other"] = {"README.md": b"not a run"}
    result = run("pull", "ann/other", "--out", "pulled")
    assert result.returncode == 2
    assert "holds no config.toml" in result.stderr
    assert not (files / "pulled").exists()


def test_without_the_extra(run, files, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    hub_module._hub_run.cache_clear()
    result = run("push", trained / "nc", "ann/colors")
    assert result.returncode == 2
    assert "pip install 'h2hgcn[hub]'" in result.stderr
