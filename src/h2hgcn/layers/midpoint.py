"""Neighbourhood aggregation by the Einstein midpoint (Dai et al. 2021, Eq. 12) as one sparse product."""

import torch
from torch import Tensor

from h2hgcn.geometry.numerics import MIDPOINT_FLOOR
from h2hgcn.layers.sparse import SparseMatrix, sparse_matmul


def neighborhood_sums(time: Tensor, space: Tensor, matrix: SparseMatrix) -> tuple[Tensor, Tensor]:
    """Weighted means ``(T, S)`` of neighbours ``time (n)`` and ``space (n, dim)``: γ is the time of a point, γ·k its
    space.
    """
    return sparse_matmul(matrix, time), sparse_matmul(matrix, space)


def lorentz_norm(time: Tensor, space: Tensor) -> Tensor:
    """``Q = sqrt(T² - |S|²)`` of sums whose weights add up to 1.

    It is at least 1, since every pair of neighbours contributes at least the product of its weights; see
    ``MIDPOINT_FLOOR``.
    """
    norm = torch.linalg.vector_norm(space, dim=-1)
    square = (time - norm) * (time + norm)
    return square.clamp_min(MIDPOINT_FLOOR).sqrt()


def midpoint(time: Tensor, space: Tensor, matrix: SparseMatrix) -> tuple[Tensor, Tensor]:
    """The Einstein midpoint of every node's neighbourhood, as time ``(n)`` and space ``(n, dim)``."""
    time, space = neighborhood_sums(time, space, matrix)
    norm = lorentz_norm(time, space)
    return time / norm, space / norm.unsqueeze(-1)
