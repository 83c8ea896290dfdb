"""Graphs of networkx, SciPy and PyG, and the files that hold one."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData, InMemoryDataset

from h2hgcn.datasets import DataError, load_graph, split_nodes

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")

ARROWS = torch.tensor([[0, 1], [1, 2]])
BOTH_WAYS = torch.tensor([[0, 1], [1, 0]])
GRAPH = '<graph edgedefault="undirected"><node id="{0}"/><node id="{1}"/><edge source="{0}" target="{1}"/></graph>'


def graphml(path, *graphs):
    path.write_text(f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{"".join(graphs)}</graphml>')
    return path


NODES = {
    "numpy integers": ([np.int64(3), np.int32(12)], [3, 12]),
    "beyond 64 bits": ([2**70, 1], ["1", str(2**70)]),
    "objects": ([(0, 1), "a"], ["(0, 1)", "a"]),
}


@pytest.mark.parametrize(("nodes", "ids"), NODES.values(), ids=NODES.keys())
def test_ids_of_networkx(nodes, ids):
    graph = load_graph(
        nx.path_graph(nodes), labels={str(node) if isinstance(ids[0], str) else node: 0 for node in nodes}
    )
    assert graph.node_ids.tolist() == ids


@pytest.mark.parametrize(
    ("written", "ids"), [(("7", "-5"), [-5, 7]), ((str(2**70), "1"), ["1", str(2**70)]), (("²", "1"), ["1", "²"])]
)
def test_ids_of_graphml(tmp_path, written, ids):
    assert load_graph(graphml(tmp_path / "g.graphml", GRAPH.format(*written))).node_ids.tolist() == ids


def test_two_graphs_in_a_file(tmp_path):
    two = graphml(tmp_path / "two.graphml", GRAPH.format("a", "b"), GRAPH.format("c", "d"))
    with pytest.raises(DataError, match="holds 2 graphs"):
        load_graph(two)


@pytest.mark.parametrize("source", [nx.path_graph(3), Data(edge_index=BOTH_WAYS, num_nodes=3), sp.csr_array(np.eye(3))])
def test_nodes_that_the_graph_does_not_know_are_kept(source):
    graph = load_graph(source, features={0: 1, 1: 2, 2: 3, 9: 4}, unlinked="keep")
    assert graph.node_ids.tolist() == [0, 1, 2, 9]
    assert graph.x.tolist() == [[1], [2], [3], [4]]


BAD_DATA = {
    "long x": (Data(x=torch.ones(5, 2), edge_index=ARROWS, num_nodes=3), "x has 5 rows for 3 nodes"),
    "short x": (Data(x=torch.ones(2, 2), edge_index=ARROWS, num_nodes=3), "x has 2 rows for 3 nodes"),
    "a label of the graph": (Data(y=torch.tensor([1]), edge_index=ARROWS, num_nodes=3), "y has 1 rows for 3 nodes"),
    "short ids": (Data(node_ids=[1, 2, 3], edge_index=ARROWS, num_nodes=4), "give one id each"),
    "pairs": (
        Data(edge_index=torch.tensor([[0, 1], [1, 2], [2, 3]]), num_nodes=4),
        "give one row of sources and one of targets",
    ),
    "floats": (Data(edge_index=ARROWS.float(), num_nodes=4), "name nodes by whole numbers"),
    "a list of graphs": (
        [nx.path_graph(3), nx.path_graph(4)],
        "a list of networkx graphs; for a collection, make each",
    ),
    "several kinds": (HeteroData(), "not from a HeteroData"),
    "a collection": (InMemoryDataset(), "not from a InMemoryDataset"),
}


@pytest.mark.parametrize(("data", "message"), BAD_DATA.values(), ids=BAD_DATA.keys())
def test_pyg_graphs_that_do_not_fit_together(data, message):
    with pytest.raises(DataError, match=message):
        load_graph(data)


def test_nodes_are_counted_by_their_ids_and_labels():
    assert load_graph(Data(edge_index=ARROWS, y=torch.zeros(5, dtype=torch.long))).num_nodes == 5
    assert load_graph(Data(edge_index=ARROWS, node_ids=list("abcd"))).node_ids.tolist() == list("abcd")


def test_direction_of_a_symmetric_pyg_graph():
    assert not load_graph(Data(num_nodes=2, edge_index=BOTH_WAYS)).directed
    assert load_graph(Data(num_nodes=2, edge_index=BOTH_WAYS, directed=True)).directed
    assert load_graph(Data(num_nodes=2, edge_index=BOTH_WAYS, edge_weight=torch.tensor([1.0, 2.0]))).directed


def test_masks_go_with_their_nodes():
    masks = {f"{part}_mask": torch.arange(3) == k for k, part in enumerate(("train", "val", "test"))}
    data = Data(edge_index=ARROWS, y=torch.tensor([0, 1, 0]), node_ids=["c", "a", "b"], **masks)
    split = split_nodes(load_graph(data), protocol="planetoid")
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([2], [0], [1])
    several = load_graph(Data(num_nodes=3, edge_index=ARROWS, train_mask=torch.ones(3, 10, dtype=torch.bool)))
    assert "train_mask" not in several
    assert "train_mask is not used: it is bool of shape (3, 10)" in several.notes[0]


@pytest.mark.parametrize("values", [[[1e39], [1]], sp.csr_array([[1e39], [1]])])
def test_features_must_fit_into_single_precision(values):
    with pytest.raises(DataError, match=r"row 0: .* beyond what single precision holds"):
        load_graph([(0, 1)], values)
