import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2hgcn.datasets import DataError, load_dataset, split_graphs


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


def test_bad_options():
    with pytest.raises(DataError, match="folds=7 must lie between 2 and 3"):
        split_graphs(Labelled([0, 1] * 3), 7)
    with pytest.raises(DataError, match="not for None; use protocol='clean'"):
        split_graphs(SimpleNamespace(y=[0, 1]), protocol="fair-comparison")
