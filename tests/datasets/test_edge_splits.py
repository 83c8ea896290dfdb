import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import random_graph
from torch_geometric.data import Data

from h2hgcn.datasets import DataError, DataWarning, draw_negatives, load_dataset, load_graph, split_edges

pytestmark = pytest.mark.filterwarnings(
    "ignore:the legacy split has", "ignore:.* edges leave none", "ignore:the edges.*"
)

PARTS = ("train", "val", "test", "val_neg", "test_neg")


def graph_of(num_nodes, pairs, directed=False):
    index = torch.tensor(pairs).reshape(-1, 2).T
    if not directed:
        index = torch.cat([index, index.flip(0)], 1)
    return Data(edge_index=index, num_nodes=num_nodes, directed=directed)


@st.composite
def graphs(draw, directed=None):
    size = draw(st.integers(8, 25))
    node = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(node, node), min_size=1, max_size=40))
    return graph_of(size, pairs, draw(st.booleans()) if directed is None else directed)


def as_set(pairs):
    return set(map(tuple, pairs.tolist()))


@given(graph=graphs(), protocol=st.sampled_from(["clean", "legacy"]))
def test_answerable_pairs_have_two_nodes_with_training_edges(graph, protocol):
    graph.directed = graph.directed and protocol == "clean"
    split = split_edges(graph, 0.2, 0.2, protocol=protocol)
    linked = {node for a, b in split.train.tolist() if a != b for node in (a, b)}
    for pairs in (split.test, split.test_neg):
        assert split.answerable(pairs).tolist() == [{a, b} <= linked for a, b in pairs.tolist()]


@given(graph=graphs(), seed=st.integers(0, 2**32 - 1), val=st.floats(0, 0.4), test=st.floats(0, 0.4))
def test_clean_splits_are_clean(graph, seed, val, test):
    split = split_edges(graph, val, test, seed=seed)
    pairs = graph.edge_index.T
    edges = {tuple(p) if graph.directed else tuple(sorted(p)) for p in pairs.tolist() if p[0] != p[1]}
    parts = {name: as_set(getattr(split, name)) for name in PARTS}
    assert parts["train"] | parts["val"] | parts["test"] == edges
    assert sum(len(getattr(split, name)) for name in PARTS[:3]) == len(edges)
    negatives = np.concatenate([split.val_neg, split.test_neg])
    assert len(as_set(negatives)) == len(negatives) == len(split.val) + len(split.test)
    assert not as_set(negatives) & edges
    assert (negatives[:, 0] != negatives[:, 1]).all()
    assert len(split.val) == len(split.val_neg) == int(len(edges) * val)


@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_same_seed_same_split(graph, seed):
    first, second = (split_edges(graph, 0.2, 0.2, seed=seed) for _ in range(2))
    shuffled = graph.clone()
    shuffled.edge_index = graph.edge_index[:, torch.randperm(graph.edge_index.shape[1])]
    third = split_edges(shuffled, 0.2, 0.2, seed=seed)
    for name in PARTS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        np.testing.assert_array_equal(getattr(first, name), getattr(third, name))


def test_a_split_is_the_same_on_every_machine():
    """Figures noted once; NumPy promises that RandomState never changes."""
    ring = graph_of(10, [(k, (k + 1) % 10) for k in range(10)])
    split = split_edges(ring, 0.2, 0.2, seed=5)
    assert split.val.tolist() == NOTED["val"]
    assert split.test.tolist() == NOTED["test"]
    assert split.val_neg.tolist() == NOTED["val_neg"]
    assert split.test_neg.tolist() == NOTED["test_neg"]


NOTED = {
    "val": [[8, 9], [4, 5]],
    "test": [[1, 2], [3, 4]],
    "val_neg": [[1, 9], [0, 8]],
    "test_neg": [[1, 5], [1, 8]],
}


