"""``h2hgcn explore``: runs and files, the exported page, the server."""

import base64
import json
import re
import shutil
import signal
import sys

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from h2hgcn.training import load_run


def held(path):
    """The data of an exported page: what is told about it, and its buffers."""
    (text,) = re.findall(r'<script type="application/json" id="explorer-data">(.*?)</script>', path.read_text())
    data = json.loads(text)
    arrays = {
        name: np.frombuffer(base64.b64decode(data["buffers"][name]), about["type"])
        for name, about in data["about"]["buffers"].items()
    }
    return data["about"], arrays


def columns(about):
    return [column["name"] for column in about["columns"]]


def test_a_run_of_links(run, trained, tmp_path):
    result = run("explore", trained / "lp", "--export", "page.html")
    assert (result.returncode, result.stderr) == (0, "40 points: page.html\n")
    about, arrays = held(tmp_path / "page.html")
    assert (about["count"], about["links"], about["dim"]) == (40, 80, about["dim"])
    assert columns(about) == ["radius", "degree"]
    opened = load_run(trained / "lp")
    wanted = opened.recommend("n10", 10)
    rows = slice(10 * about["lists"], 11 * about["lists"])
    assert [f"n{node:02}" for node in arrays["links_node"][rows]] == [row.node for row in wanted]
    np.testing.assert_allclose(arrays["links_probability"][rows], [row.probability for row in wanted], rtol=1e-5)
    np.testing.assert_allclose(arrays["links_distance"][rows], [row.distance for row in wanted], rtol=1e-4)


def test_a_run_of_classes_has_predictions(run, trained, tmp_path):
    assert run("explore", trained / "nc", "--export", "page.html").returncode == 0
    about, arrays = held(tmp_path / "page.html")
    assert columns(about) == ["label", "radius", "degree", "prediction", "confidence"]
    label, prediction = about["columns"][0], about["columns"][3]
    assert label["categories"] == ["blue", "green", "red"]
    sure, number = load_run(trained / "nc").predict().max(1)
    names = [prediction["categories"][code] for code in arrays["column_3"]]
    assert names == [load_run(trained / "nc").classes[k] for k in number.tolist()]
    np.testing.assert_allclose(arrays["column_4"], sure, rtol=1e-5)


def test_a_run_of_graphs_is_shown_without_links(run, trained, tmp_path):
    assert run("explore", trained / "gc", "--export", "page.html").returncode == 0
    about, _ = held(tmp_path / "page.html")
    assert (about["count"], about["links"], columns(about)) == (40, None, ["label", "radius"])


@pytest.mark.parametrize("suffix", ["parquet", "npz", "csv"])
@pytest.mark.parametrize("coordinates", ["lorentz", "poincare", "klein"])
def test_files_of_embeddings(run, files, trained, suffix, coordinates):
    assert run("embed", trained / "nc", "--out", f"e.{suffix}", "--coordinates", coordinates).returncode == 0
    more = ["--coordinates", coordinates] if suffix == "csv" else []
    assert run("explore", f"e.{suffix}", "--export", "page.html", "--edges", "my.csv", *more).returncode == 0
    about, arrays = held(files / "page.html")
    assert (about["title"], about["count"], about["links"]) == ("e", 40, 80)
    run("explore", trained / "nc", "--export", "run.html")
    _, own = held(files / "run.html")
    np.testing.assert_allclose(np.abs(arrays["points"]), np.abs(own["points"]), atol=1e-4)
    np.testing.assert_array_equal(arrays["link_targets"], own["link_targets"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "none does not exist; give the folder of a run"),
        (["my.csv"], "needs one column 'id'"),
        (["points.csv"], "does not say which coordinates it holds"),
        (["points.csv", "--coordinates", "euclidean"], "the points are Euclidean"),
        (["points.csv", "--coordinates", "poincare", "--edges", "my.csv"], "the node n00, which has no point"),
        (["lp", "--edges", "my.csv"], "--edges: only for a file of embeddings"),
        (["points.csv", "--coordinates", "poincare", "--export", "page.txt"], r"end the name with .html"),
        (["lp", "--export", "my.csv"], "my.csv is there already"),
        (["lp", "--export", "my.csv/page.html"], "my.csv is a file, so nothing can be written below it"),
        (["lp", "--port", "70000"], "'--port'"),
    ],
)
def test_a_mistake_is_a_message_and_exit_code_2(run, files, trained, arguments, message):
    (files / "points.csv").write_text("id,x1,x2\n1,0.1,0.2\n2,0.3,0\n")
    if "--export" not in arguments and "--port" not in arguments:
        arguments = [*arguments, "--export", "page.html"]
    result = run("explore", trained / "lp" if arguments[0] == "lp" else arguments[0], *arguments[1:])
    assert result.returncode == 2
    assert message in result.stderr
    assert not (files / "page.html").exists()


