import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import index_to_mask

from h2hgcn.datasets import DataError, DataWarning, load_dataset, split_nodes

labels = st.lists(st.integers(-1, 3), min_size=5, max_size=60).filter(lambda y: max(y) >= 0)


def graph_of(y, **attributes):
    return Data(y=torch.tensor(y), edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=len(y), **attributes)


@given(y=labels, seed=st.integers(0, 2**32 - 1), val=st.floats(0, 0.4), test=st.floats(0, 0.4))
def test_clean_splits_are_stratified_and_disjoint(y, seed, val, test):
    split = split_nodes(graph_of(y), val, test, seed=seed)
    together = np.concatenate([split.train, split.val, split.test])
    np.testing.assert_array_equal(np.sort(together), np.flatnonzero(np.array(y) >= 0))
    for label in set(y) - {-1}:
        size = y.count(label)
        assert (np.array(y)[split.test] == label).sum() == round(test * size)
        assert abs((np.array(y)[split.val] == label).sum() - val * size) <= 1
    again = split_nodes(graph_of(y), val, test, seed=seed)
    np.testing.assert_array_equal(split.train, again.train)


def test_legacy_on_two_classes_has_no_overlap():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        split = split_nodes(graph_of([0, 1] * 20), protocol="legacy")
    assert len(np.unique(np.concatenate([split.train, split.val, split.test]))) == 40


def test_legacy_on_more_classes_warns_of_the_overlap():
    with pytest.warns(DataWarning, match="distinct test nodes, .* are also training nodes"):
        split_nodes(graph_of([0, 1, 2, 3] * 20), protocol="legacy")


def test_legacy_leaves_unlabelled_nodes_out():
    y = [0, 1, -1, 1, 0] * 8
    split = split_nodes(graph_of(y), protocol="legacy")
    together = np.concatenate([split.train, split.val, split.test])
    np.testing.assert_array_equal(np.sort(together), np.flatnonzero(np.array(y) >= 0))


def test_legacy_warns_of_validation_nodes_in_other_parts():
    with pytest.warns(DataWarning, match="0 are also training nodes and 10 validation nodes"):
        split = split_nodes(graph_of([2, 3] * 10), 0.5, 0.49, protocol="legacy")
    assert len(np.intersect1d(split.val, split.test))


def test_legacy_airport_counts_its_overlap(benchmark_data):
    with pytest.warns(DataWarning, match="of 506 distinct test nodes, 225 are also training nodes"):
        split = split_nodes(load_dataset("airport", benchmark_data), protocol="legacy")
    check_published(split, benchmark_data, "airport_nc")


@pytest.mark.filterwarnings("ignore:.*structural features")
def test_legacy_disease(benchmark_data):
    split = split_nodes(load_dataset("disease_nc", benchmark_data), protocol="legacy")
    assert (len(split.train), len(split.val), len(split.test)) == (748, 42, 254)
    check_published(split, benchmark_data, "disease_nc")


def check_published(split, folder, name):
    published = np.load(folder / "splits" / "hgcn-seed1234" / f"{name}.npz")
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(getattr(split, part), published[part])


@pytest.mark.parametrize("protocol", ["planetoid", "legacy"])
def test_masks_that_came_with_the_graph(protocol):
    masks = {f"{part}_mask": index_to_mask(torch.tensor([k]), 4) for k, part in enumerate(("train", "val", "test"))}
    split = split_nodes(graph_of([0, 1, 0, 1], **masks), protocol=protocol)
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0], [1], [2])


MASK = torch.tensor([True, False, False])
BAD_MASKS = {
    "shared": ((MASK, ~MASK, MASK), "train_mask and test_mask share 1 nodes"),
    "several splits": ((MASK[:, None].repeat(1, 10),) * 3, r"train_mask is bool of shape \(3, 10\)"),
    "short": ((MASK[:2], ~MASK, MASK), r"train_mask is bool of shape \(2,\)"),
    "indices": ((torch.tensor([0, 1, 2]),) * 3, "train_mask is int64"),
}


@pytest.mark.parametrize(("masks", "message"), BAD_MASKS.values(), ids=BAD_MASKS.keys())
def test_masks_that_are_no_split(masks, message):
    named = dict(zip(("train_mask", "val_mask", "test_mask"), masks, strict=True))
    with pytest.raises(DataError, match=message):
        split_nodes(graph_of([0, 1, 0], **named), protocol="planetoid")


@pytest.mark.parametrize("name", ["cora", "pubmed"])
def test_planetoid_sizes(benchmark_data, name):
    graph = load_dataset(name, benchmark_data)
    split = split_nodes(graph, protocol="planetoid")
    assert len(split.train) == 20 * (int(graph.y.max()) + 1)
    assert (len(split.val), len(split.test)) == (500, 1000)


def test_bad_graphs_and_options():
    with pytest.raises(DataError, match="no labels"):
        split_nodes(Data(num_nodes=3))
    with pytest.raises(DataError, match="no node has a label"):
        split_nodes(graph_of([-1, -1]))
    with pytest.raises(DataError, match="y holds the class -2"):
        split_nodes(graph_of([0, 1, -1, -2]))
    with pytest.raises(DataError, match="y is float32 of length 2"):
        split_nodes(graph_of([0.5, 1]))
    with pytest.raises(DataError, match="one class a node"):
        split_nodes(graph_of([[0, 1]]))
    with pytest.raises(DataError, match="train_mask"):
        split_nodes(graph_of([0, 1]), protocol="planetoid")
    with pytest.raises(DataError, match="no node is left to train on"):
        split_nodes(graph_of([0, 1]), 0.4, 0.55)
    with pytest.raises(DataError, match="'clean', 'legacy', 'planetoid'"):
        split_nodes(graph_of([0, 1]), protocol="other")


def test_a_given_split_is_that_of_the_masks():
    masks = {f"{part}_mask": torch.arange(9) % 3 == k for k, part in enumerate(("train", "val", "test"))}
    split = split_nodes(graph_of([0, 1, 2] * 3, **masks), protocol="given")
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0, 3, 6], [1, 4, 7], [2, 5, 8])
    assert split.protocol == "given"
    assert split.table()["node"].tolist() == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert split.table()["split"].tolist() == ["train"] * 3 + ["val"] * 3 + ["test"] * 3
    with pytest.raises(DataError, match="came without train_mask, val_mask and test_mask; give labels with a column"):
        split_nodes(graph_of([0, 1, 2]), protocol="given")
