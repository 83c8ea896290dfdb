from operator import attrgetter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import generator, random_graph, seeds
from torch_geometric.data import Batch, Data
from torch_geometric.utils import erdos_renyi_graph, to_undirected

from h2hgcn.geometry import lorentz
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.large import BlockDiagonal, joined_patterns, pattern_of, reordered
from h2hgcn.graph.sampling import sample_adjacency
from h2hgcn.layers import H2HConv, prepare_adjacency
from h2hgcn.models import H2HGCN


def graph_of(directed: bool, seed: int = 0, nodes: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    edges = erdos_renyi_graph(nodes, 0.08, directed=directed)
    return edges, torch.rand(edges.shape[1]) + 0.1


def _dense(graph: Adjacency, kind: str) -> torch.Tensor:
    matrix = graph.matrix(kind, torch.float64)
    dense = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    rows = torch.arange(graph.num_nodes).repeat_interleave(matrix.crow.diff())
    dense[rows, matrix.col.long()] = matrix.values
    return dense


@pytest.mark.parametrize("directed", [False, True])
def test_entries_are_those_of_the_graph(directed: bool) -> None:
    edges, weights = graph_of(directed)
    graph = prepare_adjacency(edges, weights, 60)
    moved = reordered(graph)
    assert torch.equal(moved.nodes[moved.places], torch.arange(60))
    for kind in ("symmetric", "uniform"):
        expected, found = _dense(graph, kind), _dense(moved, kind)
        torch.testing.assert_close(found[moved.places][:, moved.places], expected)
    assert all((part.diff() > 0).all() for part in moved.col.split(moved.crow.diff().tolist()))  # rows are sorted


def test_neighbours_come_closer() -> None:
    """A ring that was shuffled has its neighbours at most two places apart."""
    order = torch.randperm(500)
    edges = torch.stack([order, order.roll(1)])
    graph = prepare_adjacency(torch.cat([edges, edges.flip(0)], dim=1), None, 500)
    moved = reordered(graph)
    rows, columns = moved.edges()[0]
    assert (rows - columns).abs().max() <= 2
    assert (graph.edges()[0][0] - graph.edges()[0][1]).abs().max() > 100


@pytest.mark.parametrize("directed", [False, True])
def test_an_encoder_gives_the_same_points(directed: bool) -> None:
    edges, weights = graph_of(directed, 1)
    graph, x = prepare_adjacency(edges, weights, 60), torch.randn(60, 5)
    encoder = H2HGCN(5, 8).eval()
    moved = reordered(graph)
    torch.testing.assert_close(encoder(x[moved.nodes], moved)[moved.places], encoder(x, graph))


def test_the_order_of_another_graph_can_be_taken() -> None:
    first, second = (prepare_adjacency(*graph_of(False, seed), 60) for seed in (2, 3))
    moved = reordered(first)
    other = reordered(second, moved)
    assert torch.equal(other.nodes, moved.nodes)
    expected, found = _dense(second, "uniform"), _dense(other, "uniform")
    torch.testing.assert_close(found[moved.places][:, moved.places], expected)


def test_a_sample_names_the_nodes_of_the_graph_as_it_was_given() -> None:
    graph = prepare_adjacency(*graph_of(False, 4), 60)
    moved = reordered(graph)
    seeds = np.sort(moved.places.numpy()[[3, 7, 20]])
    sample = sample_adjacency(moved, seeds, (-1, -1), 0)
    assert set(sample.nodes[:3].tolist()) == {3, 7, 20}
    x, encoder = torch.randn(60, 5), H2HGCN(5, 8).eval()
    found = encoder(x[sample.nodes], sample)[:3]
    torch.testing.assert_close(found, encoder(x, graph)[sample.nodes[:3]])


def test_isolated_nodes() -> None:
    for size in (1, 4):
        graph = prepare_adjacency(torch.empty(2, 0, dtype=torch.long), None, size)
        assert reordered(graph).num_nodes == size


def test_a_hub_takes_no_time_of_its_own() -> None:
    """Every other node is linked with the first; an order in quadratic time would take minutes."""
    others = torch.arange(1, 300_000)
    hub = torch.stack([torch.zeros_like(others), others])
    moved = reordered(prepare_adjacency(torch.cat([hub, hub.flip(0)], dim=1), None, 300_000))
    assert torch.equal(moved.nodes.sort().values, torch.arange(300_000))


PARTS = [attrgetter(name) for name in ("crow", "col", "weights", "transpose.crow", "transpose.col", "transpose.order")]


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
    assert taken.undirected
    for part in PARTS:
        assert torch.equal(part(taken), part(prepared)), part
        assert part(taken).dtype == part(prepared).dtype
    assert taken.unweighted
    for first, second in zip(taken.edges(), prepared.edges(), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("kind", ["symmetric", "uniform", "gcn", "mean"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matrices_have_the_weights_of_the_prepared_ones(kind, dtype):
    taken, prepared = both(undirected([(40, 300), (1, 0), (9, 12)], 3))
    for first, second in zip(taken.matrix(kind, dtype), prepared.matrix(kind, dtype), strict=True):
        assert first.dtype == second.dtype
        torch.testing.assert_close(first, second, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert taken.matrix(kind, dtype) is taken.matrix(kind, dtype)


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
        assert part(taken).dtype == part(expected).dtype
        assert torch.equal(part(taken), part(expected)), part
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
