"""Bridges against networkx, and by what they are."""

import networkx as nx
import numpy as np
import pytest
import torch

from h2hgcn.datasets.shape import bridge_share, count_bridges, simple_graph_of


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