@given(graph=graphs(directed=False), seed=st.integers(0, 2**32 - 1))
def test_legacy_is_the_procedure_on_a_dense_matrix(graph, seed):
    """The split as its authors describe it, with every pair in memory."""
    split = split_edges(graph, 0.2, 0.3, seed=seed, protocol="legacy")
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes), dtype=int)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1
    random = np.random.RandomState(seed)
    edges = np.argwhere(np.triu(adjacency))
    random.shuffle(edges)
    others = np.argwhere(np.triu(1 - adjacency))
    random.shuffle(others)
    num_val, num_test = int(len(edges) * 0.2), int(len(edges) * 0.3)
    np.testing.assert_array_equal(split.val, edges[:num_val])
    np.testing.assert_array_equal(split.test, edges[num_val : num_val + num_test])
    np.testing.assert_array_equal(split.train, edges[num_val + num_test :])
    np.testing.assert_array_equal(split.val_neg, others[:num_val])
    np.testing.assert_array_equal(split.test_neg, others[num_val : num_val + num_test])


@pytest.mark.parametrize("protocol", ["clean", "legacy"])
def test_negatives_to_train_with(protocol):
    graph = graph_of(6, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5)])
    split = split_edges(graph, 0.2, 0.2, protocol=protocol, seed=3)
    drawn = draw_negatives(split, 2000, np.random.default_rng(0))
    space = split.space
    possible = as_set(space.pairs(np.arange(len(space)))) - as_set(split.train)
    assert as_set(drawn) == possible  # held-out pairs among them, of which training knows nothing
    assert any(a == b for a, b in possible) == (protocol == "legacy")
    again = draw_negatives(split, 2000, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, again)
    assert np.array_equal(draw_negatives(split, 5, np.random.RandomState(3)), draw_negatives(split, 5, 3))


def test_all_absent_pairs_of_a_dense_graph_are_found():
    absent = {(0, 1), (1, 3), (2, 4)}
    edges = [(a, b) for a in range(5) for b in range(a + 1, 5) if (a, b) not in absent]
    split = split_edges(graph_of(5, edges), 0.2, 0.3)
    assert {*map(tuple, split.val_neg.tolist()), *map(tuple, split.test_neg.tolist())} == absent


def test_training_graph_has_both_directions():
    split = split_edges(graph_of(4, [(0, 1), (1, 2), (2, 2)]), 0, 0, protocol="legacy")
    edges = sorted(map(tuple, split.train_edge_index().T.tolist()))
    assert edges == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)]
    directed = split_edges(graph_of(3, [(1, 0), (1, 2)], directed=True), 0, 0)
    assert sorted(map(tuple, directed.train_edge_index().T.tolist())) == [(1, 0), (1, 2)]


@pytest.mark.parametrize("name", ["cora", "pubmed", "airport", "disease_lp"])
def test_legacy_splits_are_the_published_ones(benchmark_data, name):
    split = split_edges(load_dataset(name, benchmark_data), protocol="legacy")
    published = np.load(benchmark_data / "splits" / "hgcn-seed1234" / f"{name}_lp.npz")
    for part in PARTS:
        np.testing.assert_array_equal(getattr(split, part), published[part])


def test_weights_stay_with_their_edges():
    graph = load_graph([(3, 1, 0.5), (1, 2, 2.0), (0, 3, 4.0), (2, 3, 8.0)])
    split = split_edges(graph, 0.25, 0.25)
    known = {(1, 3): 0.5, (1, 2): 2.0, (0, 3): 4.0, (2, 3): 8.0}
    index, weights = split.train_edge_index(), split.train_edge_weight()
    assert index.shape[1] == len(weights) == 4
    assert [known[tuple(sorted(pair))] for pair in index.T.tolist()] == weights.tolist()
    assert split_edges(graph_of(4, [(0, 1)]), 0, 0).train_edge_weight() is None


