"""Edges as the entries of a matrix: sorted by rows and columns, each once, with all self-loops.

Two passes that count, one for columns and one for rows, do what PyG's ``coalesce`` does by a sort.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import coalesce

from h2hgcn.compiled import compiled, inlined
from h2hgcn.layers.sparse import is_differentiated, row_pointers

# Row pointers are int32, which the products want.
_MOST = 2**31 - 1


def sorted_entries(index: Tensor, weights: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """CSR row pointers and columns (int32) and weights of a square matrix of this size.

    ``index (2, entries)`` has rows and columns. Weights of repeated entries are added up; a node without a self-loop
    gets one of weight 1.
    """
    if not index.is_cpu or is_differentiated(weights):
        return _by_sorting(index, weights, size)
    rows, columns = index.contiguous().numpy()
    crow, col, sums = _count(rows, columns, weights.contiguous().numpy(), size)
    if len(col) > _MOST:
        raise ValueError(f"the graph has {len(col):,} entries, self-loops included; there may be {_MOST:,}")
    return torch.from_numpy(crow.astype(np.int32)), torch.from_numpy(col), torch.from_numpy(sums)


def _by_sorting(index: Tensor, weights: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """With PyTorch's operations, which know devices and gradients."""
    is_loop = index[0] == index[1]
    missing = torch.ones(size, dtype=torch.bool, device=index.device)
    missing[index[0][is_loop]] = False
    nodes = missing.nonzero().squeeze(1)
    index = torch.cat([index, nodes.expand(2, -1)], dim=1)
    index, weights = coalesce(index, torch.cat([weights, weights.new_ones(len(nodes))]), size)
    return row_pointers(index[0], size), index[1].int(), weights


@compiled
def _count(rows: Any, columns: Any, weights: Any, size: int) -> Any:
    has_loop = np.zeros(size, np.bool_)
    starts, crow = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    for entry in range(len(rows)):
        starts[columns[entry] + 1] += 1
        crow[rows[entry] + 1] += 1
        if rows[entry] == columns[entry]:
            has_loop[rows[entry]] = True
    for node in range(size):
        if not has_loop[node]:
            starts[node + 1] += 1
            crow[node + 1] += 1
        starts[node + 1] += starts[node]
        crow[node + 1] += crow[node]
    total = starts[size]
    # by columns, each in the order of the entries
    row_of, weight_of, free = np.empty(total, np.int32), np.empty(total, weights.dtype), starts[:-1].copy()
    for entry in range(len(rows)):
        place = free[columns[entry]]
        row_of[place], weight_of[place] = rows[entry], weights[entry]
        free[columns[entry]] = place + 1
    for node in range(size):
        if not has_loop[node]:
            row_of[free[node]], weight_of[free[node]] = node, 1.0
    # by rows, where columns then come in their order, equal ones one after the other
    col, sums, ends = np.empty(total, np.int32), np.empty(total, weights.dtype), crow[:-1].copy()
    for column in range(size):
        for place in range(starts[column], starts[column + 1]):
            row = row_of[place]
            last = ends[row] - 1
            if last >= crow[row] and col[last] == column:
                sums[last] += weight_of[place]
            else:
                col[last + 1], sums[last + 1] = column, weight_of[place]
                ends[row] += 1
    return _without_gaps(crow, col, sums, ends)


@inlined
def _without_gaps(crow: Any, col: Any, sums: Any, ends: Any) -> Any:
    """Closes the gaps that repeated entries left at the ends of their rows."""
    kept = 0
    for row in range(len(ends)):
        first = crow[row]
        crow[row] = kept
        for entry in range(first, ends[row]):
            col[kept], sums[kept] = col[entry], sums[entry]
            kept += 1
    crow[len(ends)] = kept
    return crow, col[:kept], sums[:kept]
