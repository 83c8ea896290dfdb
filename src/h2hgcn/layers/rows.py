"""What a convolution does to every row of its sums: norm, activation and scale, in one pass over memory.

With ``(T, S)`` the sums, ``Q = sqrt(T² - |S|²)``, ``a = T + Q`` and ``R = act(S)``, the new point is ``space = c·R``
with ``c = 2a/D``, ``D = 2Qa + |S|² - |R|² = a² - |R|²``, and ``time = (a² + |R|²)/D``. A compiled loop reads a row once
into the cache, where a chain of tensor operations would fetch it from memory six times; on other devices than the CPU
the chain is what there is. Memory is what these loops wait for, so they keep the new points out of the backward pass
(it works them out again from the sums) and take rows in blocks that stay in the cache.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.compiled import compiled, inlined, run_on_rows
from h2hgcn.geometry.numerics import MIDPOINT_FLOOR

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
