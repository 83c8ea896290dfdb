import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import generator, random_graph, seeds
from torch_geometric.data import Batch, Data

from h2hgcn.graph.large import BlockDiagonal
from h2hgcn.layers import prepare_adjacency

PARTS = ("crow", "col", "weights", "transpose_crow", "transpose_col", "transpose_order")


def some_graphs(sizes, seed):
    """Weighted graphs, some of them without nodes, without edges, or with nodes that have none."""
    graphs = []
    for number, (nodes, edges) in enumerate(sizes):
        index, weight = random_graph(max(nodes, 1), edges if nodes else 0, seed + number)
        graphs.append(Data(edge_index=index, edge_weight=weight, x=torch.zeros(nodes, 1)))
    return graphs


def joined(graphs):
    batch = Batch.from_data_list(graphs)
    return prepare_adjacency(batch.edge_index, batch.edge_weight, batch.num_nodes), batch


sizes = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), min_size=1, max_size=6)


@given(sizes=sizes, seed=seeds, data=st.data())
def test_blocks_are_what_would_have_been_prepared(sizes, seed, data):
    graphs = some_graphs(sizes, seed)
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8))
    whole, batch = joined(graphs)
    taken, nodes, graph_of_node = BlockDiagonal(whole, batch.ptr).take(torch.tensor(chosen))
    expected, expected_batch = joined([graphs[k] for k in chosen])
    for part in PARTS:
        assert getattr(taken, part).dtype == getattr(expected, part).dtype
        assert torch.equal(getattr(taken, part), getattr(expected, part)), part
    assert torch.equal(graph_of_node, expected_batch.batch)
    assert nodes.tolist() == [node for k in chosen for node in range(int(batch.ptr[k]), int(batch.ptr[k + 1]))]


def test_matrices_are_equal_to_the_last_bit():
    """Whether a batch was prepared or taken must not be seen in what is learnt."""
    graphs = some_graphs([(5, 9), (7, 20), (1, 0), (6, 3)], 0)
    whole, batch = joined(graphs)
    taken, *_ = BlockDiagonal(whole, batch.ptr).take(torch.tensor([3, 1]))
    expected, _ = joined([graphs[3], graphs[1]])
    for weights in ("symmetric", "uniform"):
        for first, second in zip(
            taken.matrix(weights, torch.float32), expected.matrix(weights, torch.float32), strict=True
        ):
            assert torch.equal(first, second)


def test_random_order_of_many():
    graphs = some_graphs([(k % 5, 3 * k % 11) for k in range(40)], 1)
    whole, batch = joined(graphs)
    order = torch.randperm(40, generator=generator(0))
    taken, nodes, _ = BlockDiagonal(whole, batch.ptr).take(order)
    assert sorted(nodes.tolist()) == list(range(batch.num_nodes))
    assert taken.num_nodes == batch.num_nodes
    assert len(taken.col) == len(whole.col)
