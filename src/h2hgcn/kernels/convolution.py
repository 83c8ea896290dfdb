"""The convolution and the exponential map, fast on a CPU: hand-written forward and backward passes."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from h2hgcn.geometry.lorentz import exp_origin
from h2hgcn.geometry.numerics import (
    LONG_SUM,
    MIDPOINT_FLOOR,
    SINHC_SERIES,
    SINHC_SERIES_LIMIT,
    SINHC_SLOPE_SERIES,
    SUM_TOLERANCE,
    full_precision,
    max_radius,
    safe_norm,
    sinhc,
    sinhc_slope,
    wide,
)
from h2hgcn.jit import compiled, inlined, run_on_rows
from h2hgcn.kernels.activation import BallActivation
from h2hgcn.kernels.csr import SparseMatrix, csr_product, sparse_matmul, vector_product

# Rows of a block: square roots and divisions of so many rows are taken together, by vector instructions.
_BLOCK = 32


# What is kept of every row, as the rows of one tensor ``(ROW_NUMBERS, n)``: its time, ``Q``, ``a``, ``c`` and ``D``.
TIME, NORM, LIFTED, SCALE, GAP = range(ROW_NUMBERS := 5)


def activate_rows(sum_space: Tensor, slope: float, rows: Tensor, out: Tensor, norms_known: bool = False) -> None:
    """The points of sums ``(n)`` and ``(n, dim)``, for a leaky ReLU of this slope.

    ``rows[TIME]`` holds the sums of times and, if ``norms_known``, ``rows[NORM]`` holds ``Q`` where it is known already
    and 0 where it has to be worked out; all of ``rows`` is filled. ``out`` takes the space coordinates ``(n, dim)``, or
    whole points if it is ``(n, dim + 1)``.
    """
    if not sum_space.is_cpu:
        _activate_by_tensors(sum_space, slope, rows, out, norms_known)
        return
    arrays = sum_space.contiguous().numpy(), out.numpy().reshape(-1), rows.numpy()
    run_on_rows(_activate, sum_space.shape, *arrays, out.shape[1], slope, norms_known)


def activate_rows_backward(
    grads: tuple[Tensor, ...], sum_space: Tensor, rows: Tensor, slope: float
) -> tuple[Tensor, Tensor]:
    """Gradients of the sums ``(n)`` and ``(n, dim)`` from those of whole points, or of their time and space."""
    if not sum_space.is_cpu or not sum_space.numel():
        return _activate_backward_by_tensors(grads, sum_space, rows, slope)
    # flat arrays and strides, since loops are compiled for each layout
    flat = [grad.detach().contiguous().numpy().reshape(-1) for grad in grads]
    time, space, time_stride, stride = (
        (flat[0], flat[0][1:], grads[0].shape[1], grads[0].shape[1])
        if len(flat) == 1
        else (*flat, 1, sum_space.shape[1])
    )
    grad_sum_time, grad_sum = rows.new_empty(rows.shape[1]), torch.empty_like(sum_space)
    arrays = [x.numpy() for x in (sum_space, rows, grad_sum_time, grad_sum)]
    run_on_rows(_activate_backward, sum_space.shape, time, space, *arrays, time_stride, stride, slope)
    return grad_sum_time, grad_sum


@compiled
def _activate(
    first: int, last: int, sums: Any, out: Any, rows: Any, stride: int, negative_slope: float, norms_known: bool
) -> None:
    dim = sums.shape[1]
    slope = sums.dtype.type(negative_slope)
    zero = slope * 0
    above, below = np.empty(_BLOCK, sums.dtype), np.empty(_BLOCK, sums.dtype)
    for start in range(first, last, _BLOCK):
        end = min(start + _BLOCK, last)
        for i in range(start, end):
            row = sums[i]
            upper_square = lower_square = zero
            for k in range(dim):
                positive, negative = max(row[k], zero), min(row[k], zero)
                upper_square += positive * positive
                lower_square += negative * negative
            above[i - start], below[i - start] = upper_square, lower_square
        _scale_block(
            rows[TIME, start:end], rows[NORM, start:end], rows[LIFTED, start:end], rows[SCALE, start:end],
            rows[GAP, start:end], above, below, slope * slope, norms_known,
        )  # fmt: skip
        for i in range(start, end):
            row, new = sums[i], out[(i + 1) * stride - dim : (i + 1) * stride]
            upper, lower = rows[SCALE, i], rows[SCALE, i] * slope
            for k in range(dim):
                new[k] = row[k] * (upper if row[k] > 0 else lower)
            if stride > dim:
                out[i * stride] = rows[TIME, i]


@inlined
def _scale_block(
    time: Any, norm: Any, lifted: Any, scale: Any, gap: Any, above: Any, below: Any, leak: Any, norms_known: bool
) -> None:
    """Fills the numbers of a block of rows, from the squares of what is above and below 0.

    Loops that count from 0 and write one array each are turned into vector instructions.
    """
    for r in range(len(time)):
        square = time[r] * time[r] - (above[r] + below[r])
        lifted[r] = math.sqrt(square if square > MIDPOINT_FLOOR else MIDPOINT_FLOOR)
    for r in range(len(time)):
        norm[r] = norm[r] if norms_known and norm[r] != 0 else lifted[r]
    for r in range(len(time)):
        lifted[r] = time[r] + norm[r]
    for r in range(len(time)):
        # |S|² - |R|² is what the negative coordinates lost, so nothing cancels
        gap[r] = 2 * norm[r] * lifted[r] + (1 - leak) * below[r]
    for r in range(len(time)):
        scale[r] = 2 * lifted[r] / gap[r]
    for r in range(len(time)):
        time[r] = math.sqrt(1 + scale[r] * scale[r] * (above[r] + leak * below[r]))


@compiled
def _activate_backward(
    first: int, last: int, grad_time: Any, grads: Any, sums: Any, rows: Any, grad_sum_time: Any, grad_sum: Any,
    time_stride: int, stride: int, negative_slope: float,
) -> None:  # fmt: skip
    time, norm, lifted, scale, gap = rows[TIME], rows[NORM], rows[LIFTED], rows[SCALE], rows[GAP]
    dim = sums.shape[1]
    slope = sums.dtype.type(negative_slope)
    zero = slope * 0
    ratio, grad_square = np.empty_like(norm[:_BLOCK]), np.empty_like(norm[:_BLOCK])
    for start in range(first, last, _BLOCK):
        end = min(start + _BLOCK, last)
        for i in range(start, end):
            row, grad = sums[i], grads[i * stride : i * stride + dim]
            grad_scale = zero
            for k in range(dim):
                grad_scale += grad[k] * (row[k] if row[k] > 0 else slope * row[k])
            grad_sum_time[i] = grad_scale
        for i in range(start, end):
            # c and time depend on a and |R|² alone; their derivatives, times D:
            # ∂c/∂a = -2·time/D, ∂c/∂|R|² = c/D, ∂time/∂a = -2·(c²|R|²)/(c·D), ∂time/∂|R|² = 2a²/D² = c·a/D
            c, t, grad_scale, grad_t = scale[i], time[i], grad_sum_time[i], grad_time[i * time_stride]
            ratio[i - start] = -2 * (grad_scale * t + grad_t * ((t * t - 1) / c)) / gap[i] / norm[i]
            grad_square[i - start] = 2 * c * (grad_scale + grad_t * lifted[i]) / gap[i]
            grad_sum_time[i] = ratio[i - start] * lifted[i]
        for i in range(start, end):
            # in each coordinate act'(S)·(c·grad + grad_square·act(S)) - ratio·S
            row, grad, result = sums[i], grads[i * stride : i * stride + dim], grad_sum[i]
            c, leaking = scale[i], slope * scale[i]
            upper = grad_square[i - start] - ratio[i - start]
            lower = slope * slope * grad_square[i - start] - ratio[i - start]
            for k in range(dim):
                result[k] = (c * grad[k] + upper * row[k]) if row[k] > 0 else (leaking * grad[k] + lower * row[k])


def _activate_by_tensors(sum_space: Tensor, slope: float, rows: Tensor, out: Tensor, norms_known: bool) -> None:
    time, norm, lifted, scale, gap = rows
    norm_sum = torch.linalg.vector_norm(sum_space, dim=1)
    worked_out = ((time - norm_sum) * (time + norm_sum)).clamp_min(MIDPOINT_FLOOR).sqrt()
    norm.copy_(torch.where(norm != 0, norm, worked_out) if norms_known else worked_out)
    torch.add(time, norm, out=lifted)
    dim = sum_space.shape[1]
    activated = torch.ops.aten.leaky_relu.out(sum_space, slope, out=out[:, out.shape[1] - dim :])
    norm_activated = torch.linalg.vector_norm(activated, dim=1)
    shrinkage = ((norm_sum - norm_activated) * (norm_sum + norm_activated)).clamp_min_(0.0)
    torch.addcmul(shrinkage, norm, lifted, value=2, out=gap)
    torch.div(2 * lifted, gap, out=scale)
    activated.mul_(scale[:, None])
    time.copy_((norm_activated * scale).square_().add_(1).sqrt_())
    if out.shape[1] > dim:
        out[:, 0] = time


def _activate_backward_by_tensors(
    grads: tuple[Tensor, ...], sum_space: Tensor, rows: Tensor, slope: float
) -> tuple[Tensor, Tensor]:
    grad_time, grad_space = (grads[0][:, 0], grads[0][:, 1:]) if len(grads) == 1 else grads
    time, norm, lifted, scale, gap = rows
    activated = torch.nn.functional.leaky_relu(sum_space, slope)
    grad_scale = (grad_space * activated).sum(1)
    ratio = -2 * (grad_scale * time + grad_time * ((time.square() - 1) / scale)) / gap / norm
    grad_square = 2 * scale * (grad_scale + grad_time * lifted) / gap
    grad_sum = activated.mul_(grad_square[:, None]).addcmul_(grad_space, scale[:, None])
    torch.ops.aten.leaky_relu_backward.grad_input(grad_sum, sum_space, slope, False, grad_input=grad_sum)
    return ratio * lifted, grad_sum.addcmul_(sum_space, ratio[:, None], value=-1)


class MappedRows(NamedTuple):
    """What the derivatives need beside the points: ``r`` and ``f``, both in float64."""

    norm: Tensor
    factor: Tensor


def exp_rows(tangent: Tensor, cap: float, rectified: bool, time: Tensor, out: Tensor) -> MappedRows:
    """Fills ``time (n)`` and ``out`` with the points of ``tangent (n, dim)``, or of its ReLU.

    ``out`` takes the space coordinates ``(n, dim)``, or whole points if it is ``(n, dim + 1)``.
    """
    if not tangent.is_cpu:
        return _exp_by_tensors(tangent, cap, rectified, time, out)
    scales = torch.empty(2, tangent.shape[0], dtype=torch.float64)
    arrays = tangent.detach().contiguous().numpy(), out.numpy().reshape(-1), time.numpy(), scales.numpy()
    lowest = 0.0 if rectified else -math.inf
    run_on_rows(_exp, tangent.shape, *arrays, out.shape[1], lowest, cap, math.sinh(cap), math.cosh(cap))
    return MappedRows(scales[0], scales[1])


def exp_rows_backward(
    grad_time: Tensor, grad_space: Tensor, space: Tensor, rows: MappedRows, cap: float, rectified: bool
) -> Tensor:
    """The gradient of the vectors ``(n, dim)`` from those of the points' time and space."""
    if not space.is_cpu:
        return _exp_backward_by_tensors(grad_time, grad_space, space, rows, cap, rectified)
    result = torch.empty(space.shape, dtype=space.dtype)
    # one layout, since loops are compiled for each
    arrays = [x.detach().contiguous().numpy() for x in (grad_time, grad_space, space, *rows, result)]
    run_on_rows(_exp_backward, space.shape, *arrays, 0.0 if rectified else -math.inf, cap)
    return result


