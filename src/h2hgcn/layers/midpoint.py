"""Neighbourhood aggregation by the Einstein midpoint (Dai et al. 2021, Eq. 12) as one sparse product."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from h2hgcn.compiled import compiled
from h2hgcn.geometry.numerics import LONG_SUM, MIDPOINT_FLOOR, SUM_TOLERANCE, wide
from h2hgcn.layers.sparse import SparseMatrix, sparse_matmul

_EPS = torch.finfo(torch.float32).eps


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
    return (time.square() - space.square().sum(-1)).clamp_min(MIDPOINT_FLOOR).sqrt()


class LongSums(NamedTuple):
    """Rows that have more neighbours than float32 sums can bear, with their sums and norms from float64."""

    rows: Tensor
    time: Tensor
    space: Tensor
    norm: Tensor


@torch.no_grad()
def long_sums(sum_time: Tensor, time: Tensor, space: Tensor, matrix: SparseMatrix) -> LongSums | None:
    """The sums that have to be taken again; None if all are good, which is the rule. See ``numerics.LONG_SUM``."""
    if sum_time.dtype != torch.float32:
        return None
    if sum_time.is_cpu and not _any_long_sum(matrix.arrays[0], sum_time.numpy(), _EPS):
        return None
    lengths = matrix.crow.diff()
    error = lengths * sum_time.square() * _EPS
    rows = ((lengths > LONG_SUM) & (error > SUM_TOLERANCE)).nonzero().squeeze(1)
    if not len(rows):
        return None
    starts, counts = matrix.crow[rows].long(), lengths[rows].long()
    owner = torch.arange(len(rows), device=rows.device).repeat_interleave(counts)
    entries = torch.arange(len(owner), device=rows.device) + (starts - counts.cumsum(0) + counts)[owner]
    senders, weights = matrix.col[entries], wide(matrix.values[entries])
    points = torch.cat([wide(time[senders]).unsqueeze(1), wide(space[senders])], dim=1) * weights.unsqueeze(1)
    # rounded weights do not add up to 1, which the norm would take for distance
    total = weights.new_zeros(len(rows)).index_add(0, owner, weights).unsqueeze(1)
    sums = points.new_zeros(len(rows), points.shape[1]).index_add(0, owner, points) / total
    norm = lorentz_norm(sums[:, 0], sums[:, 1:])
    return LongSums(rows, *(part.to(sum_time.dtype) for part in (sums[:, 0], sums[:, 1:], norm)))


@compiled
def _any_long_sum(crow: Any, sum_time: Any, eps: float) -> bool:
    found = False
    for i in range(len(sum_time)):  # to the end, since an exit would keep the loop from vector instructions
        length = crow[i + 1] - crow[i]
        found |= (length > LONG_SUM) & (length * sum_time[i] * sum_time[i] * eps > SUM_TOLERANCE)
    return found


def sums_and_norm(time: Tensor, space: Tensor, matrix: SparseMatrix) -> tuple[Tensor, Tensor, Tensor]:
    """``(T, S)`` and ``Q`` of every neighbourhood. Compiled code cannot branch on values, and keeps long sums as they
    are.
    """
    sum_time, sum_space = neighborhood_sums(time, space, matrix)
    norm = lorentz_norm(sum_time, sum_space)
    again = None if torch.compiler.is_compiling() else long_sums(sum_time, time, space, matrix)
    if again is None:
        return sum_time, sum_space, norm
    return (
        _with_values(sum_time, again.rows, again.time),
        _with_values(sum_space, again.rows, again.space),
        _with_values(norm, again.rows, again.norm),
    )


def _with_values(x: Tensor, rows: Tensor, values: Tensor) -> Tensor:
    """``x`` with other values in some rows, and its own gradient."""
    correction = torch.zeros_like(x).index_copy(0, rows, values - x.detach()[rows])
    return x + correction


def midpoint(time: Tensor, space: Tensor, matrix: SparseMatrix) -> tuple[Tensor, Tensor]:
    """The Einstein midpoint of every node's neighbourhood, as time ``(n)`` and space ``(n, dim)``."""
    time, space, norm = sums_and_norm(time, space, matrix)
    return time / norm, space / norm.unsqueeze(-1)
