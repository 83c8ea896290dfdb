"""Pairs in the order of stripes are the same pairs."""

import numpy as np
import pytest
import torch

from h2hgcn.tasks.links import _NEAR, _STRIPE, in_stripes


def _drawn(num_nodes: int, count: int) -> torch.Tensor:
    return torch.from_numpy(np.random.RandomState(0).randint(0, num_nodes, (count, 2)))


@pytest.mark.parametrize("num_nodes", [4 * _STRIPE, 5 * _STRIPE + 17])
def test_pairs_are_kept_and_sorted_by_stripes(num_nodes: int) -> None:
    pairs = torch.cat([_drawn(num_nodes, 5000), torch.tensor([[num_nodes - 1, num_nodes - 1], [0, 0]])])
    found = in_stripes(pairs, num_nodes)
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, pairs.tolist()))
    keys = found[:, 0] // _STRIPE * num_nodes + found[:, 1] // _NEAR
    assert (keys.diff() >= 0).all()


def test_pairs_of_small_graphs_stay_as_they_are() -> None:
    pairs = _drawn(1000, 50)
    assert in_stripes(pairs, 1000) is pairs


def test_no_pairs() -> None:
    assert in_stripes(torch.empty(0, 2, dtype=torch.long), 1 << 20).shape == (0, 2)