@compiled
def _exp(
    first: int, last: int, tangents: Any, out: Any, time: Any, scales: Any,
    stride: int, lowest: float, cap: float, sinh_cap: float, cosh_cap: float,
) -> None:  # fmt: skip
    dim = tangents.shape[1]
    zero, low = tangents.dtype.type(0), tangents.dtype.type(lowest)
    for i in range(first, last):
        row, new = tangents[i], out[(i + 1) * stride - dim : (i + 1) * stride]
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
        time[i] = cosh
        scale = tangents.dtype.type(factor)
        for k in range(dim):
            new[k] = scale * max(row[k], low)
        if stride > dim:
            out[i * stride] = time[i]


@compiled
def _exp_backward(
    first: int, last: int, grad_time: Any, grads: Any, space: Any, norms: Any, factors: Any, result: Any,
    lowest: float, cap: float,
) -> None:  # fmt: skip
    dim = space.shape[1]
    zero, low = space.dtype.type(0), space.dtype.type(lowest)
    for i in range(first, last):
        row, grad, new = space[i], grads[i], result[i]
        along = zero
        for k in range(dim):
            along += grad[k] * row[k]
        norm, factor = norms[i], factors[i]
        square = norm * norm
        # f·grad_space + κ·v, with κ·v = (κ/f)·space, since v may be too long for its square
        if norm > cap:
            stretch = -along / (factor * norm) / norm
        elif square < SINHC_SERIES_LIMIT:
            stretch = along * _series(square, SINHC_SLOPE_SERIES) / (factor * factor) + grad_time[i]
        else:
            slope = (math.sqrt(1 + factor * norm * factor * norm) - factor) / square
            stretch = along * slope / (factor * factor) + grad_time[i]
        scale, part = space.dtype.type(factor), space.dtype.type(stretch)
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


