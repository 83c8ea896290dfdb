from operator import attrgetter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import random_graph, seeds
from torch_geometric.data import Batch, Data
from torch_geometric.utils import erdos_renyi_graph

from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.large import GraphRows, block_diagonal, reordered
from h2hgcn.graph.sampling import sample_adjacency
from h2hgcn.layers import prepare_adjacency
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


def some_graphs(sizes, seed, weighted=True):
    """Graphs, some of them without nodes, without edges, or with nodes that have none."""
    graphs = []
    for number, (nodes, edges) in enumerate(sizes):
        index, weight = random_graph(max(nodes, 1), edges if nodes else 0, seed + number)
        graphs.append(Data(edge_index=index, edge_weight=weight if weighted else None, x=torch.zeros(nodes, 1)))
    return graphs


def both(graphs):
    """Prepared one by one and put side by side, and put side by side and prepared as one."""
    rows = [GraphRows.of(prepare_adjacency(each.edge_index, each.edge_weight, each.num_nodes)) for each in graphs]
    adjacency, graph_of_node = block_diagonal(rows)
    batch = Batch.from_data_list(graphs)
    assert torch.equal(graph_of_node, batch.batch)
    return adjacency, prepare_adjacency(batch.edge_index, batch.edge_weight, batch.num_nodes)


sizes = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 20)), min_size=1, max_size=6)


@given(sizes=sizes, seed=seeds, weighted=st.booleans())
def test_graphs_side_by_side_are_what_would_have_been_prepared(sizes, seed, weighted):
    taken, prepared = both(some_graphs(sizes, seed, weighted))
    for part in PARTS:
        assert part(taken).dtype == part(prepared).dtype
        assert torch.equal(part(taken), part(prepared)), part
    assert taken.unweighted == prepared.unweighted
    for first, second in zip(taken.edges(), prepared.edges(), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["symmetric", "uniform", "gcn", "mean"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matrices_are_equal_to_the_last_bit(kind, dtype, weighted):
    """Whether a batch was prepared as one or by graphs must not be seen in what is learnt."""
    taken, prepared = both(some_graphs([(40, 300), (1, 0), (9, 12)], 3, weighted))
    for first, second in zip(taken.matrix(kind, dtype), prepared.matrix(kind, dtype), strict=True):
        assert first.dtype == second.dtype
        assert torch.equal(first, second)
    assert taken.matrix(kind, dtype) is taken.matrix(kind, dtype)


def test_only_some_graphs_have_weights():
    weighted, plain = some_graphs([(5, 9)], 0) + some_graphs([(6, 1)], 1, weighted=False)
    filled = plain.clone()
    filled.edge_weight = torch.ones(plain.edge_index.shape[1])
    rows = [
        GraphRows.of(prepare_adjacency(each.edge_index, each.edge_weight, each.num_nodes)) for each in (weighted, plain)
    ]
    assert rows[1].weights is None
    assert torch.equal(block_diagonal(rows)[0].weights, both([weighted, filled])[1].weights)


def test_repeated_edges_of_weight_one_are_weights():
    edges = torch.tensor([[0, 0, 1], [1, 1, 2]])
    assert GraphRows.of(prepare_adjacency(edges, None, 3)).weights is not None
    assert GraphRows.of(prepare_adjacency(edges[:, 1:], None, 3)).weights is None
