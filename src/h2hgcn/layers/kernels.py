"""The hand-written forward and backward pairs: fewer passes over the data and fewer large allocations than autograd
makes.

Each pair has a composed twin out of differentiable operations, which is its oracle in the tests, the path of its
second derivative, and what ``torch.compile`` traces. Points are held as time ``(n)`` and space ``(n, dim)``, apart:
slicing one tensor and joining it again would cost more than the geometry.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from h2hgcn.geometry.lorentz import exp_origin
from h2hgcn.geometry.numerics import full_precision, max_radius
from h2hgcn.layers.activation import BallActivation
from h2hgcn.layers.midpoint import long_sums, midpoint, sums_and_norm
from h2hgcn.layers.origin_rows import MappedRows, exp_rows, exp_rows_backward
from h2hgcn.layers.rows import NORM, ROW_NUMBERS, TIME, activate_rows, activate_rows_backward
from h2hgcn.layers.sparse import SparseMatrix, csr_product, vector_product


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
