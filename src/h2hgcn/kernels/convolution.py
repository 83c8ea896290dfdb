"""The convolution and the exponential map at the origin, fast on a CPU.

Points are rows ``[time, space...]``. ``(T, S)`` is the weighted sum of a neighborhood, ``Q = sqrt(T² - |S|²)``
and ``a = T + Q``. For a leaky ReLU, which commutes with scaling, Eq. 12 and 13 of Dai et al. (2021) become

    R = act(S),  D = 2Q·a + (|S|² - |R|²),  c = 2a/D,  space = c·R,  time = sqrt(1 + c²|R|²)

No term of ``D`` is negative: nothing cancels.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import (
    LONG_SUM,
    MIDPOINT_FLOOR,
    SINHC_SERIES,
    SINHC_SERIES_LIMIT,
    SINHC_SLOPE_SERIES,
    SUM_TOLERANCE,
    full_precision,
    max_radius,
    wide,
)
from h2hgcn.jit import compiled, inlined
from h2hgcn.kernels import differentiable, run_on_rows, use_kernel
from h2hgcn.kernels.csr import SparseMatrix, csr_product, sparse_matmul

# Rows of a block: square roots and divisions of so many rows are taken together, by vector instructions.
_BLOCK = 32

# What is kept of every row, as the rows of one tensor ``(_KEPT, n)``: Q, a, c and D.
_NORM, _LIFTED, _SCALE, _GAP = range(_KEPT := 4)

_EPS = torch.finfo(torch.float32).eps


def convolve(
    points: Tensor, weight: Tensor, matrix: SparseMatrix, slope: float, reference: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Rotation by ``weight (out, in)``, midpoint and leaky ReLU of points ``(n, in + 1)``, on the CPU.

    ``reference`` does the same to points and weight by PyTorch's operations, for second derivatives.
    """
    run = partial(_convolved, matrix=matrix, slope=slope)
    return differentiable(run, partial(_convolution_gradients, matrix=matrix, slope=slope), reference, points, weight)


def _convolved(points: Tensor, weight: Tensor, matrix: SparseMatrix, slope: float) -> tuple[Tensor, ...]:
    """The points; sums of neighbors before and after the rotation, which commutes with sums; and ``rows``."""
    sums = csr_product(matrix, points)
    rows = points.new_empty(_KEPT, len(sums))
    again = _long_sums(sums, points, matrix)
    if again is not None:
        long, exact = again
        rows[_NORM] = 0
        rows[_NORM, long] = lorentz.norm_of_sum(exact).squeeze(1).to(rows.dtype)
        sums[long] = exact.to(sums.dtype)
    rotated = sums[:, 1:] @ weight.mT
    out = points.new_empty(len(sums), weight.shape[0] + 1)
    arrays = (sums, rotated, out, rows)
    run_on_rows(_activate, out.shape, *(x.detach().numpy() for x in arrays), slope, again is not None)
    return out, sums, rotated, rows


