"""Edges in memory: what an array, a tensor or a list of numbers is taken for."""

import numpy as np
import pytest
import torch

from h2hgcn.datasets import DataError, load_graph

pytestmark = pytest.mark.filterwarnings("ignore::h2hgcn.datasets.DataWarning")


def edges_of(graph):
    return [(a, b) for a, b in graph.node_ids[graph.edge_index.T.numpy()].tolist()]


EDGE_INDEX = {
    "wide": ([[0, 1, 2], [5, 6, 7]], [(0, 5), (1, 6), (2, 7)], False),
    "square": ([[0, 1], [5, 6]], [(0, 5), (1, 6)], True),
    "symmetric": ([[0, 1], [1, 0]], [(0, 1), (1, 0)], False),
    "empty": ([[], []], [], False),
}


@pytest.mark.parametrize(("rows", "expected", "noted"), EDGE_INDEX.values(), ids=EDGE_INDEX.keys())
@pytest.mark.parametrize("make", [lambda rows: torch.tensor(rows, dtype=torch.long), lambda rows: np.array(rows, int)])
def test_integers_in_two_rows_are_an_edge_index(make, rows, expected, noted):
    graph = load_graph(make(rows), directed=True)
    assert edges_of(graph) == expected
    assert any("taken for an edge_index" in note for note in graph.notes) == noted


def test_other_arrays_have_a_pair_in_every_row():
    assert edges_of(load_graph(torch.tensor([[0, 1], [5, 6], [7, 8]]), directed=True)) == [(0, 1), (5, 6), (7, 8)]
    assert edges_of(load_graph(np.array([["a", "b"], ["c", "d"]]), directed=True)) == [("a", "b"), ("c", "d")]
    with pytest.raises(DataError, match=r"shape \(3, 4\); pass an edge_index"):
        load_graph(torch.arange(12).reshape(3, 4))


LISTS = {
    "pairs": ([[0, 1], [5, 6]], True),
    "triples": ([[0, 1, 2], [5, 6, 7]], True),
    "the same either way": ([[0, 1], [1, 2]], False),
    "tuples": ([(0, 1, 2), (5, 6, 7)], False),
    "fractions": ([[0, 1, 0.5], [5, 6, 1.5]], False),
    "three": ([[0, 1, 2], [5, 6, 7], [1, 2, 3]], False),
}


@pytest.mark.parametrize(("pairs", "noted"), LISTS.values(), ids=LISTS.keys())
def test_every_item_of_a_list_is_an_edge(pairs, noted):
    graph = load_graph(pairs, directed=True)
    assert sorted(edges_of(graph)) == sorted(tuple(pair[:2]) for pair in pairs)
    assert any("taken for two edges" in note for note in graph.notes) == noted


@pytest.mark.parametrize("pairs", [[[0, 1, 2, 3], [5, 6, 7, 8]], (torch.tensor([0, 1]), torch.tensor([1, 2]))])
def test_lists_that_hold_an_edge_index_are_refused(pairs):
    with pytest.raises(DataError, match="goes in as a tensor or an array"):
        load_graph(pairs)


def test_integers_of_any_type_and_size():
    assert load_graph([(np.uint8(3), 12), (12, np.int16(5))]).node_ids.tolist() == [3, 5, 12]
    assert load_graph(np.array([[1, 2], [2, 3], [3, 4]], dtype=np.uint64)).node_ids.dtype == np.int64
    large = np.array([[2**63, 1], [2, 3], [1, 2]], dtype=np.uint64)
    assert load_graph(large).node_ids.tolist() == ["1", "2", "3", str(2**63)]
    assert load_graph([(2**70, -1)]).node_ids.tolist() == ["-1", str(2**70)]


def test_a_sparse_tensor_is_no_list_of_edges():
    with pytest.raises(DataError, match="sparse tensor; pass a SciPy matrix"):
        load_graph(torch.eye(3).to_sparse())
