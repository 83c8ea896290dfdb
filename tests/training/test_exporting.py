"""Exported programs give what the run gives, where this package is not."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from runs import SMALL, scale_free, small_data, small_fit

from h2hgcn.errors import DataError, DataWarning
from h2hgcn.models import ENCODERS, H2HGCN
from h2hgcn.tasks import Embedding, LinkPrediction, NodeClassification
from h2hgcn.tasks.neighborhoods import FixedNeighborhoods, Neighborhoods

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def links():
    """A run whose probabilities need all that a decoder can have."""
    task = LinkPrediction(neighborhood_terms=True, decoder="directed", scaling="standard")
    run = small_fit(task, scale_free(directed=True), epochs=30)
    assert run.model.head.sees_neighborhoods
    assert run.model.head.calibrated
    return run


def close(found, expected):
    difference = np.abs(found - expected.numpy()) / np.maximum(np.abs(expected.numpy()), 1)
    return difference.max() <= TOLERANCE


def test_links_in_onnx_runtime(links, tmp_path):
    onnx = pytest.importorskip("onnx", reason="the extra export is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra export is not installed")
    made = links.export(tmp_path / "links.onnx")
    assert made.inputs == {"x": (200, 8), "pairs": ("num_pairs", 2)}
    assert made.outputs == {"embeddings": (200, 5), "probabilities": ("num_pairs",)}
    assert made.difference <= TOLERANCE
    model = onnx.load(tmp_path / "links.onnx")
    onnx.checker.check_model(model)
    assert [imported.version for imported in model.opset_import if not imported.domain] == [18]
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert (about["h2hgcn.task"], about["h2hgcn.space"]) == ("lp", "lorentz")
    session = onnxruntime.InferenceSession(tmp_path / "links.onnx")
    random = np.random.RandomState(0)
    for count in (1, 500):
        pairs = random.permutation(200)[:2] if count == 1 else random.randint(0, 200, (count, 2))
        pairs = pairs.reshape(-1, 2)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        points, chances = session.run(None, {"x": links.data.x.numpy(), "pairs": pairs})
        assert close(points, links.embeddings)
        assert close(chances, links.predict(pairs))


def test_other_features_of_the_same_nodes(links, tmp_path):
    """Features are an input: the program is not a table of the run's points."""
    links.export(tmp_path / "links.pt2", part="encoder")
    other = links.data.clone()
    other.x = other.x.flip(0)
    problem = links.task.bind(other)
    expected = problem.points(links.model).detach()
    module = torch.export.load(tmp_path / "links.pt2").module()
    assert close(module(x=other.x)["embeddings"].numpy(), expected)
    assert not close(module(x=links.data.x)["embeddings"].numpy(), expected)


def test_nodes_with_what_their_features_add(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra export is not installed")
    task = NodeClassification(feature_terms=True, scaling="row", num_centroids=6)
    run = small_fit(task, model=partial(ENCODERS["hgcn"], dim=4, attention=True))
    terms = run.model.head.features
    terms.weights.normal_(generator=torch.Generator().manual_seed(0))
    terms.mix.copy_(torch.tensor([0.7, 0.6]))
    terms.unit_rows.fill_(True)
    made = run.export(tmp_path / "nodes.onnx", opset=20)
    assert made.difference <= TOLERANCE
    points, chances = onnxruntime.InferenceSession(tmp_path / "nodes.onnx").run(None, {"x": run.data.x.numpy()})
    assert close(points, run.embeddings)
    assert close(chances, run.predict())


def test_a_graph_of_a_collection_runs_without_this_package(tmp_path):
    run = small_fit("gc", model=partial(ENCODERS["gin"], dim=4))
    with pytest.raises(DataError, match="--task gc is in the way"):
        run.export(tmp_path / "graph.pt2")
    made = run.export(tmp_path / "graph.pt2", graph=3)
    assert made.difference <= TOLERANCE
    torch.save(run.data[3].x, tmp_path / "x.pt")
    code = (
        "import sys, torch; module = torch.export.load('graph.pt2').module(); "
        "print(module(x=torch.load('x.pt').float())['probabilities'].tolist()); "
        "assert not any(name.startswith('h2hgcn') for name in sys.modules)"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert np.allclose(eval(result.stdout), run.predict([3]), atol=TOLERANCE)


OTHERS = [("gat", {}), ("hgcn", {"local_aggregation": True, "manifold": "ball"})]


@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_other_encoders(name, options, tmp_path):
    run = small_fit(model=partial(ENCODERS[name], dim=4, **options))
    assert run.export(tmp_path / "m.pt2").difference <= TOLERANCE


def test_features_that_nobody_asks_for_are_no_input(tmp_path):
    run = small_fit(Embedding(), model=partial(ENCODERS["hyp"], dim=3))
    made = run.export(tmp_path / "tree.pt2")
    assert made.inputs == {}
    assert list(made.outputs) == ["embeddings"]
    assert made.difference == 0


def test_a_difference_is_reported(links, tmp_path, monkeypatch):
    monkeypatch.setattr("h2hgcn.training.exporting._TOLERANCE", 0)
    with pytest.warns(DataWarning, match=r"outputs of .*\.pt2 differ from the run's by up to"):
        links.export(tmp_path / "links.pt2", part="encoder")


def picky(values):
    return values if values.sum() > 0 else values / 2


def test_a_function_of_your_own_that_is_in_the_way(tmp_path):
    run = small_fit(model=partial(H2HGCN, dim=4, activation=picky))
    (tmp_path / "m.pt2").write_text("kept")
    with pytest.raises(DataError, match=r"model.activation=<function picky.*>, a function of your own, is in the way"):
        run.export(tmp_path / "m.pt2")
    assert (tmp_path / "m.pt2").read_text() == "kept"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("m.bin", {}, r"m.bin: end the name with .onnx or .pt2"),
        ("m.bin", {"format": "tflite"}, "format='tflite' is not known"),
        ("m.onnx", {"part": "head"}, "part='head' is not known"),
        ("m.onnx", {"opset": 17}, "opset=17: these models need"),
        ("m.onnx", {"graph": 3}, "graph= chooses one of a collection"),
    ],
)
def test_bad_arguments(links, tmp_path, name, options, message):
    with pytest.raises(DataError, match=message):
        links.export(tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_without_the_extra(links, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(DataError, match=r"pip install 'h2hgcn\[export\]'"):
        links.export(tmp_path / "m.onnx")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("nodes", "edges"), [(30, 80), (50, 20), (5, 0), (200, 3000)])
def test_neighborhoods_by_tensors(directed, nodes, edges):
    random = np.random.RandomState(0)
    given, pairs = random.randint(0, nodes, (edges, 2)), random.randint(0, nodes, (300, 2))
    pairs[: min(edges, 20)] = given[:20]
    graph = Neighborhoods(given, nodes, directed)
    found = FixedNeighborhoods(graph)(torch.from_numpy(pairs)).numpy()
    assert np.allclose(found, graph.features(pairs), rtol=1e-12)


def test_the_run_is_left_as_it_was(tmp_path):
    run = small_fit(model=SMALL, data=small_data())
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    run.export(tmp_path / "m.pt2", part="encoder")
    assert all(parameter.requires_grad for parameter in run.model.head.parameters())
    assert all(torch.equal(value, before[name]) for name, value in run.model.state_dict().items())
    again = run.task.bind(run.data).points(run.model)
    assert torch.equal(again, run.embeddings)
