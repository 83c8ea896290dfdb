import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from runs import shapes
from samples import generator, seeds
from torch_geometric.data import Data

from h2hgcn.datasets import load_graph
from h2hgcn.datasets.disease import generate_disease
from h2hgcn.datasets.on_disk import fingerprint, is_graph, load_saved_graph, save_graph
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.files import write_tensors

words = st.text('ab. ä日🦊\n"', max_size=5)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
texts = st.lists(words, max_size=5)


# sizes and steps: none, one that is not stepped over, the same again, every second, columns
STRIDES = [((0,), (1,)), ((1,), (0,)), ((3,), (0,)), ((4,), (2,)), ((2, 4), (1, 2)), ((), ())]


@st.composite
def graphs(draw):
    random = generator(draw(seeds))
    nodes, edges = draw(st.integers(1, 6)), draw(st.integers(0, 9))
    x = torch.randn(nodes, draw(st.integers(1, 4)), generator=random) * (torch.rand(nodes, 1, generator=random) < 0.5)
    layout = draw(st.sampled_from(["dense", "coo", "csr", "double", "half"]))
    x = {"coo": x.to_sparse_coo, "csr": x.to_sparse_csr, "double": x.double, "half": x.bfloat16}.get(layout, x.clone)()
    graph = Data(x=x, edge_index=torch.randint(nodes, (2, edges), generator=random))
    optional = {
        "edge_weight": lambda: torch.rand(edges, generator=random),
        "y": lambda: torch.randint(-1, 3, (nodes,), generator=random),
        "train_mask": lambda: torch.rand(nodes, generator=random) < 0.5,
        "node_ids": lambda: np.array(draw(texts), dtype=np.str_),
        "numbers": lambda: np.arange(nodes).astype(draw(st.sampled_from(["<i8", ">i4", "u1", "f4", "?"]))),
        "strides": lambda: torch.arange(8).as_strided(*draw(st.sampled_from(STRIDES))),
        "notes": lambda: draw(texts),
        "more": lambda: draw(plain),
        "num_nodes": lambda: nodes,
    }
    for name in draw(st.sets(st.sampled_from(sorted(optional)))):
        graph[name] = optional[name]()
    return graph


def equal(first, second):
    if isinstance(first, torch.Tensor):
        dense = [value if value.layout == torch.strided else value.to_dense() for value in (first, second)]
        return torch.equal(*dense) and first.dtype == second.dtype
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second) and first.dtype.kind == second.dtype.kind
    return first == second


@given(graph=graphs())
def test_a_graph_comes_back(graph, tmp_path_factory):
    path = tmp_path_factory.mktemp("graphs") / "graph.safetensors"
    save_graph(path, graph)
    loaded = load_saved_graph(path)
    assert set(loaded.to_dict()) == set(graph.to_dict())
    assert all(equal(value, loaded[name]) for name, value in graph.to_dict().items())
    assert (loaded.x.layout == torch.strided) is (graph.x.layout == torch.strided)
    assert fingerprint(loaded) == fingerprint(graph)


def test_texts_of_every_kind(tmp_path):
    ids = np.array([["", "ä", "日本", "a" * 50], ["\n", '"', "🦊", "\ud800"]])
    save_graph(tmp_path / "graph", Data(x=torch.ones(1, 1), node_ids=ids))
    assert np.array_equal(load_saved_graph(tmp_path / "graph").node_ids, ids)


@pytest.mark.filterwarnings("ignore:.*structural ones were made")
def test_a_graph_of_ones_own_comes_back_whole(tmp_path):
    graph = load_graph([("a", "b"), ("b", "c")], labels={"a": "x", "b": "y", "c": "x"}, weights=[1.0, 2.0])
    save_graph(tmp_path / "graph", graph)
    loaded = load_saved_graph(tmp_path / "graph")
    assert loaded.node_ids.tolist() == ["a", "b", "c"]
    assert (loaded.label_names, loaded.directed, loaded.structural) == (graph.label_names, False, True)


def test_what_cannot_be_kept_is_said(tmp_path):
    graph = Data(x=torch.ones(2, 1), handle=object(), ids=np.array([object(), 1]), by_number={1: "a"})
    with pytest.warns(DataWarning, match="goes without the graph's handle, ids, by_number, which it cannot hold"):
        save_graph(tmp_path / "graph", graph)
    assert set(load_saved_graph(tmp_path / "graph").to_dict()) == {"x"}


def test_files_that_hold_something_else(tmp_path):
    for about in ({}, {"values": {}, "kinds": {"x": "tensor"}}, {"values": {}, "kinds": {"x": "other"}}):
        write_tensors(tmp_path / "graph", {"y": torch.ones(1)}, about)
        with pytest.raises(DataError, match="holds no graph"):
            load_saved_graph(tmp_path / "graph")


CHANGES = {
    "a feature": lambda graph: graph.x.view(-1)[5].add_(1e-3),
    "precision": lambda graph: setattr(graph, "x", graph.x.double()),
    "shape": lambda graph: setattr(graph, "x", graph.x.view(-1, 1)),
    "an edge": lambda graph: graph.edge_index[0, 3].fill_(7),
    "order": lambda graph: setattr(graph, "edge_index", graph.edge_index.flip(1)),
    "a label": lambda graph: graph.y[0].fill_(1 - graph.y[0]),
    "weights": lambda graph: setattr(graph, "edge_weight", torch.ones(graph.edge_index.shape[1])),
    "names": lambda graph: setattr(graph, "node_ids", np.array([f"n{k}" for k in range(20)])),
    "direction": lambda graph: setattr(graph, "directed", True),
    "masks": lambda graph: setattr(graph, "train_mask", graph.y == 0),
    "sparse": lambda graph: setattr(graph, "x", graph.x.to_sparse_coo()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_shows_in_the_fingerprint(name):
    graph = generate_disease(20)
    assert fingerprint(graph) == fingerprint(generate_disease(20))
    CHANGES[name](graph)
    assert fingerprint(graph) != fingerprint(generate_disease(20))


@pytest.mark.parametrize("part", ["_x", "_edge_index", "_labels"])
def test_every_graph_of_a_collection_counts(part):
    expected = fingerprint(shapes())
    assert expected == fingerprint(shapes())
    for place in (0, 40, -1):
        collection = shapes()
        numbers = getattr(collection, part)
        numbers.view(-1)[min(place, numbers.numel() - 1)] ^= 1
        assert fingerprint(collection) != expected
    assert fingerprint(shapes(26)) != expected
    assert fingerprint(shapes()[1:]) != expected


def test_one_graph_or_many():
    assert is_graph(Data())
    assert not is_graph(shapes())
    assert not is_graph([Data()])
