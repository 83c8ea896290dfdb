import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid, TUDataset

from h2hgcn.datasets import DATASETS, DataError, DataWarning, benchmarks, load_dataset, task_features
from h2hgcn.datasets.registry import planetoid_files, tu_files

# nodes, undirected edges (a self-loop counts), features, classes
FACTS = {
    "disease_lp": (2665, 2664, 11, 2),
    "disease_nc": (1044, 1043, None, 2),
    "airport": (3188, 18631, 5, 4),
    "cora": (2708, 5278, 1433, 7),
    "pubmed": (19717, 44324, 500, 3),
}


@pytest.mark.filterwarnings("ignore:.*structural features")
@pytest.mark.parametrize("name", FACTS)
def test_graphs_have_the_published_counts(benchmark_data, name):
    graph = load_dataset(name, benchmark_data)
    nodes, edges, features, classes = FACTS[name]
    assert graph.num_nodes == len(graph.x) == len(graph.y) == nodes
    assert int((graph.edge_index[0] <= graph.edge_index[1]).sum()) == edges
    assert features is None or graph.x.shape[1] == features
    assert int(graph.y.max()) + 1 == classes
    assert graph.is_undirected()
    assert graph.name == name


@pytest.mark.parametrize(
    ("name", "graphs", "classes", "features"), [("dd", 1178, 2, 89), ("proteins", 1113, 2, 3), ("enzymes", 600, 6, 21)]
)
def test_collections_have_the_published_counts(benchmark_data, name, graphs, classes, features):
    collection = load_dataset(name, benchmark_data)
    assert len(collection) == graphs
    assert collection.num_classes == classes
    assert collection.num_node_features == collection[0].x.shape[1] == features
    assert collection[0].is_undirected()


def test_disease_classes(benchmark_data):
    assert torch.bincount(load_dataset("disease_lp", benchmark_data).y).tolist() == [1605, 1060]


def test_disease_without_features_says_so(benchmark_data):
    if (benchmark_data / "hgcn/disease_nc/disease_nc.feats.npz").exists():
        pytest.skip("the features are here")
    with pytest.warns(DataWarning, match="structural features instead"):
        graph = load_dataset("disease_nc", benchmark_data)
    assert "cannot be compared with published ones" in graph.notes[0]


@pytest.fixture
def disease_folder(benchmark_data, tmp_path):
    return shutil.copytree(benchmark_data / "hgcn/disease_nc", tmp_path / "hgcn/disease_nc")


def test_disease_with_features(disease_folder, tmp_path):
    features = sp.csc_matrix(np.arange(1044 * 3.0).reshape(1044, 3))
    sp.save_npz(disease_folder / "disease_nc.feats.npz", features)
    np.testing.assert_array_equal(load_dataset("disease_nc", tmp_path).x, features.toarray())


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (sp.csr_matrix(np.eye(5)), "must hold finite numbers for 1044 nodes"),
        (sp.csr_matrix(np.full((1044, 2), np.nan)), "must hold finite numbers"),
        (sp.csr_matrix(np.full((1044, 2), 1e300)), "must hold finite numbers"),
    ],
)
def test_bad_features(disease_folder, tmp_path, matrix, message):
    sp.save_npz(disease_folder / "disease_nc.feats.npz", matrix)
    with pytest.raises(DataError, match=message):
        load_dataset("disease_nc", tmp_path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"format": b"csr", "shape": (1044, 2), "data": [1.0]},
        {"format": b"csr", "shape": (1044, 2), "data": [1.0], "indices": [7], "indptr": [0] + [1] * 1044},
    ],
)
def test_features_that_are_no_matrix(disease_folder, tmp_path, arrays):
    np.savez(disease_folder / "disease_nc.feats.npz", **arrays)
    with pytest.raises(
        DataError, match=r"disease_nc.feats.npz (cannot be read as a SciPy|is not a valid sparse) matrix"
    ):
        load_dataset("disease_nc", tmp_path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("edges", lambda edges: edges + 1, "edges must be pairs .* of whole numbers from 0 to 3187"),
        ("edges", lambda edges: edges.T, "edges must be pairs"),
        ("edges", lambda edges: edges - 0.5, "edges must be pairs"),
        ("edges", lambda edges: edges[1:], "has 18630 different edges, but there are 18631"),
        ("feats", lambda feats: feats[:, :4], "feats must be 3188 × 5 finite numbers"),
        ("feats", lambda feats: feats[1:], "feats must be 3188 × 5"),
        ("feats", lambda feats: np.where(feats > 1, np.nan, feats), "feats must be 3188 × 5 finite"),
        ("node_ids", lambda ids: ids[1:], "node_ids, if there, must be 3188"),
        ("labels_nc", lambda labels: labels[1:], "labels_nc must be 3188 whole numbers from 0 to 3"),
        ("labels_nc", lambda labels: labels - 1, "labels_nc must be 3188 whole numbers from 0 to 3"),
        ("labels_nc", lambda labels: labels.astype(str), "labels_nc must be 3188 whole numbers"),
    ],
)
def test_bad_airports(benchmark_data, tmp_path, name, change, message):
    arrays = dict(np.load(benchmark_data / "hgcn/airport/airport.npz"))
    (tmp_path / "airport").mkdir()
    np.savez(tmp_path / "airport/airport.npz", **{**arrays, name: change(arrays[name])})
    with pytest.raises(DataError, match=message):
        load_dataset("airport", tmp_path)


