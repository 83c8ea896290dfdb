import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from h2hgcn.datasets.collection import FlatCollection
from h2hgcn.errors import DataError


def random_graphs(seed, count):
    """Graphs of a few nodes, some without edges, with features that name graph and node."""
    random = torch.Generator().manual_seed(seed)
    graphs = []
    for graph in range(count):
        nodes = int(torch.randint(1, 6, (), generator=random))
        edges = torch.randint(nodes, (2, int(torch.randint(5, (), generator=random))), generator=random)
        x = torch.stack([torch.full((nodes,), float(graph)), torch.arange(nodes).float()], dim=1)
        graphs.append(Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=torch.tensor([graph % 3])))
    return graphs


def pointers(sizes):
    return torch.tensor([0, *sizes]).cumsum(0)


def flat_arrays(graphs, dtype=torch.float32):
    return {
        "x": torch.cat([graph.x for graph in graphs]).to(dtype),
        "edge_index": torch.cat([graph.edge_index for graph in graphs], dim=1),
        "node_pointers": pointers([graph.num_nodes for graph in graphs]),
        "edge_pointers": pointers([graph.num_edges for graph in graphs]),
        "y": torch.cat([graph.y for graph in graphs]),
    }


def assert_same(got, expected):
    assert got.keys() == expected.keys()
    for key in ("x", "edge_index", "y"):
        torch.testing.assert_close(got[key], expected[key], rtol=0, atol=0)


@given(seed=st.integers(0, 1000), count=st.integers(1, 9), dtype=st.sampled_from([torch.float32, torch.uint8]))
def test_graphs_come_back_as_they_went_in(seed, count, dtype):
    graphs = random_graphs(seed, count)
    collection = FlatCollection("few", **flat_arrays(graphs, dtype))
    assert len(collection) == count
    for got, expected in zip(collection, graphs, strict=True):
        assert_same(got, expected)


@given(seed=st.integers(0, 1000), chosen=st.lists(st.integers(-7, 6), min_size=1))
def test_selections_of_selections(seed, chosen):
    graphs = random_graphs(seed, 9)
    part = FlatCollection("few", **flat_arrays(graphs))[1:8][torch.tensor(chosen)]
    expected = [graphs[1:8][i] for i in chosen]
    for got, graph in zip(part, expected, strict=True):
        assert_same(got, graph)
    assert part.y.tolist() == [int(graph.y) for graph in expected]


def test_a_selection_keeps_the_classes_and_features_of_the_whole():
    collection = FlatCollection("few", **flat_arrays(random_graphs(0, 9)))
    part = collection[collection.y == 0]
    assert len(part) == 3
    for each in (collection, part):
        assert (each.num_classes, each.num_node_features, each.num_features, each.name) == (3, 2, 2, "few")


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_number_nodes_across_graphs(workers):
    graphs = random_graphs(1, 7)
    collection = FlatCollection("few", **flat_arrays(graphs))
    seen = 0
    for batch in DataLoader(collection, batch_size=3, num_workers=workers):
        for got, expected in zip(batch.to_data_list(), graphs[seen : seen + 3], strict=True):
            assert_same(got, expected)
        # an edge must stay within its graph
        assert torch.equal(*batch.batch[batch.edge_index])
        seen += batch.num_graphs
    assert seen == 7


def test_a_pickled_collection_is_the_same():
    graphs = random_graphs(2, 4)
    for got, expected in zip(
        pickle.loads(pickle.dumps(FlatCollection("few", **flat_arrays(graphs)))), graphs, strict=True
    ):
        assert_same(got, expected)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": torch.zeros(0, dtype=torch.long)}, "one class a graph"),
        ({"y": torch.zeros(3)}, "one class a graph"),
        ({"y": torch.tensor([0, -1, 0])}, "one class a graph"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_together(changed, message):
    arrays = {
        "x": torch.zeros(5, 1),
        "edge_index": torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]]),
        "node_pointers": torch.tensor([0, 2, 3, 5]),
        "edge_pointers": torch.tensor([0, 2, 2, 4]),
        "y": torch.tensor([0, 1, 0]),
    }
    with pytest.raises(DataError, match=message):
        FlatCollection("few", **arrays | changed)
