import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader
from torch_geometric.utils import coalesce, degree

from h2hgcn.datasets import synthetic
from h2hgcn.datasets.synthetic import load_synthetic

PER_KIND = 20


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache") / "new"


@pytest.fixture(scope="module")
def collection(cache):
    return load_synthetic(cache, PER_KIND)


def test_three_kinds_of_graphs_as_their_parameters_say(collection):
    recipes = list(synthetic._recipes(PER_KIND, 0))
    for graph, (kind, nodes, links, probability, _) in zip(collection, recipes, strict=True):
        assert graph.y.tolist() == [kind]
        assert 200 <= graph.num_nodes == nodes <= 499
        assert 1 <= links <= 199
        assert 0.01 <= probability < 1
        pairs = nodes * (nodes - 1) // 2
        expected = [pairs * probability, nodes * (links // 2), (nodes - links) * links][kind]
        spread = np.sqrt(pairs * probability * (1 - probability)) if kind == 0 else 0
        assert abs(graph.num_edges / 2 - expected) <= 4 * spread
        assert torch.equal(graph.edge_index, coalesce(graph.edge_index))
        assert graph.is_undirected()
        assert not graph.has_self_loops()
    assert collection.y.bincount().tolist() == [PER_KIND] * 3


def test_parameters_spread_over_their_ranges():
    recipes = list(synthetic._recipes(graphs_per_kind=2000, seed=1))
    for values, low, high in (
        ([recipe.num_nodes for recipe in recipes], 200, 499),
        ([recipe.links for recipe in recipes], 1, 199),
        ([recipe.probability for recipe in recipes], 0.01, 1),
    ):
        assert min(values) == pytest.approx(low, rel=0.02)
        assert max(values) == pytest.approx(high, rel=0.02)
        assert np.mean(values) == pytest.approx((low + high) / 2, rel=0.03)


def test_features_are_the_degree(collection):
    for graph in collection[::7]:
        assert graph.x.is_sparse
        assert graph.x.is_coalesced()
        columns = graph.x.to_dense()
        assert columns.shape == (graph.num_nodes, 1001)
        assert torch.equal(columns.argmax(1), degree(graph.edge_index[0], graph.num_nodes).long())
        assert (columns.sum(1) == 1).all()


def test_degrees_beyond_the_last_column_share_it():
    x = synthetic._one_hot_degree(np.array([0, 999, 1000, 5000]))
    assert x.to_dense().argmax(1).tolist() == [0, 999, 1000, 1000]


def test_facts_of_the_collection(collection):
    assert (len(collection), collection.num_classes, collection.num_node_features) == (3 * PER_KIND, 3, 1001)
    assert collection.name == "synthetic"
    assert collection.y.dtype == torch.int64


def test_a_third_of_each_kind_to_train_validate_and_test(collection):
    parts = (collection.train, collection.val, collection.test)
    assert torch.cat(parts).sort().values.tolist() == list(range(3 * PER_KIND))
    for part in parts:
        counts = collection[part].y.bincount()
        assert counts.unique().numel() == 1
        assert abs(int(counts[0]) - PER_KIND / 3) < 1


def test_the_same_on_every_machine(cache, collection):
    bits = np.load(cache / f"synthetic-{PER_KIND}-0.npy")
    assert (
        hashlib.sha256(bits.tobytes()).hexdigest() == "a24c87d6413b5ffd27166887c47812ae39d3c637af77fc92d604a3461f2a6051"
    )


def test_a_graph_does_not_depend_on_how_many_there_are(tmp_path, collection):
    few = load_synthetic(tmp_path, 3)
    for kind in range(3):
        for number in range(3):
            ours, theirs = few[3 * kind + number], collection[PER_KIND * kind + number]
            assert torch.equal(ours.edge_index, theirs.edge_index)


def test_seeds_differ(tmp_path):
    first, second = load_synthetic(tmp_path, 3, seed=0), load_synthetic(tmp_path, 3, seed=1)
    assert not torch.equal(first[0].edge_index, second[0].edge_index)
    assert torch.equal(first[0].edge_index, load_synthetic(tmp_path, 3, seed=0)[0].edge_index)


@pytest.mark.parametrize("workers", [0, 1])
def test_batches(collection, workers):
    (batch,) = DataLoader(collection[[0, 25, 59]], batch_size=3, num_workers=workers)
    assert batch.x.shape == (batch.num_nodes, 1001)
    assert batch.y.tolist() == [0, 1, 2]
    assert torch.equal(batch.x.to_dense().argmax(1), degree(batch.edge_index[0], batch.num_nodes).long())


def test_a_pickled_collection_carries_no_graphs(collection):
    carried = pickle.dumps(collection)
    assert len(carried) < 20_000
    assert torch.equal(pickle.loads(carried)[5].edge_index, collection[5].edge_index)


def test_progress_rises_to_the_end(tmp_path):
    calls = []
    load_synthetic(tmp_path, 40, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(50, 120), (100, 120), (120, 120)]
    load_synthetic(tmp_path, 40, progress=lambda *_: pytest.fail("generated again"))


def test_what_is_there_is_used(cache, collection, monkeypatch):
    monkeypatch.setattr(synthetic, "pack_triangle", lambda *_: pytest.fail("generated again"))
    assert torch.equal(load_synthetic(cache, PER_KIND)[1].edge_index, collection[1].edge_index)


def test_an_interrupted_generation_leaves_nothing(tmp_path):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_synthetic(tmp_path, PER_KIND, progress=interrupt)
    assert not list(tmp_path.iterdir())
    assert len(load_synthetic(tmp_path, PER_KIND)) == 3 * PER_KIND


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def lengthen(path):
    array = np.load(path)
    np.save(path, np.append(array, array[:1]))


def scribble(path):
    path.write_bytes(b"\0" * 1000)


def change_a_bit(path):
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 0x80]))


@pytest.mark.parametrize("damage", [cut, lengthen, scribble, Path.unlink, change_a_bit])
def test_a_file_that_does_not_fit_is_made_again(tmp_path, damage):
    expected = load_synthetic(tmp_path, 3)[8].edge_index.clone()
    path = tmp_path / "synthetic-3-0.npy"
    whole = path.read_bytes()
    damage(path)
    calls = []
    again = load_synthetic(tmp_path, 3, progress=lambda *call: calls.append(call))
    assert calls == [(9, 9)]
    assert torch.equal(again[8].edge_index, expected)
    assert path.read_bytes() == whole
    assert {file.name for file in tmp_path.iterdir()} == {path.name, "synthetic-3-0.sha256"}


@pytest.mark.parametrize("arguments", [{"graphs_per_kind": 2}, {"seed": -1}, {"seed": 2**63}])
def test_arguments_out_of_range(tmp_path, arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        load_synthetic(tmp_path, **arguments)