def test_airports_in_a_single_array(tmp_path):
    (tmp_path / "airport").mkdir()
    with (tmp_path / "airport/airport.npz").open("wb") as file:
        np.save(file, np.eye(3))
    with pytest.raises(DataError, match=r"lacks the arrays .* it holds a single array"):
        load_dataset("airport", tmp_path)


def test_classes_of_a_collection_are_counted(benchmark_data, tmp_path):
    folder = shutil.copytree(benchmark_data / "tu/ENZYMES/raw", tmp_path / "tu/ENZYMES/raw")
    (folder / "ENZYMES_graph_labels.txt").write_text("1\n2\n" * 300)
    with pytest.raises(DataError, match="37282 edges and 2 classes, but ENZYMES has 600, 19580, 37282 and 6"):
        benchmarks.load_tu("enzymes", tmp_path)


def test_addresses_are_those_of_pyg():
    assert all(file.url.startswith(f"{Planetoid.url}/ind.cora.") for file in planetoid_files("cora").files)
    assert all(file.archive == f"{TUDataset.url}/DD.zip" for file in tu_files("dd").files)


def test_the_list_is_there_before_pytorch():
    code = "import sys; from h2hgcn.datasets import DATASETS; DATASETS['cora'].is_here(); print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_public_names_are_all_there():
    from h2hgcn import datasets

    assert dir(datasets) == sorted(datasets.__all__)
    assert all(getattr(datasets, name) is not None for name in datasets.__all__)


def test_unknown_attributes():
    with pytest.raises(ImportError, match="load_datasets"):
        from h2hgcn.datasets import load_datasets  # noqa: F401


def test_airport_labels_are_not_among_the_features_for_them(benchmark_data):
    graph = load_dataset("airport", benchmark_data)
    links, labels = task_features(graph, "lp"), task_features(graph, "nc")
    assert (links.shape[1], labels.shape[1]) == (5 + 6 + 1, 4 + 6 + 1)
    cuts = torch.tensor([7 / 7, 8 / 7, 9 / 7], dtype=torch.float64)
    torch.testing.assert_close(torch.bucketize(graph.x[:, 4].double(), cuts, right=True), graph.y)
    few = torch.tensor([[0], [1]])
    assert task_features(graph, "nc", few)[:, 4:10].argmax(1).sum() == 1


@pytest.mark.filterwarnings("ignore:.*structural features")
def test_nothing_is_written_to_the_root(benchmark_data, tmp_path):
    before = sorted(benchmark_data.rglob("*"))
    for name in ("cora", "airport", "disease_nc", "enzymes"):
        load_dataset(name, benchmark_data)
    assert sorted(benchmark_data.rglob("*")) == before


def test_generated_graphs_are_always_there(no_data):
    graph = load_dataset("disease")
    assert graph.name == "disease"
    assert graph.directed is False
    assert graph.notes == []
    assert load_dataset("Disease").name == "disease"
    assert DATASETS["disease"].is_here()
    assert DATASETS["synthetic"].is_here()
    assert not DATASETS["cora"].is_here()


def test_pyg_objects_come_back_as_they_are():
    data = Data(x=torch.ones(2, 1))
    assert load_dataset(data) is data


def test_unknown_names():
    with pytest.raises(DataError, match=r"'cora2' is not a named dataset .*; did you mean 'cora'\?"):
        load_dataset("cora2")


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


def test_a_changed_file_of_a_dataset_is_refused(benchmark_data, tmp_path):
    folder = shutil.copytree(benchmark_data / "planetoid/Cora/raw", tmp_path / "planetoid/Cora/raw")
    (folder / "ind.cora.graph").write_bytes(pickle.dumps(Malicious(tmp_path / "touched")))
    with pytest.raises(DataError, match="it is damaged or another version"):
        load_dataset("cora", tmp_path)
    assert not (tmp_path / "touched").exists()
