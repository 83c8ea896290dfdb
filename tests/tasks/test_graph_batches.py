from operator import attrgetter

import numpy as np
import pytest
import torch
from runs import shapes
from torch_geometric.data import Data

from h2hgcn.errors import DataError
from h2hgcn.tasks import GraphClassification
from h2hgcn.tasks import graphs as graph_batches
from h2hgcn.tasks.graphs import GraphBatches, PreparedGraph, batch_of


def weighted(graphs):
    """Weights for every second graph only."""
    some = [graph.clone() for graph in graphs]
    for number, graph in enumerate(some[::2]):
        graph.edge_weight = 0.5 + torch.rand(graph.edge_index.shape[1], generator=torch.Generator().manual_seed(number))
    return some


def assert_same(first, second):
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.graph_of_node, second.graph_of_node)
    assert torch.equal(first.y, second.y)
    for part in ("crow", "col", "weights", "transpose.crow", "transpose.col", "transpose.order"):
        assert torch.equal(attrgetter(part)(first.adjacency), attrgetter(part)(second.adjacency))


@pytest.mark.parametrize("make", [list, weighted])
@pytest.mark.parametrize("room", [0, 1000, 1 << 31])
def test_batches_are_the_same_whether_kept_or_made(make, room, monkeypatch):
    monkeypatch.setattr(graph_batches, "_ROOM", room)
    graphs = make(shapes())
    y = torch.arange(24) % 2
    batches = GraphBatches(graphs, y)
    for chosen in ([3, 1, 23, 3], [3, 0, 5], [1], [3, 1, 23, 3]):
        batch = batches.of(np.array(chosen))
        assert_same(batch, batch_of([PreparedGraph.of(graphs[k], "") for k in chosen], y[chosen]))


def test_a_large_collection_is_not_read_whole(monkeypatch):
    class Counted(list):
        read = 0

        def __getitem__(self, k):
            Counted.read += 1
            return super().__getitem__(k)

    monkeypatch.setattr(graph_batches, "_ROOM", 10)
    GraphBatches(Counted(shapes()), torch.zeros(24, dtype=torch.long)).of(np.array([2, 7]))
    assert Counted.read == 3  # one fills the room


def test_sparse_features_of_a_large_collection_stay_sparse(monkeypatch):
    monkeypatch.setattr(graph_batches, "_ROOM", 10)
    dense = list(shapes())
    sparse = [graph.clone() for graph in dense]
    for graph in sparse:
        graph.x = graph.x.to_sparse()
    y = torch.zeros(24, dtype=torch.long)
    batch = GraphBatches(sparse, y).of(np.array([2, 7]))
    assert batch.x.is_sparse
    assert torch.equal(batch.x.to_dense(), GraphBatches(dense, y).of(np.array([2, 7])).x)


def test_missing_weights_are_ones():
    graphs = weighted(shapes())
    filled = [graph.clone() for graph in graphs]
    for graph in filled[1::2]:
        graph.edge_weight = torch.ones(graph.edge_index.shape[1])
    y = torch.zeros(24, dtype=torch.long)
    for order in (np.array([0, 1]), np.array([1, 0])):
        assert_same(GraphBatches(graphs, y).of(order), GraphBatches(filled, y).of(order))


def test_attributes_that_only_some_graphs_have_do_not_matter():
    graphs = list(shapes())
    graphs[2].pos = torch.ones(len(graphs[2].x), 2)
    graphs[3].name = "odd"
    assert GraphBatches(graphs, torch.arange(24)).of(np.arange(24)).x.shape[0] == sum(len(graph.x) for graph in graphs)


def test_graphs_without_nodes_or_edges():
    empty = Data(x=torch.ones(0, 5), edge_index=torch.empty(2, 0, dtype=torch.long))
    alone = Data(x=torch.ones(2, 5), edge_index=torch.empty(2, 0, dtype=torch.long))
    batch = GraphBatches([empty, alone, *shapes()], torch.arange(26)).of(np.array([0, 1, 2, 0]))
    assert batch.graph_of_node.tolist() == [1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (None, "graph 1 has no features"),
        (torch.full((4, 5), float("inf")), "graph 1 hold NaN or infinity, first in row 0"),
        (torch.ones(4), "of graph 1 are a Tensor of shape"),
        (torch.ones(3, 5), "graph 1 has 4 nodes, but 3 rows"),
    ],
)
def test_features_are_checked(x, message):
    graphs = list(shapes())
    graphs[1] = Data(x=x, edge_index=graphs[0].edge_index, num_nodes=4)
    with pytest.raises(DataError, match=message):
        GraphBatches(graphs, torch.arange(24)).of(np.array([0, 1]))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"edge_index": torch.tensor([[0, 1, 4], [1, 2, 0]])}, "graph 1: edge_index names node 4, but .* 4 nodes"),
        ({"edge_index": torch.tensor([[0, -1], [1, 2]])}, "graph 1: edge_index names node -1"),
        ({"edge_index": torch.rand(2, 3)}, "graph 1: edge_index is torch.float32"),
        ({"edge_index": None}, "graph 1 has no tensor edge_index"),
        ({"edge_weight": torch.zeros(8)}, "all edge weights of graph 1 are zero"),
        ({"edge_weight": -torch.ones(8)}, "edge_weight of graph 1 holds -1"),
        ({"edge_weight": torch.full((8,), float("nan"))}, "edge_weight of graph 1 holds numbers that are not finite"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight of graph 1 is a Tensor of shape \(3,\)"),
        ({"edge_weight": [1.0] * 8}, "edge_weight of graph 1 is a list"),
    ],
)
def test_edges_are_checked_graph_by_graph(attributes, message):
    """In a batch, a node that a graph does not have would be one of its neighbour's."""
    graphs = list(shapes())
    graphs[1] = Data(**{"x": torch.ones(4, 5), "edge_index": graphs[0].edge_index} | attributes)
    with pytest.raises(DataError, match=message):
        GraphBatches(graphs, torch.arange(24)).of(np.array([0, 1]))


def test_every_training_graph_is_in_one_batch_of_an_epoch():
    problem = GraphClassification(num_folds=3, batch_size=5).bind(shapes())
    for _ in range(2):  # made, then taken
        batches = list(problem.batches(np.random.RandomState(0)))
        assert [len(batch.y) for batch in batches] == [5, 5, 4]
        nodes = sum(len(shapes()[int(k)].x) for k in problem.split.train)
        assert sum(len(batch.x) for batch in batches) == nodes