def _exp_by_tensors(tangent: Tensor, cap: float, rectified: bool, time: Tensor, out: Tensor) -> MappedRows:
    finite = tangent.isfinite().all(1)
    tangent = tangent.clamp_min(0) if rectified else tangent
    norm = torch.where(finite, _row_norms(tangent), torch.nan)
    radius = norm.clamp_max(cap)
    factor = torch.where(norm > cap, torch.sinh(radius) / norm, sinhc(radius.square()))
    time.copy_(torch.cosh(radius))
    dim = tangent.shape[1]
    torch.mul(tangent, factor.to(tangent.dtype)[:, None], out=out[:, out.shape[1] - dim :])
    if out.shape[1] > dim:
        out[:, 0] = time
    return MappedRows(norm, factor)


def _exp_backward_by_tensors(
    grad_time: Tensor, grad_space: Tensor, space: Tensor, rows: MappedRows, cap: float, rectified: bool
) -> Tensor:
    norm, factor = rows
    grad = grad_space * space
    along = grad.sum(1)
    too_long = norm > cap
    slope = sinhc_slope(torch.where(too_long, 0.0, norm).square())
    stretch = torch.where(too_long, -along / (factor * norm) / norm, along * slope / factor.square() + grad_time)
    torch.mul(grad_space, factor.to(grad.dtype)[:, None], out=grad)
    grad.addcmul_(space, stretch.to(grad.dtype)[:, None])
    return grad.masked_fill_(space <= 0, 0) if rectified else grad


