"""The order of many pairs, in which the rows that they name are found in caches."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.compiled import compiled

# First nodes of a stripe: their rows, and the rows of their gradients, stay in a large cache while all second nodes
# pass by. And second nodes whose order among themselves does not matter.
_STRIPE, _NEAR = 1 << 15, 1 << 4

# Below this many stripes everything is in reach as it is.
_FEW = 4


def in_stripes(pairs: Tensor, num_nodes: int) -> Tensor:
    """``pairs (k, 2)`` on the CPU sorted by stripes of first nodes, and within one by second nodes, roughly; of small
    graphs as they are.
    """
    if num_nodes < _FEW * _STRIPE:
        return pairs
    sorted_pairs = np.empty(tuple(pairs.shape), np.int64)
    _sort(pairs.contiguous().numpy(), num_nodes, sorted_pairs)
    return torch.from_numpy(sorted_pairs)


@compiled
def _sort(pairs: Any, num_nodes: int, result: Any) -> None:
    stripes = (num_nodes + _STRIPE - 1) // _STRIPE
    starts = np.zeros(stripes + 1, np.int64)
    for p in range(len(pairs)):
        starts[pairs[p, 0] // _STRIPE + 1] += 1
    for stripe in range(stripes):
        starts[stripe + 1] += starts[stripe]
    by_stripe, free = np.empty_like(pairs), starts[:-1].copy()
    for p in range(len(pairs)):
        stripe = pairs[p, 0] // _STRIPE
        by_stripe[free[stripe], 0], by_stripe[free[stripe], 1] = pairs[p, 0], pairs[p, 1]
        free[stripe] += 1
    for stripe in range(stripes):
        part = by_stripe[starts[stripe] : starts[stripe + 1]]
        counts = np.zeros(num_nodes // _NEAR + 2, np.int64)
        for p in range(len(part)):
            counts[part[p, 1] // _NEAR + 1] += 1
        for group in range(len(counts) - 1):
            counts[group + 1] += counts[group]
        for p in range(len(part)):
            group = part[p, 1] // _NEAR
            place = starts[stripe] + counts[group]
            result[place, 0], result[place, 1] = part[p, 0], part[p, 1]
            counts[group] += 1
