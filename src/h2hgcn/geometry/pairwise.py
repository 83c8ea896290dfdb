"""All distances between two sets of points, by matrix products in float64, block by block.

``chord = 2(t t' - s·s' - 1)`` and ``distance = 2 asinh(sqrt(chord)/2)``. Blocks of rows stay in the cache; a chain
of operations on the whole ``(n, m)`` matrix would wait for memory at every step.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from h2hgcn.geometry.numerics import INNER_PRODUCT_STEPS, asinhc, safe_reciprocal, safe_sqrt, wide

# Float64 numbers of a block: half a megabyte.
_BLOCK_ELEMENTS = 1 << 16


def all_distances(points: Tensor, others: Tensor) -> Tensor:
    """``lorentz.pairwise_distance`` of points ``(n, dim + 1)`` and ``(m, dim + 1)``."""
    if points.dim() != 2 or others.dim() != 2 or torch.compiler.is_compiling():
        return composed_all_distances(points, others)
    distances: Tensor = _AllDistances.apply(points, others)  # type: ignore[no-untyped-call]
    return distances


def composed_all_distances(points: Tensor, others: Tensor) -> Tensor:
    """The same out of differentiable operations, for any number of leading axes."""
    space, other_space = wide(points[..., 1:]), wide(others[..., 1:])
    time, other_time = _time(space), _time(other_space)
    product = time * other_time.mT
    chord = 2 * (product - space @ other_space.mT - 1)
    chord = torch.where(chord <= product.detach() * _rounding(product), 0.0, chord)
    return (safe_sqrt(chord) * asinhc(chord / 4)).to(points.dtype)


class _AllDistances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: Tensor, others: Tensor) -> Tensor:
        other_space = wide(others[:, 1:])
        other_time = _time(other_space)
        mirrored = torch.cat([other_time, -other_space], 1).mT
        distances = points.new_empty(len(points), len(others))
        slopes = torch.empty_like(distances) if any(ctx.needs_input_grad) else None
        for block in _blocks(len(points), len(others)):
            space = wide(points[block, 1:])
            time = _time(space)
            chord = (torch.cat([time, space], 1) @ mirrored).sub_(1).mul_(2)
            chord.masked_fill_(chord <= (time * other_time.mT).mul_(_rounding(chord)), 0.0)
            distances[block] = chord.sqrt().mul_(0.5).asinh_().mul_(2)
            if slopes is not None:  # dd/dchord = 1/sqrt(chord (4 + chord)), taken as 0 at 0
                slopes[block] = safe_reciprocal(torch.addcmul(4 * chord, chord, chord).sqrt_())
        ctx.save_for_backward(points, others, slopes)
        return distances

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        points, others, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            return _differentiable_gradients(points, others, grad)
        other_space = wide(others[:, 1:])
        other_time = _time(other_space)
        grad_points = torch.zeros_like(points)  # time follows from space
        pull = torch.zeros_like(other_space)
        push = torch.zeros_like(other_time)
        for block in _blocks(len(points), len(others)):
            space = wide(points[block, 1:])
            time = _time(space)
            weights = wide(grad[block] * slopes[block]).mul_(2)
            # ∂chord/∂s = 2(t'/t·s - s'), and the same with roles exchanged
            grad_points[block, 1:] = (weights @ other_time / time) * space - weights @ other_space
            pull += weights.mT @ space
            push += weights.mT @ time
        grad_others = torch.zeros_like(others)
        grad_others[:, 1:] = push / other_time * other_space - pull
        return grad_points, grad_others


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    size = max(1, _BLOCK_ELEMENTS // max(columns, 1))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def _rounding(product: Tensor) -> float:
    return INNER_PRODUCT_STEPS * torch.finfo(product.dtype).eps


def _time(space: Tensor) -> Tensor:
    return (1 + space.square().sum(-1, keepdim=True)).sqrt()


def _differentiable_gradients(points: Tensor, others: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    points, others = (x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in (points, others))
    grads = torch.autograd.grad(composed_all_distances(points, others), (points, others), grad, create_graph=True)
    return grads[0], grads[1]
