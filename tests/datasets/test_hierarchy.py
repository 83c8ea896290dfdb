from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.datasets import DataError
from h2hgcn.datasets import shape as module
from h2hgcn.datasets.shape import random_taxonomy, transitive_closure


def index(pairs):
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25), st.permutations(range(10)))
def test_a_closure_is_that_of_networkx(pairs, names):
    # from smaller to larger numbers there is no cycle; names hide that order, and self-loops are dropped
    edges = [(names[min(pair)], names[max(pair)]) for pair in pairs]
    graph = nx.DiGraph([(a, b) for a, b in edges if a != b])
    graph.add_nodes_from(range(10))
    found = transitive_closure(index(edges), 10)
    assert found.T.tolist() == sorted(map(list, nx.transitive_closure_dag(graph).edges))


def test_the_direction_of_edges_does_not_matter():
    edges = torch.from_numpy(random_taxonomy(60).T.copy())
    up, down = transitive_closure(edges, 60), transitive_closure(edges.flip(0), 60)
    assert set(map(tuple, up.T.tolist())) == {(a, b) for b, a in down.T.tolist()}


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=25))
def test_a_cycle_is_named(pairs):
    edges = {(a, b) for a, b in pairs if a != b}
    names = [f"node{k}" for k in range(8)]
    if nx.is_directed_acyclic_graph(nx.DiGraph(list(edges))):
        assert transitive_closure(index(list(edges)), 8, names).shape[0] == 2
        return
    with pytest.raises(DataError, match=r"cycle.*node\d -> .*; remove an edge of it") as caught:
        transitive_closure(index(list(edges)), 8, names)
    cycle = str(caught.value).split(": ")[1].split(";")[0].split(" -> ")
    numbers = [names.index(name) for name in cycle]
    assert numbers[0] == numbers[-1]
    assert all(step in edges for step in pairwise(numbers))


def test_a_long_cycle_is_shortened():
    ring = [(k, (k + 1) % 50) for k in range(50)]
    with pytest.raises(DataError, match=r"0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> \.\.\. -> 0;"):
        transitive_closure(index(ring), 50)


def test_a_closure_that_fits_no_memory_is_refused(monkeypatch):
    monkeypatch.setattr(module, "_MOST_LINKS", 100)
    with pytest.raises(DataError, match="more than 100 links; leave out --closure"):
        transitive_closure(index([(k, k + 1) for k in range(20)]), 21)


def test_a_random_taxonomy_is_a_ragged_tree():
    edges = random_taxonomy(500, seed=3)
    graph = nx.DiGraph(map(tuple, edges.tolist()))
    assert nx.is_tree(graph.to_undirected())
    assert all(degree == (node != 0) for node, degree in graph.out_degree)
    children = np.bincount(edges[:, 1], minlength=500)
    depths = nx.shortest_path_length(graph, target=0).values()
    assert (children == 0).mean() > 0.6  # most nodes are leaves
    assert children.max() > 20  # and a few have many children
    assert len(set(depths)) > 5
    assert np.array_equal(edges, random_taxonomy(500, seed=3))
    assert not np.array_equal(edges, random_taxonomy(500, seed=4))
    assert random_taxonomy(1).shape == (0, 2)
    with pytest.raises(DataError, match="at least one node"):
        random_taxonomy(0)
