"""The hand-written forward and backward pairs: fewer passes over the data and fewer large allocations than autograd
makes.

Each pair has a composed twin out of differentiable operations, which is its oracle in the tests, the path of its
second derivative, and what ``torch.compile`` traces. Points are held as time ``(n)`` and space ``(n, dim)``, apart:
slicing one tensor and joining it again would cost more than the geometry.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from h2hgcn.geometry.lorentz import exp_origin
from h2hgcn.geometry.numerics import full_precision, safe_norm, sinhc, sinhc_slope, wide
from h2hgcn.layers.activation import BallActivation
from h2hgcn.layers.midpoint import long_sums, midpoint, sums_and_norm
from h2hgcn.layers.rows import ActivatedRows, activate_rows, activate_rows_backward
from h2hgcn.layers.sparse import SparseMatrix, csr_matmul


def convolve(
    time: Tensor, space: Tensor, weight: Tensor, matrix: SparseMatrix, activation: BallActivation
) -> tuple[Tensor, Tensor]:
    """Transformation by ``weight (out, in)``, midpoint and activation (Dai et al. 2021, Eq. 11-13) of all nodes."""
    if _needs_composition(matrix, activation):
        return composed_convolve(time, space, weight, matrix, activation)
    out_time, out_space = _Convolution.apply(time, space, weight, matrix, activation, False)  # type: ignore[no-untyped-call]
    return out_time, out_space


def convolve_to_points(
    time: Tensor, space: Tensor, weight: Tensor, matrix: SparseMatrix, activation: BallActivation
) -> Tensor:
    """``convolve`` to whole points ``(n, out + 1)``, for a last layer."""
    if _needs_composition(matrix, activation):
        time, space = composed_convolve(time, space, weight, matrix, activation)
        return torch.cat([time.unsqueeze(1), space], dim=1)
    points: Tensor = _Convolution.apply(time, space, weight, matrix, activation, True)  # type: ignore[no-untyped-call]
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
        crow, col, values = matrix[:3]
        assert activation.slope is not None
        sum_time = csr_matmul(crow, col, values, time)
        # the transformation commutes with the sums: it comes where the sums are narrower
        if weight.shape[0] == weight.shape[1]:
            factor, out = space, space @ weight.mT
            sum_space = csr_matmul(crow, col, values, out)
            again = long_sums(sum_time, time, out, matrix)
            if again is not None:
                sum_time[again.rows], sum_space[again.rows] = again.time, again.space
        else:
            factor = csr_matmul(crow, col, values, space)
            again = long_sums(sum_time, time, space, matrix)
            if again is not None:
                sum_time[again.rows], factor[again.rows] = again.time, again.space
            sum_space = factor @ weight.mT
            out = torch.empty(0)
        if joined or not out.numel():
            out = sum_space.new_empty(len(sum_space), weight.shape[0] + joined)
        norm = torch.zeros_like(sum_time)
        if again is not None:
            norm[again.rows] = again.norm
        rows = activate_rows(sum_time, sum_space, activation.slope, norm, out)
        ctx.matrix, ctx.activation, ctx.joined = matrix, activation, joined
        ctx.save_for_backward(time, space, weight, factor, sum_space, *rows)
        return out if joined else (rows.time, out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        time, space, weight, factor, sum_space, *rows = ctx.saved_tensors
        grad_time, grad_space = (grads[0][:, 0], grads[0][:, 1:]) if ctx.joined else grads
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            twin = partial(composed_convolve, matrix=ctx.matrix, activation=ctx.activation)
            return *_second(twin, (time, space, weight), (grad_time, grad_space)), None, None, None
        crow, col, values = ctx.matrix[3:]
        slope = ctx.activation.slope
        grad_sum_time, grad_sum = activate_rows_backward(grad_time, grad_space, sum_space, ActivatedRows(*rows), slope)
        need_time, need_space, need_weight = ctx.needs_input_grad[:3]
        grad_in_time = csr_matmul(crow, col, values, grad_sum_time) if need_time else None
        with full_precision(grad_sum):
            if weight.shape[0] == weight.shape[1]:
                grad_transformed = csr_matmul(crow, col, values, grad_sum)
                grad_weight = grad_transformed.mT @ factor if need_weight else None
                grad_in = torch.mm(grad_transformed, weight, out=grad_sum) if need_space else None
            else:
                grad_weight = grad_sum.mT @ factor if need_weight else None
                grad_in = csr_matmul(crow, col, values, grad_sum @ weight) if need_space else None
        return grad_in_time, grad_in, grad_weight, None, None, None


def exp_origin_parts(tangent: Tensor, max_norm: float) -> tuple[Tensor, Tensor]:
    """``lorentz.exp_origin`` of ``(n, dim)`` as time and space."""
    if torch.compiler.is_compiling():
        return composed_exp_origin_parts(tangent, max_norm)
    time, space = _ExpOrigin.apply(tangent, max_norm)  # type: ignore[no-untyped-call]
    return time, space


def composed_exp_origin_parts(tangent: Tensor, max_norm: float) -> tuple[Tensor, Tensor]:
    """``exp_origin_parts`` out of differentiable operations."""
    points = exp_origin(tangent, max_norm)
    return points[:, 0], points[:, 1:]


class _ExpOrigin(torch.autograd.Function):
    """``space = f·v`` and ``time = cosh(r)`` with ``r = min(|v|, max_norm)`` and ``f = sinh(r)/|v|``."""

    @staticmethod
    def forward(ctx: Any, tangent: Tensor, max_norm: float) -> tuple[Tensor, Tensor]:
        norm = _row_norms(tangent)
        radius = norm.clamp_max(max_norm)
        factor = torch.where(norm > max_norm, torch.sinh(radius) / norm, sinhc(radius.square()))
        space = tangent * factor.to(tangent.dtype)[:, None]
        ctx.max_norm = max_norm
        ctx.save_for_backward(tangent, space, norm, factor)
        return torch.cosh(radius).to(tangent.dtype), space

    @staticmethod
    def backward(ctx: Any, grad_time: Tensor, grad_space: Tensor) -> tuple[Tensor, None]:
        tangent, space, norm, factor = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            grads = (grad_time, grad_space)
            return *_second(lambda x: composed_exp_origin_parts(x, ctx.max_norm), (tangent,), grads), None  # type: ignore[return-value]
        # f·grad_space + κ·v, with κ·v = (κ/f)·space, since v may be too long for its square
        grad = grad_space * space
        along = grad.sum(1)
        too_long = norm > ctx.max_norm
        short = torch.where(too_long, 0.0, norm).square()
        stretch = torch.where(
            too_long, -along / (factor * norm.square()), along * sinhc_slope(short) / factor.square() + grad_time
        )
        torch.mul(grad_space, factor.to(grad.dtype)[:, None], out=grad)
        return grad.addcmul_(space, stretch.to(grad.dtype)[:, None]), None


def _row_norms(rows: Tensor) -> Tensor:
    """Norms in float64; rows whose square overflows their own dtype are taken again with scaling."""
    norm = wide(torch.linalg.vector_norm(rows, dim=1))
    overflowed = norm.isinf()
    if bool(overflowed.any()):
        norm[overflowed] = safe_norm(wide(rows[overflowed])).squeeze(1)
    return norm


def _second(
    composed: Callable[..., tuple[Tensor, ...]], inputs: tuple[Tensor, ...], grads: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Gradients of the composed twin that can be differentiated again."""
    # aliases, so that an input that was computed from another one counts once
    inputs = tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs)
    return torch.autograd.grad(composed(*inputs), inputs, grads, create_graph=True)