def _convolution_gradients(
    grad: Tensor, needed: tuple[bool, ...], points: Tensor, weight: Tensor, out: Tensor, sums: Tensor, rotated: Tensor,
    rows: Tensor, matrix: SparseMatrix, slope: float,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    grad_sums, grad_rotated = torch.empty_like(sums), torch.empty_like(rotated)
    arrays = (grad.contiguous(), out, rotated, rows, grad_sums, grad_rotated)
    run_on_rows(_activate_backward, out.shape, *(x.detach().numpy() for x in arrays), slope)
    grad_points = grad_weight = None
    with full_precision(grad):
        if needed[1]:
            grad_weight = grad_rotated.mT @ sums[:, 1:]
        if needed[0]:
            torch.mm(grad_rotated, weight, out=grad_sums[:, 1:])  # the first column is that of time
            grad_points = csr_product(matrix.transpose, grad_sums)
    return grad_points, grad_weight


def neighborhood_sums(points: Tensor, matrix: SparseMatrix) -> Tensor:
    """Weighted sums ``(T, S)`` of neighbors, in float64 unless the points' own precision serves.

    On the CPU, only long sums of points far out are taken in float64; elsewhere, to find them would hold up the device.
    """
    if not use_kernel(points, matrix.values):
        return sparse_matmul(matrix.to(torch.float64), wide(points))
    sums = sparse_matmul(matrix, points)
    again = _long_sums(sums.detach(), points.detach(), matrix)
    if again is None:
        return sums
    # other values in some rows, with the gradient of the sums
    (rows, exact), sums = again, wide(sums)
    return sums + torch.zeros_like(sums).index_copy(0, rows, exact - sums.detach()[rows])


@torch.no_grad()
def _long_sums(sums: Tensor, points: Tensor, matrix: SparseMatrix) -> tuple[Tensor, Tensor] | None:
    """Rows that have more neighbors than float32 sums can bear, and their sums in float64; None if there are none,
    which is the rule. See ``numerics.LONG_SUM``.
    """
    if sums.dtype != torch.float32:
        return None
    lengths = matrix.crow.diff()
    long = lengths > LONG_SUM
    if not bool(long.any()):
        return None
    rows = (long & (lengths * sums[:, 0].square() * _EPS > SUM_TOLERANCE)).nonzero().squeeze(1)
    if not len(rows):
        return None
    starts, counts = matrix.crow[rows].long(), lengths[rows].long()
    owner = torch.arange(len(rows)).repeat_interleave(counts)
    entries = torch.arange(len(owner)) + (starts - counts.cumsum(0) + counts)[owner]
    weights = wide(matrix.values[entries])
    # rounded weights do not add up to 1, which the norm would take for distance
    weights /= weights.new_zeros(len(rows)).index_add(0, owner, weights)[owner]
    weighted = wide(points[matrix.col[entries]]) * weights.unsqueeze(1)
    return rows, weighted.new_zeros(len(rows), points.shape[1]).index_add(0, owner, weighted)


@compiled
def _activate(
    first: int, last: int, sums: Any, rotated: Any, out: Any, rows: Any, negative_slope: float, norms_known: bool
) -> None:
    """``rows[_NORM]`` holds ``Q`` where it is known already, and 0 where it has to be computed, if ``norms_known``."""
    dim = rotated.shape[1]
    slope = rotated.dtype.type(negative_slope)
    zero, leak = slope * 0, slope * slope
    time, above, below = np.empty((3, _BLOCK), rotated.dtype)
    for start in range(first, last, _BLOCK):
        end = min(start + _BLOCK, last)
        for i in range(start, end):
            row = rotated[i]
            upper_square = lower_square = zero
            for k in range(dim):
                positive, negative = max(row[k], zero), min(row[k], zero)
                upper_square += positive * positive
                lower_square += negative * negative
            time[i - start], above[i - start], below[i - start] = sums[i, 0], upper_square, lower_square
        # loops that count from 0 and write one array each are turned into vector instructions
        norm, lifted = rows[_NORM, start:end], rows[_LIFTED, start:end]
        scale, gap = rows[_SCALE, start:end], rows[_GAP, start:end]
        for r in range(len(norm)):
            square = time[r] * time[r] - (above[r] + below[r])
            lifted[r] = math.sqrt(square if square > MIDPOINT_FLOOR else MIDPOINT_FLOOR)
        for r in range(len(norm)):
            norm[r] = norm[r] if norms_known and norm[r] != 0 else lifted[r]
        for r in range(len(norm)):
            lifted[r] = time[r] + norm[r]
        for r in range(len(norm)):
            # |S|² - |R|² is what the negative coordinates lost, so nothing cancels
            gap[r] = 2 * norm[r] * lifted[r] + (1 - leak) * below[r]
        for r in range(len(norm)):
            scale[r] = 2 * lifted[r] / gap[r]
        for r in range(len(norm)):
            time[r] = math.sqrt(1 + scale[r] * scale[r] * (above[r] + leak * below[r]))
        for i in range(start, end):
            row, new = rotated[i], out[i, 1:]
            upper, lower = rows[_SCALE, i], rows[_SCALE, i] * slope
            for k in range(dim):
                new[k] = row[k] * (upper if row[k] > 0 else lower)
            out[i, 0] = time[i - start]


@compiled
def _activate_backward(
    first: int, last: int, grads: Any, out: Any, rotated: Any, rows: Any, grad_sums: Any, grad_rotated: Any,
    negative_slope: float,
) -> None:  # fmt: skip
    norm, lifted, scale, gap = rows[_NORM], rows[_LIFTED], rows[_SCALE], rows[_GAP]
    dim = rotated.shape[1]
    slope = rotated.dtype.type(negative_slope)
    zero = slope * 0
    ratio, grad_square = np.empty_like(norm[:_BLOCK]), np.empty_like(norm[:_BLOCK])
    for start in range(first, last, _BLOCK):
        end = min(start + _BLOCK, last)
        for i in range(start, end):
            row, grad = rotated[i], grads[i, 1:]
            grad_scale = zero
            for k in range(dim):
                grad_scale += grad[k] * (row[k] if row[k] > 0 else slope * row[k])
            grad_sums[i, 0] = grad_scale
        for i in range(start, end):
            # c and time depend on a and |R|² alone; their derivatives, times D:
            # ∂c/∂a = -2·time/D, ∂c/∂|R|² = c/D, ∂time/∂a = -2·(c²|R|²)/(c·D), ∂time/∂|R|² = 2a²/D² = c·a/D
            c, t, grad_scale, grad_t = scale[i], out[i, 0], grad_sums[i, 0], grads[i, 0]
            ratio[i - start] = -2 * (grad_scale * t + grad_t * ((t * t - 1) / c)) / gap[i] / norm[i]
            grad_square[i - start] = 2 * c * (grad_scale + grad_t * lifted[i]) / gap[i]
            grad_sums[i, 0] = ratio[i - start] * lifted[i]
        for i in range(start, end):
            # in each coordinate act'(S)·(c·grad + grad_square·act(S)) - ratio·S
            row, grad, result = rotated[i], grads[i, 1:], grad_rotated[i]
            c, leaking = scale[i], slope * scale[i]
            upper = grad_square[i - start] - ratio[i - start]
            lower = slope * slope * grad_square[i - start] - ratio[i - start]
            for k in range(dim):
                result[k] = (c * grad[k] + upper * row[k]) if row[k] > 0 else (leaking * grad[k] + lower * row[k])


def exp_origin(tangent: Tensor, max_norm: float | None = None, rectified: bool = False) -> Tensor:
    """``lorentz.exp_origin`` of ``(n, dim)``, or of its ReLU. A row that holds NaN or infinity has NaN for its time."""
    if tangent.dim() != 2 or not use_kernel(tangent):
        return lorentz.exp_origin(tangent.relu() if rectified else tangent, max_norm)
    cap = max_radius(tangent.dtype) if max_norm is None else min(max_norm, max_radius(tangent.dtype))
    run, gradients = (partial(each, cap=cap, rectified=rectified) for each in (_mapped, _exp_gradients))
    return differentiable(run, gradients, lambda x: lorentz.exp_origin(x.relu() if rectified else x, cap), tangent)


def _mapped(tangent: Tensor, cap: float, rectified: bool) -> tuple[Tensor, ...]:
    """The points; of each row the norm ``r`` and the factor ``f`` of its space, in float64."""
    out = tangent.new_empty(tangent.shape[0], tangent.shape[1] + 1)
    scales = torch.empty(2, tangent.shape[0], dtype=torch.float64)
    arrays = tangent.detach().contiguous().numpy(), out.numpy(), scales.numpy()
    lowest = 0.0 if rectified else -math.inf
    run_on_rows(_exp, tangent.shape, *arrays, lowest, cap, math.sinh(cap), math.cosh(cap))
    return out, scales


def _exp_gradients(
    grad: Tensor, needed: Any, tangent: Tensor, out: Tensor, scales: Tensor, cap: float, rectified: bool
) -> tuple[Tensor]:
    gradient = torch.empty_like(tangent, memory_format=torch.contiguous_format)
    arrays = [x.detach().numpy() for x in (grad.contiguous(), out, scales, gradient)]
    run_on_rows(_exp_backward, tangent.shape, *arrays, 0.0 if rectified else -math.inf, cap)
    return (gradient,)


@compiled
def _exp(
    first: int, last: int, tangents: Any, out: Any, scales: Any,
    lowest: float, cap: float, sinh_cap: float, cosh_cap: float,
) -> None:  # fmt: skip
    dim = tangents.shape[1]
    zero, low = tangents.dtype.type(0), tangents.dtype.type(lowest)
    for i in range(first, last):
        row, new = tangents[i], out[i, 1:]
        square = total = zero
        for k in range(dim):
            kept = max(row[k], low)
            square += kept * kept
            total += row[k]
        norm = math.sqrt(np.float64(square))
        if not math.isfinite(square) or not math.isfinite(total):
            norm = _scaled_norm(row, low)
        if norm > cap:
            factor, cosh = sinh_cap / norm, cosh_cap
        elif norm * norm < SINHC_SERIES_LIMIT:
            factor = _series(norm * norm, SINHC_SERIES)
            cosh = math.sqrt(1 + factor * norm * factor * norm)
        else:  # NaN, too
            growth = math.exp(norm)
            factor, cosh = (growth - 1 / growth) / (2 * norm), (growth + 1 / growth) / 2
        scales[0, i], scales[1, i] = norm, factor
        out[i, 0] = cosh
        scale = tangents.dtype.type(factor)
        for k in range(dim):
            new[k] = scale * max(row[k], low)


@compiled
def _exp_backward(
    first: int, last: int, grads: Any, out: Any, scales: Any, result: Any, lowest: float, cap: float
) -> None:
    dim = result.shape[1]
    zero, low = result.dtype.type(0), result.dtype.type(lowest)
    for i in range(first, last):
        row, grad, new = out[i, 1:], grads[i, 1:], result[i]
        along = zero
        for k in range(dim):
            along += grad[k] * row[k]
        norm, factor = scales[0, i], scales[1, i]
        square = norm * norm
        # f·grad_space + κ·v, with κ·v = (κ/f)·space, since v may be too long for its square
        if norm > cap:
            stretch = -along / (factor * norm) / norm
        elif square < SINHC_SERIES_LIMIT:
            stretch = along * _series(square, SINHC_SLOPE_SERIES) / (factor * factor) + grads[i, 0]
        else:
            slope = (math.sqrt(1 + factor * norm * factor * norm) - factor) / square
            stretch = along * slope / (factor * factor) + grads[i, 0]
        scale, part = result.dtype.type(factor), result.dtype.type(stretch)
        for k in range(dim):
            change = scale * grad[k] + part * row[k]
            new[k] = zero if row[k] <= low else change  # NaN stays NaN


@inlined
def _series(x: float, coefficients: Any) -> float:
    value = 0.0
    for n in range(len(coefficients)):
        value = value * x + coefficients[len(coefficients) - 1 - n]
    return value


@inlined
def _scaled_norm(row: Any, low: Any) -> float:
    """The norm of a row whose sum or square overflows its type; NaN if there is a number that is not finite."""
    largest = 0.0
    for k in range(len(row)):
        if not math.isfinite(row[k]):
            return math.nan
        if row[k] > low:
            largest = max(largest, abs(np.float64(row[k])))
    square = 0.0
    for k in range(len(row)):
        share = np.float64(row[k]) / largest if row[k] > low and largest > 0 else 0.0
        square += share * share
    return largest * math.sqrt(square)
