"""Edges as the entries of a matrix: sorted by rows and columns, each once, with all self-loops.

Two passes that count, one for columns and one for rows, do what PyG's ``coalesce`` does by a sort. Where edges come
sorted, as those of most collections of graphs do, self-loops are all that is missing, and one pass is enough.
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


def sorted_entries(rows: Tensor, columns: Tensor, weights: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """CSR row pointers and columns (int32) and weights of a square matrix of this size.

    Weights of repeated entries are added up; a node without a self-loop gets one of weight 1.
    """
    if not rows.is_cpu or is_differentiated(weights):
        return _by_sorting(rows, columns, weights, size)
    row, column, weight = (part.contiguous().numpy() for part in (rows, columns, weights))
    crow, col, sums = _arranged(row, column, weight, size)
    if len(col) > _MOST:
        raise ValueError(f"the graph has {len(col):,} entries, self-loops included; there may be {_MOST:,}")
    return torch.from_numpy(crow.astype(np.int32)), torch.from_numpy(col), torch.from_numpy(sums)


def _by_sorting(rows: Tensor, columns: Tensor, weights: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """With PyTorch's operations, which know devices and gradients."""
    index = torch.stack([rows, columns])
    is_loop = index[0] == index[1]
    missing = torch.ones(size, dtype=torch.bool, device=index.device)
    missing[index[0][is_loop]] = False
    nodes = missing.nonzero().squeeze(1)
    index = torch.cat([index, nodes.expand(2, -1)], dim=1)
    index, weights = coalesce(index, torch.cat([weights, weights.new_ones(len(nodes))]), size)
    return row_pointers(index[0], size), index[1].int(), weights


@compiled
def _arranged(rows: Any, columns: Any, weights: Any, size: int) -> Any:
    if _are_sorted(rows, columns):
        return _with_loops(rows, columns, weights, size)
    if _are_sorted(columns, rows):  # as in PyG, whose edges are sorted by where they come from
        return _transposed(*_with_loops(columns, rows, weights, size))
    return _counted(rows, columns, weights, size)


@inlined
def _are_sorted(rows: Any, columns: Any) -> Any:
    """Whether entries come by rows, in each by columns, none of them twice."""
    for entry in range(1, len(rows)):
        step = rows[entry] - rows[entry - 1]
        if step < 0 or (step == 0 and columns[entry] <= columns[entry - 1]):
            return False
    return True


@inlined
def _transposed(crow: Any, col: Any, values: Any) -> Any:
    pointers, columns, moved = np.zeros_like(crow), np.empty_like(col), np.empty_like(values)
    for entry in range(len(col)):
        pointers[col[entry] + 1] += 1
    for row in range(len(crow) - 1):
        pointers[row + 1] += pointers[row]
    free = pointers[:-1].copy()
    for row in range(len(crow) - 1):
        for entry in range(crow[row], crow[row + 1]):
            place = free[col[entry]]
            columns[place], moved[place] = row, values[entry]
            free[col[entry]] = place + 1
    return pointers, columns, moved


@inlined
def _with_loops(rows: Any, columns: Any, weights: Any, size: int) -> Any:
    """For entries that are sorted, each once."""
    most = len(rows) + size
    crow, col, sums = np.zeros(size + 1, np.int64), np.empty(most, np.int32), np.empty(most, weights.dtype)
    entry = kept = 0
    for row in range(size):
        needs_loop = True
        while entry < len(rows) and rows[entry] == row:
            if needs_loop and columns[entry] >= row:
                needs_loop = False
                if columns[entry] > row:
                    col[kept], sums[kept] = row, 1.0
                    kept += 1
            col[kept], sums[kept] = columns[entry], weights[entry]
            kept += 1
            entry += 1
        if needs_loop:
            col[kept], sums[kept] = row, 1.0
            kept += 1
        crow[row + 1] = kept
    return crow, col[:kept], sums[:kept]


@inlined
def _counted(rows: Any, columns: Any, weights: Any, size: int) -> Any:
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
