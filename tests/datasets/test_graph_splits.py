import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.datasets import DataError, load_dataset, split_graphs
from h2hgcn.datasets.collection import FlatCollection


class Labelled(list):
    """A collection as far as splits are concerned."""

    def __init__(self, y, name=None):
        super().__init__(range(len(y)))
        self.y, self.name = np.array(y), name


@given(seed=st.integers(0, 2**32 - 1), folds=st.integers(2, 6), classes=st.integers(1, 3))
def test_folds_share_out_all_graphs(seed, folds, classes):
    graphs = Labelled([k % classes for k in range(60)])
    splits = split_graphs(graphs, folds, seed=seed)
    np.testing.assert_array_equal(np.sort(np.concatenate([s.test for s in splits])), np.arange(60))
    for split in splits:
        together = np.concatenate([split.train, split.val, split.test])
        np.testing.assert_array_equal(np.sort(together), np.arange(60))
        assert np.ptp(np.bincount(graphs.y[split.test], minlength=classes)) <= 1
    again = split_graphs(graphs, folds, seed=seed)
    assert all(np.array_equal(a.val, b.val) for a, b in zip(splits, again, strict=True))


@pytest.mark.parametrize("name", ["enzymes", "proteins"])
def test_folds_of_the_fair_comparison(benchmark_data, name):
    graphs = load_dataset(name, benchmark_data)
    splits = split_graphs(graphs, protocol="fair-comparison", root=benchmark_data)
    assert len(splits) == 10
    assert sum(len(split.test) for split in splits) == len(graphs)


def write_folds(root, name, content):
    path = root / "splits" / "fair-comparison" / f"{name}_splits.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    return path


def test_bad_folds(tmp_path):
    graphs = Labelled([0, 1] * 3, name="enzymes")
    with pytest.raises(DataError, match=r"ENZYMES_splits.json is missing: put it .* into"):
        split_graphs(graphs, protocol="fair-comparison", root=tmp_path)
    path = write_folds(tmp_path, "ENZYMES", "[{")
    with pytest.raises(DataError, match="is not a file of folds"):
        split_graphs(graphs, protocol="fair-comparison", root=tmp_path)
    fold = {"test": [0, 1], "model_selection": [{"train": [1, 2, 3], "validation": [4]}]}
    path.write_text(json.dumps([fold]))
    with pytest.raises(DataError, match="fold 0 does not hold each of 6 graphs once"):
        split_graphs(graphs, protocol="fair-comparison", root=tmp_path)


def published_folds(size, distinct=10):
    """Ten folds, of which only some differ."""
    graphs = np.arange(size)
    tests = [graphs[graphs % 10 == number % distinct] for number in range(10)]
    rest = [np.setdiff1d(graphs, test) for test in tests]
    return [
        {"test": test.tolist(), "model_selection": [{"train": others[1:].tolist(), "validation": others[:1].tolist()}]}
        for test, others in zip(tests, rest, strict=True)
    ]


@pytest.mark.parametrize("folds", [[], published_folds(20)[:9], published_folds(20, distinct=1)])
def test_published_folds_test_every_graph_once(tmp_path, folds):
    write_folds(tmp_path, "ENZYMES", json.dumps(folds))
    with pytest.raises(DataError, match=f"its {len(folds)} folds are not 10 that test each of 20 graphs once"):
        split_graphs(Labelled([0, 1] * 10, name="enzymes"), protocol="fair-comparison", root=tmp_path)


def test_published_folds_are_for_the_order_of_the_files(tmp_path):
    write_folds(tmp_path, "ENZYMES", json.dumps(published_folds(20)))
    empty = torch.zeros(21, dtype=torch.long)
    graphs = FlatCollection("enzymes", torch.ones(20, 1), torch.empty(2, 0).long(), torch.arange(21), empty, empty[:20])
    assert len(split_graphs(graphs, protocol="fair-comparison", root=tmp_path)) == 10
    for other in (graphs[list(range(19, -1, -1))], graphs[:19]):
        with pytest.raises(DataError, match="not for a selection or a shuffled copy"):
            split_graphs(other, protocol="fair-comparison", root=tmp_path)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "has no y"),
        ([], "one class for each of 0 graphs"),
        (["a"] * 20, "one class for each of 20 graphs, but is <U1"),
        (torch.zeros(20, 2), r"but is float32 \(20, 2\)"),
        ([0.5] * 20, "y has 0.5 among its classes"),
        ([0, np.nan] * 10, "y has nan among its classes"),
        ([0, np.inf] * 10, "y has inf among its classes"),
        ([0, -1] * 10, "y has -1 among its classes"),
    ],
)
def test_bad_classes(y, message):
    graphs = Labelled([0] * len(y or [])) if isinstance(y, list) else Labelled([0] * 20)
    graphs.y = y
    with pytest.raises(DataError, match=message):
        split_graphs(graphs, 2)


def test_classes_in_a_column():
    graphs = Labelled([0, 1] * 20)
    graphs.y = torch.tensor([[0.0], [1.0]] * 20)
    assert len(split_graphs(graphs, 2)) == 2


@pytest.mark.parametrize(("classes", "size", "folds"), [(2, 6, 5), (3, 4, 3), (6, 5, 4)])
def test_few_graphs_are_validated_with_one_of_each_class(classes, size, folds):
    y = np.repeat(np.arange(classes), size)
    for split in split_graphs(Labelled(y.tolist()), folds):
        assert sorted(y[split.val]) == list(range(classes))
        assert set(y[split.train]) == set(range(classes))


def test_bad_options():
    with pytest.raises(DataError, match=r"folds=2.5 must lie between 2 and 3"):
        split_graphs(Labelled([0, 1] * 3), 2.5)
    with pytest.raises(DataError, match=r"3 graphs are left .* cannot be held out class by class"):
        split_graphs(Labelled([0, 1] * 3), 2)
    with pytest.raises(DataError, match=r"folds=7 must lie between 2 and 3, .*--set task\.num_folds=3"):
        split_graphs(Labelled([0, 1] * 3), 7)
    with pytest.raises(DataError, match="the class 1 has one graph"):
        split_graphs(Labelled([0, 0, 0, 1]), 2)
    with pytest.raises(DataError, match="not for None; use protocol='clean'"):
        split_graphs(SimpleNamespace(y=[0, 1]), protocol="fair-comparison")