def test_learnt_weights_are_taken_as_they_are():
    graph = graph_of(4, [(0, 1), (1, 2)])
    graph.edge_weight = torch.full((4,), 2.0, requires_grad=True)
    assert split_edges(graph, 0, 0).train_weights.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_index": torch.tensor([[0, 4], [1, 2]])}, "edge_index names node 4, but the graph has 4 nodes"),
        ({"edge_index": torch.tensor([[0, 1], [1, -2]])}, "edge_index names node -2"),
        ({"edge_index": torch.tensor([[0.0], [1.5]])}, "edge_index is torch.float32; name nodes by whole numbers"),
        ({"edge_index": torch.tensor([0, 1])}, r"edge_index has shape \(2,\)"),
        ({"num_nodes": 0}, "but the graph has 0 nodes"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight has shape \(3,\); give one number for each of 2 edges"),
        ({"edge_weight": torch.ones(2, 1)}, r"edge_weight has shape \(2, 1\)"),
        ({"edge_weight": torch.tensor([1.0, torch.nan])}, "not finite"),
        ({"edge_weight": torch.tensor([1.0, 1e300], dtype=torch.float64)}, "not finite in float32"),
        ({"self_loops": torch.tensor([7])}, "self_loops names node 7"),
        ({"self_loops": torch.tensor([3]), "edge_weight": torch.ones(2)}, "self-loops, which have no weights here"),
    ],
)
def test_bad_edges_and_weights(change, message):
    graph = graph_of(4, [(0, 1)])
    graph.update(change)
    with pytest.raises(DataError, match=message):
        split_edges(graph, 0, 0, protocol="legacy")


def test_bad_requests_for_negatives():
    split = split_edges(graph_of(4, [(0, 1)]), 0, 0)
    for count in (-1, 1.5):
        with pytest.raises(DataError, match=f"count={count} must be a whole number"):
            draw_negatives(split, count, 0)
    for random in (-1, None):
        with pytest.raises(DataError, match=f"seed={random} must be an integer"):
            draw_negatives(split, 1, random)
    assert np.array_equal(draw_negatives(split, 5, np.int64(3)), draw_negatives(split, 5, 3))


def test_faults_are_said():
    looped = graph_of(9, [(0, 0), (0, 1), (1, 2), (3, 4), (5, 6)])
    with pytest.warns(DataWarning, match="self-pairs: 1 among its edges"):
        split_edges(looped, 0, 0.2, protocol="legacy")
    with pytest.warns(DataWarning, match="2 edges leave none for val=0.05"):
        split_edges(graph_of(3, [(0, 1), (1, 2)]), 0.05, 0.5)


def test_repr_names_sizes_and_seed():
    text = repr(split_edges(graph_of(4, [(0, 1), (1, 2)]), 0, 0.5, seed=9))
    assert "train=1" in text
    assert "test=1" in text
    assert "seed=9" in text
    assert "protocol='clean'" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "fair"}, "protocol='fair' is not known; use one of 'clean', 'legacy'"),
        ({"val": 0.5, "test": 0.5}, "leave something to train on"),
        ({"val": -0.1}, "val=-0.1"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": "a"}, "seed='a' must be an integer"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(DataError, match=message):
        split_edges(graph_of(4, [(0, 1)]), **options)


def test_graphs_that_cannot_be_split():
    complete = graph_of(4, [(i, j) for i in range(4) for j in range(i)])
    with pytest.raises(
        DataError, match=r"3 pairs without an edge are needed .* but the graph has 0; there is no link to predict"
    ):
        split_edges(complete, 0.25, 0.4)
    with pytest.raises(DataError, match="no negatives to draw"):
        draw_negatives(split_edges(complete, 0, 0), 1, np.random.default_rng(0))
    for without_edges in (Data(num_nodes=3), Data(), [Data()]):
        with pytest.raises(DataError, match="no edge_index"):
            split_edges(without_edges)
    with pytest.raises(DataError, match="undirected graphs only"):
        split_edges(graph_of(4, [(0, 1)], directed=True), protocol="legacy")
    with pytest.raises(DataError, match="use protocol='clean'"):
        split_edges(graph_of(100_000, [(0, 1)]), protocol="legacy")


def test_a_large_sparse_graph_splits_quickly():
    index, _ = random_graph(20_000, 50_000)
    split = split_edges(Data(edge_index=index, num_nodes=20_000, directed=True))
    assert len(as_set(split.test_neg)) == len(split.test)
