import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from runs import SMALL, same_weights

from h2hgcn.datasets import DataError, convert_graph, load_graph
from h2hgcn.datasets import table_files as reader
from h2hgcn.datasets import tables as batches
from h2hgcn.datasets.on_disk import fingerprint, load_saved_graph, save_graph
from h2hgcn.tasks import LinkPrediction
from h2hgcn.tasks import model as scaling
from h2hgcn.tasks.model import FeatureScaling, ScaledFeatures
from h2hgcn.training import TrainingSettings, fit, load_run


def tables(folder, *, texts=False, parquet=False, weighted=False, num_nodes=60, num_edges=400, seed=0):
    """Edges, features and labels, rows in no order, with loops and repetitions."""
    random = np.random.RandomState(seed)
    ends = random.randint(0, num_nodes, (2, num_edges))
    ends[:, :num_nodes] = np.arange(num_nodes), np.roll(np.arange(num_nodes), 1)
    name = (lambda n: f"n{n}") if texts else (lambda n: int(n) * 3)
    ids = [name(n) for n in random.permutation(num_nodes)]
    numbers = random.standard_normal((num_nodes, 3)).astype(np.float32).round(3)
    made = {
        "edges": {
            "source": [name(n) for n in ends[0]],
            "target": [name(n) for n in ends[1]],
            **({"weight": random.randint(0, 9, num_edges).tolist()} if weighted else {}),
        },
        "features": {"id": ids, **{f"f{k}": numbers[:, k].tolist() for k in range(3)}},
        "labels": {"id": ids, "label": [f"c{n % 3}" for n in range(num_nodes)]},
    }
    paths = {}
    for what, columns in made.items():
        paths[what] = folder / f"{what}.{'parquet' if parquet else 'csv'}"
        table = pa.table(columns)
        if parquet:
            pq.write_table(table, paths[what])
        else:
            rows = zip(*columns.values(), strict=True)
            lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
            paths[what].write_text("\n".join(lines) + "\n")
    return paths


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("parquet", [False, True])
@pytest.mark.parametrize("texts", [False, True])
def test_a_converted_graph_is_the_graph_of_its_files(tmp_path, monkeypatch, texts, parquet, directed):
    monkeypatch.setattr(reader, "BLOCK_BYTES", 200)
    monkeypatch.setattr(reader, "BLOCK_ROWS", 50)
    paths = tables(tmp_path, texts=texts, parquet=parquet)
    folder = convert_graph(**paths, out=tmp_path / "big", directed=directed)
    found = load_graph(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = load_graph(**paths, directed=directed)
    assert found.node_ids.tolist() == wanted.node_ids.tolist()
    for name in ("edge_index", "x", "y"):
        assert torch.equal(found[name], wanted[name]), name
    assert found.directed == directed
    assert (found.feature_names, found.label_names) == (["f0", "f1", "f2"], wanted.label_names)
    assert len(found.notes) == 2
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize("directed", [False, True])
def test_weights_are_those_of_the_files(tmp_path, monkeypatch, directed):
    monkeypatch.setattr(reader, "BLOCK_BYTES", 200)
    monkeypatch.setattr(batches, "BLOCK", 30)
    edges = tables(tmp_path, weighted=True)["edges"]
    found = load_graph(convert_graph(edges, tmp_path / "big", directed=directed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = load_graph(edges, directed=directed)
    assert torch.equal(found.edge_weight, wanted.edge_weight)
    assert torch.equal(found.edge_index, wanted.edge_index)
    assert any("another weight than the first" in note for note in found.notes)
    assert "column 'weight' is taken for edge weights" in found.notes
    without = load_graph(convert_graph(edges, tmp_path / "big", weights=False))
    assert "edge_weight" not in without


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux alone tells what is mapped")
def test_arrays_are_mapped(tmp_path):
    folder = convert_graph(**tables(tmp_path), out=tmp_path / "big")
    graph = load_graph(folder)
    maps = Path("/proc/self/maps").read_text()
    assert str(folder / "x.npy") in maps
    assert str(folder / "edge_index.npy") in maps
    assert graph.x.data_ptr() % 64 == 0  # so that tasks do not copy them


def test_without_features_there_are_structural_ones(tmp_path):
    folder = convert_graph(tables(tmp_path)["edges"], tmp_path / "big")
    assert load_graph(folder).x.shape[0] == 60


def test_a_run_on_a_converted_graph_is_that_on_its_files_and_keeps_no_copy(tmp_path):
    paths = tables(tmp_path)
    folder = convert_graph(**paths, out=tmp_path / "big")
    settings = TrainingSettings(epochs=3, device="cpu", batch_size=50, fanout="4,3")
    task = LinkPrediction(scaling="standard")
    runs = [fit(task, load_graph(folder), SMALL, settings=settings, folder=tmp_path / "run")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs.append(fit(task, load_graph(**paths), SMALL, settings=settings))
    assert same_weights(*runs)
    assert (tmp_path / "run" / "graph.safetensors").stat().st_size < 500
    loaded = load_run(tmp_path / "run")
    assert loaded.evaluate("test") == runs[0].metrics["test"]
    (folder / "graph.json").rename(tmp_path / "gone.json")
    with pytest.raises(DataError, match="which is not there; put it back"):
        load_run(tmp_path / "run")


def test_where_a_graph_lies_does_not_change_its_fingerprint(tmp_path):
    paths = tables(tmp_path)
    one, other = (load_graph(convert_graph(**paths, out=tmp_path / name)) for name in ("one", "other"))
    assert fingerprint(one) == fingerprint(other)
    save_graph(tmp_path / "saved", one)
    assert fingerprint(load_saved_graph(tmp_path / "saved")) == fingerprint(one)


@pytest.mark.parametrize("what", ["edges", "features", "labels"])
def test_a_source_that_changed_is_noticed(tmp_path, what):
    paths = tables(tmp_path)
    folder = convert_graph(**paths, out=tmp_path / "big")
    content = paths[what].read_text()
    paths[what].write_text(content)  # another time, the same content
    load_graph(folder)
    paths[what].write_text(content.replace("3", "6", 1))
    with pytest.raises(DataError, match=rf"{what}.csv: it has changed since it was converted .* convert again"):
        load_graph(folder)
    paths[what].unlink()  # who has converted needs the sources no more
    load_graph(folder)


def test_an_array_that_changed_is_noticed(tmp_path):
    folder = convert_graph(**tables(tmp_path), out=tmp_path / "big")
    array = np.load(folder / "x.npy")
    np.save(folder / "x.npy", array + 1)
    with pytest.raises(DataError, match="damaged or changed"):
        load_graph(folder)
    (folder / "x.npy").unlink()
    with pytest.raises(DataError, match="is not there"):
        load_graph(folder)
    (folder / "graph.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(DataError, match="is damaged"):
        load_graph(folder)


def test_what_is_no_converted_graph_is_not_replaced(tmp_path):
    paths = tables(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("words")
    with pytest.raises(DataError, match="not a converted graph"):
        convert_graph(**paths, out=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()
    folder = convert_graph(**paths, out=tmp_path / "big")
    assert convert_graph(**paths, out=folder) == folder
    with pytest.raises(DataError, match="name nothing else"):
        load_graph(folder, features=paths["features"])


@pytest.mark.parametrize(
    ("what", "edit", "message"),
    [
        ("features", lambda text: "\n".join(text.split("\n")[:-3]), "has no features"),
        ("features", lambda text: text + "9999,1,2,3\n", "9999 has features, but no edge"),
        ("features", lambda text: text + text.split("\n")[1] + "\n", "comes a second time"),
        ("features", lambda text: text.replace(",", ",x", 6), "is not a number"),
        ("edges", lambda text: text + "1,2,3\n", "3 fields where the first line has 2"),
        ("edges", lambda text: text + ",2\n", "no node id"),
        (
            "edges",
            lambda text: text.replace("\n", ",-1\n").replace("target,-1", "target,weight"),
            "the weight -1.0 must be finite and not negative",
        ),
        (
            "edges",
            lambda text: text.replace("\n", ",much\n").replace("target,much", "target,weight"),
            "give every edge a number",
        ),
        ("edges", lambda text: text.split("\n")[0] + "\n", "no rows"),
        ("labels", lambda text: text.replace("label", "a").replace("\n", ",1\n"), "called 'label' if there are more"),
        ("features", lambda _: "id,feature,value\n1,red,2\n", "sparse features"),
    ],
)
def test_files_that_cannot_be_right_are_refused(tmp_path, what, edit, message):
    paths = tables(tmp_path)
    paths[what].write_text(edit(paths[what].read_text()))
    with pytest.raises(DataError, match=message):
        convert_graph(**paths, out=tmp_path / "big")
    assert not (tmp_path / "big").exists()


def test_large_features_are_scaled_in_parts(monkeypatch):
    x = torch.randn(500, 4) * torch.tensor([1.0, 5.0, 0.1, 0.0]) + 3
    whole = FeatureScaling("standard", x)
    wanted = ScaledFeatures(x).of(whole)
    monkeypatch.setattr(scaling, "_LARGE", 100)
    monkeypatch.setattr(scaling, "_BLOCK", 64)
    parts = FeatureScaling("standard", x)
    assert torch.allclose(parts.mean, whole.mean)
    assert torch.allclose(parts.scale, whole.scale)
    features = ScaledFeatures(x)
    assert torch.allclose(features.rows(parts, torch.tensor([3, 400])), wanted[[3, 400]], atol=1e-6)
    assert torch.allclose(features.rows(parts, slice(10, 20)), wanted[10:20], atol=1e-6)
