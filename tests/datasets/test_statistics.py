import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import seeds
from torch_geometric.data import Data

from h2hgcn.datasets.inspect import (
    measure_degrees,
    measure_homophily,
    measure_size,
    measure_tree_likeness,
)
from h2hgcn.datasets.shape import connected_components, simple_graph
from h2hgcn.errors import DataError


def data(graph, **attributes):
    edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    return Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=len(graph), **attributes)


@st.composite
def random_graphs(draw):
    size = draw(st.integers(1, 60))
    return nx.gnm_random_graph(size, draw(st.integers(0, 4 * size)), seed=draw(seeds))


@given(random_graphs())
def test_counts_agree_with_networkx(graph):
    ours = simple_graph(data(graph))
    components = connected_components(ours)
    size = measure_size(ours, components)
    assert (size.nodes, size.edges) == (len(graph), graph.size())
    assert size.isolated_nodes == nx.number_of_isolates(graph)
    assert size.components == nx.number_connected_components(graph)
    assert size.largest_component_share == max(map(len, nx.connected_components(graph))) / len(graph)
    tree = measure_tree_likeness(ours, components)
    assert tree.independent_cycles == len(nx.cycle_basis(graph))
    assert tree.is_forest == nx.is_forest(graph)
    assert not graph.size() or tree.forest_share == nx.minimum_spanning_tree(graph).size() / graph.size()


@given(random_graphs())
def test_degrees_agree_with_networkx(graph):
    degrees = [degree for _, degree in graph.degree]
    found = measure_degrees(simple_graph(data(graph)))
    assert (found.mean, found.median, found.max) == (np.mean(degrees), np.median(degrees), max(degrees))
    if graph.size():
        assert found.top_share == pytest.approx(max(degrees) / sum(degrees))


def test_neighbors_are_sorted_and_listed_once():
    edge_index = torch.tensor([[3, 0, 1, 1, 2, 2, 0, 0], [0, 3, 2, 2, 1, 2, 0, 1]])
    graph = simple_graph(Data(edge_index=edge_index, num_nodes=5))
    assert graph.starts.tolist() == [0, 2, 4, 5, 6, 6]
    assert graph.neighbors.tolist() == [1, 3, 0, 2, 1, 0]
    assert graph.self_loops == 2


@pytest.mark.parametrize(
    ("edge_index", "message"),
    [
        (torch.tensor([[0], [7]]), "names node 7, but the graph has 3 nodes"),
        (torch.tensor([[0], [-1]]), "names node -1"),
        (torch.tensor([[0, 1]]), r"shape \(1, 2\)"),
        (torch.tensor([[0.0], [1.0]]), "torch.float32"),
    ],
)
def test_wrong_edges_are_refused(edge_index, message):
    with pytest.raises(DataError, match=message):
        simple_graph(Data(edge_index=edge_index, num_nodes=3))


def literal_homophily(graph, y):
    pairs = [(y[a], y[b]) for a, b in graph.edges if a != b and y[a] >= 0 and y[b] >= 0]
    if not pairs:
        return None, None
    equal = sum(a == b for a, b in pairs) / len(pairs)
    ends = [label for pair in pairs for label in pair]
    chance = sum((ends.count(label) / len(ends)) ** 2 for label in set(ends))
    return equal, (equal - chance) / (1 - chance) if len(set(ends)) > 1 else None


@given(random_graphs(), seeds)
def test_homophily_agrees_with_loops(graph, seed):
    y = np.random.default_rng(seed).integers(-1, 3, len(graph))
    found = measure_homophily(simple_graph(data(graph)), torch.from_numpy(y))
    if not (y >= 0).any():
        assert found is None
        return
    equal, adjusted = literal_homophily(graph, y.tolist())
    assert found.homophily == pytest.approx(equal)
    assert found.adjusted == pytest.approx(adjusted)
    assert found.labelled_nodes == (y >= 0).sum()
    assert found.classes == len(set(y[y >= 0].tolist()))


@pytest.mark.parametrize("y", [None, torch.tensor([1]), torch.rand(6), torch.full((6,), -1), torch.ones(6, 2).long()])
def test_no_homophily_without_a_class_for_every_node(y):
    assert measure_homophily(simple_graph(data(nx.path_graph(6))), y) is None


def test_homophily_takes_a_column_of_labels():
    y = torch.tensor([0, 0, 1, 1, 0, 0])
    graph = simple_graph(data(nx.path_graph(6)))
    assert measure_homophily(graph, y[:, None]) == measure_homophily(graph, y)
