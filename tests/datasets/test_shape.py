"""Components, bridges, distances and δ against networkx and the definitions."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from h2hgcn.datasets.shape import (
    FEWEST_SOURCES,
    bridge_share,
    connected_components,
    count_bridges,
    double_sweep,
    measure_hyperbolicity,
    simple_graph,
    simple_graph_of,
    spread_of_delta,
    twice_delta_of,
    walk,
)


def simple(graph):
    graph = nx.convert_node_labels_to_integers(graph)
    edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    return simple_graph(Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=len(graph)))


def all_deltas(graph):
    """δ of every four nodes of a component, by the definition."""
    apart = dict(nx.all_pairs_shortest_path_length(graph))
    for part in nx.connected_components(graph):
        for a, b, c, d in itertools.combinations(part, 4):
            sums = sorted([apart[a][b] + apart[c][d], apart[a][c] + apart[b][d], apart[a][d] + apart[b][c]])
            yield (sums[2] - sums[1]) / 2


@st.composite
def graphs(draw, most_nodes=14):
    """Sparse graphs, connected or not, in which long cycles are common."""
    size = draw(st.integers(0, most_nodes))
    if size < 2:
        return nx.empty_graph(size)
    ends = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=2 * size))
    graph = nx.path_graph(size) if draw(st.booleans()) else nx.empty_graph(size)
    graph.add_edges_from((a, b) for a, b in edges if a != b)
    return graph


@given(graphs())
def test_diameter_is_the_longest_distance_within_a_component(graph):
    parts = [graph.subgraph(part) for part in nx.connected_components(graph)]
    longest = max(map(nx.diameter, parts), default=0)
    found = measure_hyperbolicity(simple(graph))
    assert (found.diameter, found.diameter_exact) == (longest, True)
    assert found.relative is None or found.relative <= 1
    assert measure_hyperbolicity(simple(graph), effort=0.0).diameter <= longest


@pytest.mark.parametrize("size", range(3, 40))
def test_cycle(size):
    quarter, rest = divmod(size, 4)
    assert measure_hyperbolicity(simple(nx.cycle_graph(size))).delta == quarter - (0.5 if rest == 1 else 0)


@given(graphs())
def test_small_graphs_agree_with_the_definition(graph):
    found = measure_hyperbolicity(simple(graph))
    largest = max(nx.connected_components(graph), key=len, default=())  # the first of equals
    assert found.exact
    assert found.delta == max(all_deltas(graph.subgraph(largest)), default=0.0)


def test_a_sample_of_a_grid_is_a_lower_bound():
    found = measure_hyperbolicity(simple(nx.grid_2d_graph(20, 20)))
    assert 5 < found.delta <= 19
    assert not found.exact


@pytest.mark.parametrize(
    "graph", [nx.balanced_tree(3, 5), nx.star_graph(80), nx.path_graph(300), nx.complete_graph(70)]
)
def test_trees_and_complete_graphs_have_none(graph):
    found = measure_hyperbolicity(simple(graph))
    assert (found.delta, found.exact, found.mean) == (0.0, True, 0.0)
    assert found.diameter == nx.diameter(graph)


def test_cliques_joined_at_single_nodes_have_none():
    assert measure_hyperbolicity(simple(nx.windmill_graph(20, 5))).delta == 0.0


def test_delta_is_of_the_largest_component_and_the_diameter_of_any():
    graph = nx.disjoint_union(nx.cycle_graph(12), nx.balanced_tree(2, 4))
    found = measure_hyperbolicity(simple(graph))
    assert (found.delta, found.mean, found.diameter) == (0.0, 0.0, 8)
    found = measure_hyperbolicity(simple(nx.disjoint_union(nx.cycle_graph(40), nx.path_graph(39))))
    assert (found.delta, found.diameter) == (10.0, 38)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [10, 64, 65, 200])
def test_walks_agree_with_networkx(monkeypatch, threads, size):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    graph = nx.connected_watts_strogatz_graph(size, 4, 0.1, seed=size)
    sources = np.random.default_rng(0).permutation(size)
    kept = size * 2 // 3
    walks = walk(simple(graph), sources, kept)
    apart = dict(nx.all_pairs_shortest_path_length(graph))
    assert walks.distances.tolist() == [[apart[a][b] for b in sources[:kept]] for a in sources[:kept]]
    assert walks.eccentricities.tolist() == [nx.eccentricity(graph, a) for a in sources]


@given(graphs())
def test_double_sweep_is_exact_in_trees_and_below_elsewhere(graph):
    if not len(graph) or not nx.is_connected(graph):
        return
    sweep = double_sweep(simple(graph), 0)
    assert sweep <= nx.diameter(graph)
    tree = nx.bfs_tree(graph, 0).to_undirected()
    assert double_sweep(simple(tree), 0) == nx.diameter(tree)


def test_components_agree_with_networkx():
    graph = nx.gnm_random_graph(60, 40, seed=1)
    components = connected_components(simple(graph))
    assert sorted(components.sizes) == sorted(map(len, nx.connected_components(graph)))
    assert set(components.largest().tolist()) == max(nx.connected_components(graph), key=len)


def sampled(graph, seed):
    """No budget: the smallest sample there is."""
    return measure_hyperbolicity(simple(graph), seed=seed, effort=0.0)


def test_sample_is_a_lower_bound_and_says_so():
    graph = nx.connected_watts_strogatz_graph(90, 4, 0.2, seed=3)
    exact = measure_hyperbolicity(simple(graph))
    for seed in range(5):
        found = sampled(graph, seed)
        assert not found.exact
        assert found.sampled_nodes == FEWEST_SOURCES
        assert found.delta <= exact.delta
        assert found.diameter <= exact.diameter == nx.diameter(graph)
        assert not found.diameter_exact
        assert sum(found.histogram) == found.quadruples == math.comb(FEWEST_SOURCES, 4)


def exhaustive_mean(graph):
    distances = walk(graph, np.arange(graph.num_nodes), graph.num_nodes).distances
    quadruples = np.array(list(itertools.combinations(range(graph.num_nodes), 4)), np.int32)
    return twice_delta_of(distances, quadruples).mean() / 2


def test_mean_of_samples_lies_within_its_error():
    """The scores are t-like with a few dozen degrees of freedom; a naive error would be far too small."""
    graph = nx.barabasi_albert_graph(80, 2, seed=5)
    mean = exhaustive_mean(simple(graph))
    found = [sampled(graph, seed) for seed in range(20)]
    scores = np.array([(one.mean - mean) / one.mean_error for one in found])
    assert np.abs(scores).max() < 4
    assert 0.6 < np.sqrt((scores**2).mean()) < 1.5


def test_mean_over_random_quadruples_of_all_nodes():
    graph = nx.connected_watts_strogatz_graph(75, 4, 0.2, seed=2)
    found = measure_hyperbolicity(simple(graph))
    assert found.sampled_nodes == 75
    assert abs(found.mean - exhaustive_mean(simple(graph))) < 4 * found.mean_error
    assert found.mean_error < 0.001


def test_all_quadruples_of_a_small_graph():
    graph = nx.gnm_random_graph(20, 30, seed=8)
    largest = graph.subgraph(max(nx.connected_components(graph), key=len))
    deltas = list(all_deltas(largest))
    found = measure_hyperbolicity(simple(graph))
    assert found.quadruples == len(deltas)
    assert found.mean == pytest.approx(np.mean(deltas))
    assert found.mean_error == 0.0
    assert found.histogram == tuple(np.bincount([int(2 * delta) for delta in deltas]))


def test_four_of_many_nodes():
    apart = np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]], np.int32)
    spread = spread_of_delta(apart, 100, np.random.default_rng(0))
    assert (spread.mean, spread.error, spread.histogram) == (1.0, 0.0, (0, 0, 1))


def test_relations_to_the_distances():
    found = measure_hyperbolicity(simple(nx.cycle_graph(12)))
    assert found.relative == 1.0
    assert found.mean_distance == pytest.approx(36 / 11)
    assert found.relative_mean == pytest.approx(2 * found.mean / found.mean_distance)
    assert found.relative_spread == pytest.approx(2 * found.mean / found.distance_deviation)


def ends(graph):
    return np.array(graph.edges, np.int64).reshape(-1, 2).T


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("edges", [20, 60, 120])
def test_bridges_are_those_of_networkx(seed, edges):
    graph = nx.gnm_random_graph(60, edges, seed=seed)
    assert count_bridges(simple_graph_of(ends(graph), 60)) == len(list(nx.bridges(graph)))


def test_all_edges_of_a_tree_are_bridges_and_none_of_a_cycle():
    assert bridge_share(ends(nx.random_labeled_tree(200, seed=1)), 200) == 1.0
    assert bridge_share(ends(nx.star_graph(50)), 51) == 1.0
    assert bridge_share(ends(nx.cycle_graph(50)), 50) == 0.0


def test_direction_repeats_and_loops_change_nothing():
    graph = nx.lollipop_graph(4, 6)  # six edges of the clique, six bridges
    once = ends(graph)
    doubled = np.concatenate([once, once[::-1], [[0, 3], [0, 3]]], axis=1)
    assert bridge_share(once, 10) == bridge_share(torch.from_numpy(doubled), 10) == 0.5


def test_without_edges_there_are_no_bridges():
    assert bridge_share(np.empty((2, 0), np.int64), 3) == 0.0
    assert bridge_share(np.empty((2, 0), np.int64), 0) == 0.0
