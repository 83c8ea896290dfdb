"""A graph with its nodes in another order is the same graph."""

import numpy as np
import pytest
import torch
from torch_geometric.utils import erdos_renyi_graph

from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.graph.large import renumbered
from h2hgcn.graph.sampling import sample_adjacency
from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import H2HGCN


def _graph(directed: bool, seed: int = 0, nodes: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    edges = erdos_renyi_graph(nodes, 0.08, directed=directed)
    return edges, torch.rand(edges.shape[1]) + 0.1


def _dense(graph: Adjacency, kind: str) -> torch.Tensor:
    matrix = graph.kept_matrix(kind, torch.float64)
    dense = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    rows = torch.arange(graph.num_nodes).repeat_interleave(matrix.crow.diff())
    dense[rows, matrix.col.long()] = matrix.values
    return dense


@pytest.mark.parametrize("directed", [False, True])
def test_entries_are_those_of_the_graph(directed: bool) -> None:
    edges, weights = _graph(directed)
    graph = prepare_adjacency(edges, weights, 60)
    moved = renumbered(graph)
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
    moved = renumbered(graph)
    rows, columns = moved.edges()[0]
    assert (rows - columns).abs().max() <= 2
    assert (graph.edges()[0][0] - graph.edges()[0][1]).abs().max() > 100


@pytest.mark.parametrize("directed", [False, True])
def test_an_encoder_gives_the_same_points(directed: bool) -> None:
    edges, weights = _graph(directed, 1)
    graph, x = prepare_adjacency(edges, weights, 60), torch.randn(60, 5)
    encoder = H2HGCN(5, 8).eval()
    moved = renumbered(graph)
    torch.testing.assert_close(encoder(x[moved.nodes], moved)[moved.places], encoder(x, graph))


def test_the_order_of_another_graph_can_be_taken() -> None:
    first, second = (prepare_adjacency(*_graph(False, seed), 60) for seed in (2, 3))
    moved = renumbered(first)
    other = renumbered(second, moved)
    assert torch.equal(other.nodes, moved.nodes)
    expected, found = _dense(second, "uniform"), _dense(other, "uniform")
    torch.testing.assert_close(found[moved.places][:, moved.places], expected)


def test_a_sample_names_the_nodes_of_the_graph_as_it_was_given() -> None:
    graph = prepare_adjacency(*_graph(False, 4), 60)
    moved = renumbered(graph)
    seeds = np.sort(moved.places.numpy()[[3, 7, 20]])
    sample = sample_adjacency(moved, seeds, (-1, -1), 0)
    assert set(sample.nodes[:3].tolist()) == {3, 7, 20}
    x, encoder = torch.randn(60, 5), H2HGCN(5, 8).eval()
    found = encoder(x[sample.nodes], sample)[:3]
    torch.testing.assert_close(found, encoder(x, graph)[sample.nodes[:3]])


def test_isolated_nodes() -> None:
    for size in (1, 4):
        graph = prepare_adjacency(torch.empty(2, 0, dtype=torch.long), None, size)
        assert renumbered(graph).num_nodes == size


def test_a_hub_takes_no_time_of_its_own() -> None:
    """Every other node is linked with the first; an order in quadratic time would take minutes."""
    others = torch.arange(1, 300_000)
    hub = torch.stack([torch.zeros_like(others), others])
    moved = renumbered(prepare_adjacency(torch.cat([hub, hub.flip(0)], dim=1), None, 300_000))
    assert torch.equal(moved.nodes.sort().values, torch.arange(300_000))
