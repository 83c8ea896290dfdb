"""All points of a large graph, layer by layer and in blocks of rows: exact, and with no more memory than two layers."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import SparseMatrix
from h2hgcn.layers.h2h_conv import H2HConv
from h2hgcn.models.h2h_gcn import H2HGCN

# Rows of a block: what is written in passing stays below some tens of megabytes.
BLOCK = 1 << 16

Allocate = Callable[[int, int], Tensor]
Progress = Callable[[int, int], None]


def can_go_by_blocks(encoder: Any) -> bool:
    """Whether ``point_blocks`` knows the layers of an encoder."""
    return isinstance(encoder, H2HGCN)


def points_by_blocks(
    encoder: H2HGCN,
    features: Callable[[slice], Any],
    adjacency: Adjacency,
    block: int = BLOCK,
    nodes: Tensor | None = None,
) -> Tensor:
    """What ``encoder(x, adjacency)`` gives, to rounding, in evaluation mode."""
    points = encoder.log_curvature.new_empty(adjacency.num_nodes, encoder.dim + 1)
    for rows, part in point_blocks(encoder, features, adjacency, block, nodes):
        points[rows] = part
    return points


@torch.no_grad()
def point_blocks(
    encoder: H2HGCN,
    features: Callable[[slice], Any],
    adjacency: Adjacency,
    block: int = BLOCK,
    nodes: Tensor | None = None,
    allocate: Allocate | None = None,
    progress: Progress = lambda done, total: None,
) -> Iterator[tuple[slice, Tensor]]:
    """The points of all nodes, block by block: rows, and what these are.

    Args:
        features: Gives the features of a range of nodes.
        nodes: Of the training graph, one for each row, if the encoder has ``NodeVectors``; None for all in order.
        allocate: Makes the room for a layer of so many nodes and coordinates, which may be a file; else memory is.
        progress: Is told how many of all rows of all layers are done.
    """
    count = adjacency.num_nodes
    new_layer = allocate or encoder.log_curvature.detach().new_empty
    blocks = [slice(first, min(first + block, count)) for first in range(0, count, block)]
    total = count * (encoder.num_layers + 1)
    table = encoder.vectors
    spread = table(nodes, adjacency) if table is not None and nodes is not None and bool((nodes < 0).any()) else None

    def mapped(rows: slice) -> Tensor:
        vectors = None
        if table is not None:  # only new nodes need a copy of all vectors
            vectors = table(rows if nodes is None else nodes[rows]) if spread is None else spread[rows]
        return encoder.origin_map(features(rows), vectors)

    compute: Callable[[slice], Tensor] = mapped
    for number, conv in enumerate(encoder.all_convs()):
        points = new_layer(count, conv.in_dim + 1)
        for rows in blocks:
            points[rows] = compute(rows)
            progress(number * count + rows.stop, total)
        compute = partial(_convolved, conv, points, adjacency.matrix(conv.neighbor_weights, points.dtype))
    for rows in blocks:
        yield rows, compute(rows)
        progress(encoder.num_layers * count + rows.stop, total)


def _convolved(conv: H2HConv, points: Tensor, matrix: SparseMatrix, rows: slice) -> Tensor:
    """Some rows of a layer, by a matrix without its transpose: nothing is differentiated."""
    first, last = int(matrix.crow[rows.start]), int(matrix.crow[rows.stop])
    nothing = matrix.crow[:0]
    parts = (matrix.crow[rows.start : rows.stop + 1] - first, matrix.col[first:last], matrix.values[first:last])
    return conv.convolve(points, SparseMatrix(*parts, nothing, nothing, matrix.values[:0]))
