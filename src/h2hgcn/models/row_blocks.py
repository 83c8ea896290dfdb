"""All points of a large graph, layer by layer and in blocks of rows: exact, and with no more memory than two layers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.h2h_conv import H2HConv
from h2hgcn.layers.sparse import SparseMatrix
from h2hgcn.models.h2h_gcn import H2HGCN

# Rows of a block: what is written in passing stays below some tens of megabytes.
BLOCK = 1 << 16


def can_go_by_blocks(encoder: Any) -> bool:
    """Whether ``points_by_blocks`` knows the layers of an encoder."""
    return isinstance(encoder, H2HGCN) and all(type(conv) is H2HConv for conv in encoder.convs)


@torch.no_grad()
def points_by_blocks(
    encoder: H2HGCN,
    features: Callable[[slice], Any],
    adjacency: Adjacency,
    block: int = BLOCK,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tensor:
    """What ``encoder(x, adjacency)`` gives, to rounding, in evaluation mode.

    ``features`` gives the features of a range of nodes; ``progress`` is told how many of all rows of all layers are
    done.
    """
    count = adjacency.num_nodes
    blocks = [slice(first, min(first + block, count)) for first in range(0, count, block)]
    total = count * (encoder.num_layers + 1)
    space = torch.empty(0)
    for rows in blocks:
        part_time, part_space = encoder.origin_map(features(rows))
        if not rows.start:
            time, space = part_time.new_empty(count), part_space.new_empty(count, part_space.shape[1])
        time[rows], space[rows] = part_time, part_space
        progress(rows.stop, total)
    *convs, last = encoder.all_convs()
    for layer, conv in enumerate(convs, 1):
        matrix = adjacency.matrix(conv.neighbor_weights, space.dtype)
        new_time, new_space = torch.empty_like(time), space.new_empty(count, conv.out_dim)
        for rows in blocks:
            new_time[rows], new_space[rows] = conv.rows_step(time, space, _rows_of(matrix, rows))
            progress(layer * count + rows.stop, total)
        time, space = new_time, new_space
    matrix = adjacency.matrix(last.neighbor_weights, space.dtype)
    points = space.new_empty(count, last.out_dim + 1)
    for rows in blocks:
        points[rows, 0], points[rows, 1:] = last.rows_step(time, space, _rows_of(matrix, rows))
        progress(encoder.num_layers * count + rows.stop, total)
    return points


def _rows_of(matrix: SparseMatrix, rows: slice) -> SparseMatrix:
    """A block of rows, without its transpose: nothing is differentiated."""
    first, last = int(matrix.crow[rows.start]), int(matrix.crow[rows.stop])
    nothing = matrix.crow[:0]
    parts = (matrix.crow[rows.start : rows.stop + 1] - first, matrix.col[first:last], matrix.values[first:last])
    return SparseMatrix(*parts, nothing, nothing, matrix.values[:0])