def _row_norms(rows: Tensor) -> Tensor:
    """Norms in float64; rows whose square overflows their own dtype are taken again with scaling."""
    norm = wide(torch.linalg.vector_norm(rows, dim=1))
    overflowed = norm.isinf()
    if bool(overflowed.any()):
        norm[overflowed] = safe_norm(wide(rows[overflowed])).squeeze(1)
    return norm


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


def convolve(
    time: Tensor, space: Tensor, weight: Tensor, matrix: SparseMatrix, activation: BallActivation
) -> tuple[Tensor, Tensor]:
    """Transformation by ``weight (out, in)``, midpoint and activation (Dai et al. 2021, Eq. 11-13) of all nodes."""
    if _needs_composition(matrix, activation):
        return composed_convolve(time, space, weight, matrix, activation)
    arguments = (time, space, weight, matrix, activation, False)
    if not torch.is_grad_enabled():
        convolved = _convolved(*arguments)
        return convolved.rows[TIME], convolved.out
    out_time, out_space = _Convolution.apply(*arguments)  # type: ignore[no-untyped-call]
    return out_time, out_space


def convolve_to_points(
    time: Tensor, space: Tensor, weight: Tensor, matrix: SparseMatrix, activation: BallActivation
) -> Tensor:
    """``convolve`` to whole points ``(n, out + 1)``, for a last layer."""
    if _needs_composition(matrix, activation):
        time, space = composed_convolve(time, space, weight, matrix, activation)
        return torch.cat([time.unsqueeze(1), space], dim=1)
    arguments = (time, space, weight, matrix, activation, True)
    if not torch.is_grad_enabled():
        return _convolved(*arguments).out
    points: Tensor = _Convolution.apply(*arguments)  # type: ignore[no-untyped-call]
    return points


