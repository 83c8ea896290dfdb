"""The exponential map at the origin of every row, and its derivative, each in one pass over memory.

With ``r = |v|`` the point is ``space = f·v`` and ``time = cosh(r)``, ``f = sinh(r)/r``; a vector longer than the cap is
shortened to it, so that ``f = sinh(cap)/r``. ReLU may come first, in the same pass, since what is below 0 is known from
the points again. A row that holds NaN or infinity has NaN for its time, whatever ReLU makes of it. On other devices
than the CPU a chain of tensor operations does the same.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from h2hgcn.compiled import compiled, inlined, run_on_rows
from h2hgcn.geometry.numerics import (
    SINHC_SERIES,
    SINHC_SERIES_LIMIT,
    SINHC_SLOPE_SERIES,
    safe_norm,
    sinhc,
    sinhc_slope,
    wide,
)


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
