"""Pairs in the order of stripes are the same pairs."""

import numpy as np
import pytest

from h2hgcn.datasets.pairs import _NEAR, _STRIPE, cache_order


def _drawn(num_nodes: int, count: int) -> np.ndarray:
    return np.random.RandomState(0).randint(0, num_nodes, (count, 2))


@pytest.mark.parametrize("num_nodes", [4 * _STRIPE, 5 * _STRIPE + 17])
def test_pairs_are_kept_and_sorted_by_stripes(num_nodes: int) -> None:
    pairs = np.concatenate([_drawn(num_nodes, 5000), [[num_nodes - 1, num_nodes - 1], [0, 0]]])
    found = cache_order(pairs, num_nodes)
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, pairs.tolist()))
    keys = found[:, 0] // _STRIPE * num_nodes + found[:, 1] // _NEAR
    assert (np.diff(keys) >= 0).all()


def test_pairs_of_small_graphs_stay_as_they_are() -> None:
    pairs = _drawn(1000, 50)
    assert cache_order(pairs, 1000) is pairs


def test_no_pairs() -> None:
    assert cache_order(np.empty((0, 2), np.int64), 1 << 20).shape == (0, 2)
