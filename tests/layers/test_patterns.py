import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import generator, random_graph, seeds
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_undirected

from h2hgcn.geometry import lorentz
from h2hgcn.graph.large import PatternAdjacency, joined_patterns, pattern_of
from h2hgcn.layers import H2HConv, prepare_adjacency

PARTS = ("crow", "col", "weights", "transpose_crow", "transpose_col", "transpose_order")


def undirected(sizes, seed):
    graphs = []
    for number, (nodes, edges) in enumerate(sizes):
        index, _ = random_graph(nodes, edges, seed + number)
        graphs.append(Data(edge_index=to_undirected(index, num_nodes=nodes), x=torch.zeros(nodes, 1)))
    return graphs


def both(graphs):
    """Side by side by their patterns, and as they are prepared otherwise."""
    patterns = [pattern_of(prepare_adjacency(graph.edge_index, None, graph.num_nodes)) for graph in graphs]
    adjacency, graph_of_node = joined_patterns(patterns)
    batch = Batch.from_data_list(graphs)
    assert torch.equal(graph_of_node, batch.batch)
    return adjacency, prepare_adjacency(batch.edge_index, None, batch.num_nodes)


@given(sizes=st.lists(st.tuples(st.integers(1, 7), st.integers(0, 20)), min_size=1, max_size=5), seed=seeds)
def test_patterns_side_by_side_are_the_adjacency_of_all(sizes, seed):
    taken, prepared = both(undirected(sizes, seed))
    assert isinstance(taken, PatternAdjacency)
    for part in PARTS:
        assert torch.equal(getattr(taken, part), getattr(prepared, part)), part
        assert getattr(taken, part).dtype == getattr(prepared, part).dtype
    assert taken.unweighted
    for first, second in zip(taken.edges(), prepared.edges(), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("kind", ["symmetric", "uniform", "gcn", "mean"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matrices_have_the_weights_of_the_prepared_ones(kind, dtype):
    taken, prepared = both(undirected([(40, 300), (1, 0), (9, 12)], 3))
    for first, second in zip(taken.kept_matrix(kind, dtype), prepared.kept_matrix(kind, dtype), strict=True):
        assert first.dtype == second.dtype
        torch.testing.assert_close(first, second, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert taken.kept_matrix(kind, dtype) is taken.kept_matrix(kind, dtype)


def test_layers_learn_the_same_from_both():
    torch.manual_seed(0)
    layer = H2HConv(3, 3, "leaky_relu").double()
    grads = []
    for adjacency in both(undirected([(30, 200), (12, 20)], 5)):
        points = lorentz.exp_origin(torch.randn(42, 3, dtype=torch.float64, generator=generator(1))).requires_grad_()
        layer.zero_grad()
        layer(points, adjacency).square().sum().backward()
        grads.append((points.grad, layer.linear.weight.grad))
    for first, second in zip(*grads, strict=True):
        torch.testing.assert_close(first, second)


def test_graphs_with_weights_or_directions_are_more_than_a_pattern():
    one_way = torch.tensor([[0, 1], [1, 2]])
    assert pattern_of(prepare_adjacency(one_way, None, 3)) is None
    there_and_back = to_undirected(one_way)
    assert pattern_of(prepare_adjacency(there_and_back, torch.full((4,), 2.0), 3)) is None
    assert pattern_of(prepare_adjacency(there_and_back, torch.ones(4), 3)) is not None
    twice = torch.cat([there_and_back, there_and_back], 1)  # a weight of 2
    assert pattern_of(prepare_adjacency(twice, None, 3)) is None


@pytest.mark.parametrize(("num_nodes", "num_bytes"), [(1 << 16, 2), ((1 << 16) + 1, 4)])
def test_columns_have_as_few_bytes_as_they_need(num_nodes, num_bytes):
    last = num_nodes - 1
    pattern = pattern_of(prepare_adjacency(torch.tensor([[0, last], [last, 0]]), None, num_nodes))
    assert pattern.col.itemsize == num_bytes
    adjacency, _ = joined_patterns([pattern, pattern])
    assert adjacency.col[:2].tolist() == [0, last]
    assert adjacency.col[-2:].tolist() == [num_nodes, num_nodes + last]
