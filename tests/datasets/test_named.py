import pytest
import torch
from torch_geometric.data import Data

from h2hgcn.datasets import DATASETS, DataError, DataWarning, load_dataset, task_features

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
    for _ in range(2):  # from the files, then from the processed copy
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
    with pytest.raises(DataError, match=r"'cora2' is not a known dataset \(did you mean cora\?\); there are disease, "):
        load_dataset("cora2")
