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

from h2hgcn.compiled import compiled, run_on_rows
from h2hgcn.geometry.numerics import MIDPOINT_FLOOR

# Rows of a block: square roots and divisions of so many rows are taken together, by vector instructions.
_BLOCK = 32


# What is kept of every row, as the rows of one tensor ``(ROW_NUMBERS, n)``: its time, ``Q``, ``a``, ``c`` and ``D``.
TIME, NORM, LIFTED, SCALE, GAP = range(ROW_NUMBERS := 5)


def activate_rows(sum_space: Tensor, slope: float, rows: Tensor, out: Tensor) -> None:
    """The points of sums ``(n)`` and ``(n, dim)``, for a leaky ReLU of this slope.

    ``rows[TIME]`` holds the sums of times, ``rows[NORM]`` ``Q`` where it is known already, and 0 where it has to be
    worked out; all of ``rows`` is filled. ``out`` takes the space coordinates ``(n, dim)``, or whole points if it is
    ``(n, dim + 1)``.
    """
    if not sum_space.is_cpu:
        _activate_by_tensors(sum_space, slope, rows, out)
        return
    arrays = [x.numpy() for x in (sum_space.contiguous(), out.view(-1), rows)]
    kind = arrays[0].dtype.type
    run_on_rows(_activate, sum_space.shape, *arrays, out.shape[1], kind(slope), kind(MIDPOINT_FLOOR))


def activate_rows_backward(
    grad_time: Tensor, grad_space: Tensor, sum_space: Tensor, rows: Tensor, slope: float
) -> tuple[Tensor, Tensor]:
    """Gradients of the sums ``(n)`` and ``(n, dim)`` from those of the points."""
    if not sum_space.is_cpu or not sum_space.numel():
        return _activate_backward_by_tensors(grad_time, grad_space, sum_space, rows, slope)
    if grad_space.stride(1) != 1 or grad_space.stride(0) < grad_space.shape[1]:
        grad_space = grad_space.contiguous()
    # space is often a part of whole points: a flat array and a stride serve it without a copy
    stride = grad_space.stride(0)
    flat = grad_space.as_strided(((len(grad_space) - 1) * stride + sum_space.shape[1],), (1,))
    grad_sum_time, grad_sum = torch.empty_like(rows[TIME]), torch.empty_like(sum_space)
    tensors = (grad_time.contiguous(), flat, sum_space, rows, grad_sum_time, grad_sum)
    arrays = [x.detach().numpy() for x in tensors]
    run_on_rows(_activate_backward, sum_space.shape, *arrays, stride, arrays[0].dtype.type(slope))
    return grad_sum_time, grad_sum


@compiled
def _activate(first: int, last: int, sums: Any, out: Any, rows: Any, stride: int, slope: Any, floor: Any) -> None:
    time, norm, lifted, scale, gap = rows[TIME], rows[NORM], rows[LIFTED], rows[SCALE], rows[GAP]
    dim = sums.shape[1]
    zero = slope * 0
    leak = slope * slope
    for start in range(first, last, _BLOCK):
        end = min(start + _BLOCK, last)
        for i in range(start, end):
            row = sums[i]
            above = below = zero
            for k in range(dim):
                positive, negative = max(row[k], zero), min(row[k], zero)
                above += positive * positive
                below += negative * negative
            scale[i], gap[i] = above, below
        for i in range(start, end):
            above, below = scale[i], gap[i]
            worked_out = math.sqrt(max(time[i] * time[i] - (above + below), floor))
            norm[i] = worked_out if norm[i] == 0 else norm[i]
            lifted[i] = time[i] + norm[i]
            # |S|² - |R|² is what the negative coordinates lost, so nothing cancels
            gap[i] = 2 * norm[i] * lifted[i] + (1 - leak) * below
            scale[i] = 2 * lifted[i] / gap[i]
            time[i] = math.sqrt(1 + scale[i] * scale[i] * (above + leak * below))
        for i in range(start, end):
            row, new = sums[i], out[(i + 1) * stride - dim : (i + 1) * stride]
            upper, lower = scale[i], scale[i] * slope
            for k in range(dim):
                new[k] = row[k] * (upper if row[k] > 0 else lower)
            if stride > dim:
                out[i * stride] = time[i]


@compiled
def _activate_backward(
    first: int, last: int, grad_time: Any, grads: Any, sums: Any, rows: Any, grad_sum_time: Any, grad_sum: Any,
    stride: int, slope: Any,
) -> None:  # fmt: skip
    time, norm, lifted, scale, gap = rows[TIME], rows[NORM], rows[LIFTED], rows[SCALE], rows[GAP]
    dim = sums.shape[1]
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
            c, t, grad_scale = scale[i], time[i], grad_sum_time[i]
            ratio[i - start] = -2 * (grad_scale * t + grad_time[i] * ((t * t - 1) / c)) / gap[i] / norm[i]
            grad_square[i - start] = 2 * c * (grad_scale + grad_time[i] * lifted[i]) / gap[i]
            grad_sum_time[i] = ratio[i - start] * lifted[i]
        for i in range(start, end):
            # in each coordinate act'(S)·(c·grad + grad_square·act(S)) - ratio·S
            row, grad, result = sums[i], grads[i * stride : i * stride + dim], grad_sum[i]
            c, leaking = scale[i], slope * scale[i]
            upper = grad_square[i - start] - ratio[i - start]
            lower = slope * slope * grad_square[i - start] - ratio[i - start]
            for k in range(dim):
                result[k] = (c * grad[k] + upper * row[k]) if row[k] > 0 else (leaking * grad[k] + lower * row[k])


def _activate_by_tensors(sum_space: Tensor, slope: float, rows: Tensor, out: Tensor) -> None:
    time, norm, lifted, scale, gap = rows
    norm_sum = torch.linalg.vector_norm(sum_space, dim=1)
    worked_out = ((time - norm_sum) * (time + norm_sum)).clamp_min(MIDPOINT_FLOOR).sqrt()
    norm.copy_(torch.where(norm == 0, worked_out, norm))
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
    grad_time: Tensor, grad_space: Tensor, sum_space: Tensor, rows: Tensor, slope: float
) -> tuple[Tensor, Tensor]:
    time, norm, lifted, scale, gap = rows
    activated = torch.nn.functional.leaky_relu(sum_space, slope)
    grad_scale = (grad_space * activated).sum(1)
    ratio = -2 * (grad_scale * time + grad_time * ((time.square() - 1) / scale)) / gap / norm
    grad_square = 2 * scale * (grad_scale + grad_time * lifted) / gap
    grad_sum = activated.mul_(grad_square[:, None]).addcmul_(grad_space, scale[:, None])
    torch.ops.aten.leaky_relu_backward.grad_input(grad_sum, sum_space, slope, False, grad_input=grad_sum)
    return ratio * lifted, grad_sum.addcmul_(sum_space, ratio[:, None], value=-1)
