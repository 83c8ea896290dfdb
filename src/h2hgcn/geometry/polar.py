"""Distance between points of the hyperboloid in polar form, with a hand-written gradient.

With ``s = |s|·u`` the space part of a point and ``t`` its time, the chord ``q = 2(cosh d - 1)`` is

    q = 2(cosh(r_x - r_y) - 1) + |s_x||s_y|·|u_x - u_y|²,

a radial term plus an angular one, both non-negative: nothing cancels, at any radius. ``sinh(r_x - r_y)``, from which
the radial term follows, is ``(|s_x|² - |s_y|²)/(|s_x|t_y + |s_y|t_x)``. At the origin ``u`` counts as 0. When time
follows from space, ``½ ∂q/∂s_x = (t_y/t_x)·s_x - s_y``, and ``∂q/∂s_y`` is ``-t_x/t_y`` times that. All of it is
taken in float64 from the space coordinates as they are stored.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from h2hgcn.geometry.numerics import asinhc, floored_reciprocal, safe_reciprocal, safe_sqrt, squared_norm, wide

# Elements of one block of rows: a few float64 scratch arrays of this size stay in a core's cache.
_BLOCK_ELEMENTS = 1 << 17


def pair_distance(x: Tensor, y: Tensor, *, squared: bool) -> Tensor:
    """Distance, or its square, between points ``(..., dim + 1)`` that broadcast; their time is derived anew.

    At equal points the value is 0 and so is the gradient; elsewhere the gradient of the distance has norm at most 1.
    """
    dtype = torch.promote_types(x.dtype, y.dtype)
    x, y = torch.broadcast_tensors(x.to(dtype), y.to(dtype))
    shape, width = x.shape[:-1], x.shape[-1]
    rows = shape.numel()
    distance: Tensor = _PairDistance.apply(  # type: ignore[no-untyped-call]
        x.reshape(rows, width), y.reshape(rows, width), squared
    )
    return distance.reshape(shape)


def squared_chord(x: Tensor, y: Tensor) -> Tensor:
    """``q`` in float64 out of differentiable operations; the last axis is kept.

    With a point near the origin it is ``|s_x - s_y|² - (t_x - t_y)²``, which is smooth there and cancels far out only.
    """
    x, y = wide(x[..., 1:]), wide(y[..., 1:])
    square_x, square_y = squared_norm(x), squared_norm(y)
    time_x, time_y = (1 + square_x).sqrt(), (1 + square_y).sqrt()
    near = torch.minimum(square_x, square_y) < 1
    time_difference = (square_x - square_y) / (time_x + time_y)
    straight = squared_norm(x - y) - time_difference.square()
    norm_x, norm_y = (torch.where(near, 1.0, square).sqrt() for square in (square_x, square_y))
    sinh_radial = (square_x - square_y) / (norm_x * time_y + norm_y * time_x)
    polar = _chord_of_sinh(sinh_radial) + norm_x * norm_y * squared_norm(x / norm_x - y / norm_y)
    return torch.where(near, straight, polar)


def composed_pair_distance(x: Tensor, y: Tensor, squared: bool) -> Tensor:
    """The same function out of differentiable operations: the gradient's oracle, and the path of its derivative."""
    chord = squared_chord(x, y).squeeze(-1)
    stretch = asinhc(chord / 4)
    return (chord * stretch.square() if squared else safe_sqrt(chord) * stretch).to(x.dtype)


def _chord_of_sinh(sinh: Tensor) -> Tensor:
    square = sinh.square()
    return 2 * square / (1 + (1 + square).sqrt())


def _chord_and_times(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of space coordinates in float64; ``x`` is overwritten."""
    norm_x, norm_y = torch.linalg.vector_norm(x, dim=1), torch.linalg.vector_norm(y, dim=1)
    time_x, time_y = norm_x.square().add_(1).sqrt_(), norm_y.square().add_(1).sqrt_()
    crossed = torch.mul(norm_x, time_y).addcmul_(norm_y, time_x)
    sinh_radial = (norm_x - norm_y).mul_(norm_x + norm_y).mul_(floored_reciprocal(crossed))
    # |s_x|(u_x - u_y): exactly 0 for equal points, since their ratio of norms is exactly 1
    separation = x.addcmul_(y, (norm_x / torch.where(norm_y > 0, norm_y, math.inf))[:, None], value=-1)
    angular = torch.linalg.vector_norm(separation, dim=1).square_().mul_(norm_y).mul_(safe_reciprocal(norm_x))
    return _chord_of_sinh(sinh_radial).add_(angular), time_x, time_y


class _PairDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, squared: bool) -> Tensor:
        chord, time_x, time_y = torch.empty(3, len(x), dtype=torch.float64, device=x.device)
        for block, wide_x, wide_y in _wide_blocks(x, y):
            chord[block], time_x[block], time_y[block] = _chord_and_times(wide_x[:, 1:], wide_y[:, 1:])
        sinh = torch.addcmul(chord, chord, chord, value=0.25).sqrt_()
        distance = torch.add(sinh, chord, alpha=0.5).log1p_()
        ctx.squared = squared
        ctx.save_for_backward(x, y, distance, sinh, time_y.div_(time_x))
        return (distance.square() if squared else distance).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, y, distance, sinh, ratio = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            return *_differentiable_gradients(x, y, ctx.squared, grad), None
        # 2 dq/d(distance²) = 2 d/sinh d, which is 2 at 0; 2 dq/d(distance) = 1/sinh d, taken as 0 at 0
        slope = 2 * distance if ctx.squared else (sinh > 0).to(sinh.dtype)
        scale = (slope * floored_reciprocal(sinh) * grad)[:, None]
        scale_x = scale * ratio[:, None]
        grad_x = torch.empty_like(x)
        for block, wide_x, wide_y in _wide_blocks(x, y):
            grad_x[block] = wide_x.mul_(scale_x[block]).addcmul_(wide_y, scale[block], value=-1)
        grad_x[:, 0] = 0  # time follows from space
        return grad_x, grad_x * (-1 / ratio).to(x.dtype)[:, None], None


def _wide_blocks(x: Tensor, y: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Blocks of rows and their float64 copies, which are the caller's until the next block.

    Whole rows convert several times faster than their space parts alone, and one pair of buffers serves all blocks.
    """
    size = max(1, _BLOCK_ELEMENTS // x.shape[1])
    buffers = torch.empty(2, min(size, len(x)), x.shape[1], dtype=torch.float64, device=x.device)
    for start in range(0, len(x), size):
        block = slice(start, min(start + size, len(x)))
        wide_x, wide_y = buffers[:, : block.stop - start]
        yield block, wide_x.copy_(x[block]), wide_y.copy_(y[block])


def _differentiable_gradients(x: Tensor, y: Tensor, squared: bool, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, y = (point.view_as(point) if point.requires_grad else point.detach().requires_grad_() for point in (x, y))
    grad_x, grad_y = torch.autograd.grad(composed_pair_distance(x, y, squared), (x, y), grad, create_graph=True)
    return grad_x, grad_y