def _needs_composition(matrix: SparseMatrix, activation: BallActivation) -> bool:
    return activation.slope is None or matrix.values.requires_grad or torch.compiler.is_compiling()


def composed_convolve(
    time: Tensor, space: Tensor, weight: Tensor, matrix: SparseMatrix, activation: BallActivation
) -> tuple[Tensor, Tensor]:
    """``convolve`` out of differentiable operations, for any activation."""
    transformed = space @ weight.mT
    if activation.slope is None:
        return activation(*midpoint(time, transformed, matrix))
    time, space, norm = sums_and_norm(time, transformed, matrix)
    activated = activation.function(space)
    shrinkage = (space - activated) * (space + activated)
    lifted = time + norm
    scale = 2 * lifted / (2 * norm * lifted + shrinkage.sum(-1))
    space = activated * scale.unsqueeze(-1)
    return (1 + space.square().sum(-1)).sqrt(), space


class _Convolved(NamedTuple):
    """The points or their space, and what the backward pass needs; the points' time is a row of ``rows``."""

    out: Tensor
    factor: Tensor
    sum_space: Tensor
    rows: Tensor


def _convolved(
    time: Tensor, space: Tensor, weight: Tensor, matrix: SparseMatrix, activation: BallActivation, joined: bool
) -> _Convolved:
    assert activation.slope is not None
    rows = time.new_empty(ROW_NUMBERS, matrix.crow.shape[0] - 1)
    sum_time = vector_product(matrix, time, out=rows[TIME])
    # the transformation commutes with the sums: it comes where the sums are narrower, or fewer
    if weight.shape[0] == weight.shape[1] and rows.shape[1] == time.shape[0]:
        factor, out = space, space @ weight.mT
        sums = sum_space = csr_product(*matrix[:3], out)
        again = long_sums(sum_time, time, out, matrix)
    else:
        sums = factor = csr_product(*matrix[:3], space)
        again = long_sums(sum_time, time, space, matrix)
    if again is not None:
        rows[NORM] = 0
        rows[TIME, again.rows], rows[NORM, again.rows], sums[again.rows] = again.time, again.norm, again.space
    if sums is factor:
        sum_space = factor @ weight.mT
    if joined or sums is factor:
        out = sum_space.new_empty(sum_space.shape[0], weight.shape[0] + joined)
    activate_rows(sum_space, activation.slope, rows, out, again is not None)
    return _Convolved(out, factor, sum_space, rows)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        time: Tensor,
        space: Tensor,
        weight: Tensor,
        matrix: SparseMatrix,
        activation: BallActivation,
        joined: bool,
    ) -> Tensor | tuple[Tensor, Tensor]:
        out, factor, sum_space, rows = _convolved(time, space, weight, matrix, activation, joined)
        ctx.matrix, ctx.activation, ctx.joined = matrix, activation, joined
        ctx.save_for_backward(time, space, weight, factor, sum_space, rows)
        return out if joined else (rows[TIME], out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        time, space, weight, factor, sum_space, rows = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            twin = partial(composed_convolve, matrix=ctx.matrix, activation=ctx.activation)
            parts = _parts(grads[0]) if ctx.joined else grads
            return *_second(twin, (time, space, weight), parts), None, None, None
        crow, col, values = ctx.matrix[3:]
        grad_sum_time, grad_sum = activate_rows_backward(grads, sum_space, rows, ctx.activation.slope)
        need_time, need_space, need_weight = ctx.needs_input_grad[:3]
        grad_in_time = vector_product(ctx.matrix, grad_sum_time, transposed=True) if need_time else None
        with full_precision(grad_sum):
            if weight.shape[0] == weight.shape[1]:
                grad_transformed = csr_product(crow, col, values, grad_sum)
                grad_weight = grad_transformed.mT @ factor if need_weight else None
                grad_in = torch.mm(grad_transformed, weight, out=grad_sum) if need_space else None
            else:
                grad_weight = grad_sum.mT @ factor if need_weight else None
                grad_in = csr_product(crow, col, values, grad_sum @ weight) if need_space else None
        return grad_in_time, grad_in, grad_weight, None, None, None


def exp_origin_parts(tangent: Tensor, max_norm: float, rectified: bool = False) -> tuple[Tensor, Tensor]:
    """``lorentz.exp_origin`` of ``(n, dim)``, or of its ReLU, as time and space.

    A row that holds NaN or infinity has NaN for its time.
    """
    if torch.compiler.is_compiling():
        return composed_exp_origin_parts(tangent, max_norm, rectified)
    if not torch.is_grad_enabled():
        return _mapped(tangent, max_norm, rectified, False)[:2]
    time, space = _ExpOrigin.apply(tangent, max_norm, rectified, False)  # type: ignore[no-untyped-call]
    return time, space


def exp_origin_points(tangent: Tensor) -> Tensor:
    """``lorentz.exp_origin`` of ``(n, dim)``."""
    if torch.compiler.is_compiling():
        return exp_origin(tangent)
    points: Tensor = _ExpOrigin.apply(tangent, max_radius(tangent.dtype), False, True)  # type: ignore[no-untyped-call]
    return points


def composed_exp_origin_parts(tangent: Tensor, max_norm: float, rectified: bool = False) -> tuple[Tensor, Tensor]:
    """``exp_origin_parts`` out of differentiable operations, for finite numbers."""
    return _parts(exp_origin(tangent.relu() if rectified else tangent, max_norm))


def _mapped(tangent: Tensor, max_norm: float, rectified: bool, joined: bool) -> tuple[Tensor, Tensor, MappedRows]:
    """Time, the points or their space, and what the backward pass needs."""
    time = tangent.new_empty(tangent.shape[0])
    out = tangent.new_empty(tangent.shape[0], tangent.shape[1] + joined)
    return time, out, exp_rows(tangent, max_norm, rectified, time, out)


class _ExpOrigin(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tangent: Tensor, max_norm: float, rectified: bool, joined: bool
    ) -> Tensor | tuple[Tensor, Tensor]:
        time, out, rows = _mapped(tangent, max_norm, rectified, joined)
        ctx.max_norm, ctx.rectified, ctx.joined = max_norm, rectified, joined
        ctx.save_for_backward(tangent, out, *rows)
        return out if joined else (time, out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        tangent, out, *rows = ctx.saved_tensors
        grad_time, grad_space = _parts(grads[0]) if ctx.joined else grads
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            twin = partial(composed_exp_origin_parts, max_norm=ctx.max_norm, rectified=ctx.rectified)
            return *_second(twin, (tangent,), (grad_time, grad_space)), None, None, None  # type: ignore[return-value]
        space = _parts(out)[1] if ctx.joined else out
        grad = exp_rows_backward(grad_time, grad_space, space, MappedRows(*rows), ctx.max_norm, ctx.rectified)
        return grad, None, None, None


def _parts(points: Tensor) -> tuple[Tensor, Tensor]:
    return points[:, 0], points[:, 1:]


def _second(
    composed: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...], grads: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Gradients of the composed twin that can be differentiated again."""
    # aliases, so that an input that was computed from another one counts once
    inputs = tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs)
    return torch.autograd.grad(composed(*inputs), inputs, grads, create_graph=True)