@pytest.mark.parametrize("change", ["fewer", "turned", "renamed"])
def test_points_that_are_not_the_graphs_are_refused(run, trained, tmp_path, change):
    """Edges and predictions go by rows, so that they would be those of other nodes."""
    shutil.copytree(trained / "lp", tmp_path / "lp")
    table = pq.read_table(tmp_path / "lp" / "embeddings.parquet")
    changed = {
        "fewer": table.slice(0, 30),
        "turned": table.take(list(range(40))[::-1]),
        "renamed": table.set_column(0, "id", pa.array([f"z{k}" for k in range(40)])),
    }
    pq.write_table(changed[change], tmp_path / "lp" / "embeddings.parquet")
    result = run("explore", tmp_path / "lp", "--export", "page.html")
    assert result.returncode == 2
    assert "embeddings.parquet has other nodes than the run's graph" in result.stderr


def test_a_file_with_edges_says_no_more_than_it_has_to(run, files):
    (files / "points.csv").write_text("id,x1,x2,kind,\n1,0.1,0.2,,7\n2,0.3,0,b,8\n")
    (files / "e.csv").write_text("source,target\n1,2\n")
    result = run("explore", "points.csv", "--coordinates", "poincare", "--edges", "e.csv", "--export", "page.html")
    assert (result.returncode, result.stderr) == (0, "2 points: page.html\n")
    about, arrays = held(files / "page.html")
    assert columns(about) == ["radius", "degree", "kind", "no name"]
    assert arrays["column_2"].tolist() == [0xFFFF, 0]


def test_a_run_without_its_graph_says_so_and_so_does_one_of_damaged_points(run, trained, tmp_path):
    shutil.copytree(trained / "nc", tmp_path / "nc")
    (tmp_path / "nc" / "graph.safetensors").unlink()
    result = run("explore", "nc", "--export", "page.html")
    assert result.returncode == 0
    assert "graph.safetensors is missing, so there are no edges" in result.stderr
    points = tmp_path / "nc" / "embeddings.parquet"
    data = points.read_bytes()
    points.write_bytes(data.replace(b"blue", b"glue"))
    assert points.read_bytes() != data
    result = run("explore", "nc", "--export", "other.html")
    assert "embeddings.parquet is not as it was when the run finished: it was damaged or edited" in result.stderr


def test_a_missing_extra_is_said(run, trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr("h2hgcn.cli.explore.find_spec", lambda name: None if name == "uvicorn" else True)
    result = run("explore", trained / "lp")
    assert result.returncode == 2
    assert "uvicorn is not installed; pip install 'h2hgcn[explorer]'" in result.stderr
    assert run("explore", trained / "lp", "--export", "page.html").returncode == 0


def test_served_until_interrupted(run, process, trained):
    server = process("explore", trained / "lp", "--no-browser", "--port", 0)
    address = server.stdout.readline().split()[0]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
    answer = None
    while answer is None:
        try:
            answer = httpx.get(f"{address}api/nodes/10/links?k=3")
        except httpx.ConnectError:
            continue
    wanted = load_run(trained / "lp").recommend("n10", 3)
    assert [f"n{entry['node']:02}" for entry in answer.json()] == [row.node for row in wanted]
    taken = run("explore", trained / "lp", "--no-browser", "--port", address.rstrip("/").rpartition(":")[2])
    assert taken.returncode == 2
    assert "is in use; choose another with --port" in taken.stderr
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=20)
    assert (server.returncode, said) == (0, "")
