"""Sums and means over the neighbours of a node, itself left out, as sparse matrices."""

import torch
from torch import Tensor

from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.sparse import SparseMatrix


def neighbor_sums(adjacency: Adjacency, dtype: torch.dtype, weighted: bool = False) -> SparseMatrix:
    """The matrix whose product with ``x`` has the sum of ``x_j``, or of ``w_ij x_j``, over the neighbours ``j ≠ i``."""
    weights = adjacency.weights if weighted else torch.ones_like(adjacency.weights)
    return adjacency.with_values(weights.to(dtype) * ~is_loop(adjacency))


def neighbor_means(adjacency: Adjacency, dtype: torch.dtype) -> SparseMatrix:
    """The weighted mean over the neighbours ``j ≠ i``; 0 for a node that has none."""
    return adjacency.mean_matrix(dtype)


def rows_of(adjacency: Adjacency) -> Tensor:
    """The node that receives, for every entry."""
    return torch.repeat_interleave(adjacency.crow.diff())


def is_loop(adjacency: Adjacency) -> Tensor:
    return rows_of(adjacency) == adjacency.col
