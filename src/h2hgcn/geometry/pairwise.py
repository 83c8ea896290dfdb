"""All distances between two sets of points, by matrix products in float64, block by block.

``chord = 2(t t' - s·s' - 1)``, ``sinh(d) = sqrt(chord)·sqrt(1 + chord/4)`` and ``d = log1p(sinh(d) + chord/2)``: all
terms are positive, so that once the chord is known nothing cancels, and the logarithm may be taken in the precision of
the points. Blocks of rows stay in the cache; a chain of operations on the whole ``(n, m)`` matrix would wait for memory
at every step.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.compiled import compiled
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
        mirrored = _lifted(others)
        mirrored[:, 1:].neg_()
        slopes = points.new_empty(len(points), len(others))
        growth = torch.empty_like(slopes, dtype=_growth_dtype(points, others))
        for block in _blocks(len(points), len(others)):
            lifted = _lifted(points[block])
            product = lifted @ mirrored.mT
            _from_products(product, lifted[:, 0], mirrored[:, 0], growth[block], slopes[block])
        ctx.save_for_backward(points, others, slopes)
        return growth.log1p_().to(points.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        points, others, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            return _differentiable_gradients(points, others, grad)
        lifted_others = _lifted(others)
        grad_points = torch.zeros_like(points)  # time follows from space
        pull = torch.zeros_like(lifted_others)
        for block in _blocks(len(points), len(others)):
            lifted = _lifted(points[block])
            weights = wide(grad[block] * slopes[block]).mul_(2)
            # ∂chord/∂s = 2(t'/t·s - s'), and the same with roles exchanged
            grad_points[block, 1:] = _along(lifted, weights @ lifted_others)
            pull.addmm_(weights.mT, lifted)
        grad_others = torch.zeros_like(others)
        grad_others[:, 1:] = _along(lifted_others, pull)
        return grad_points, grad_others


def _lifted(points: Tensor) -> Tensor:
    """Points in float64, their time worked out from their space."""
    lifted = points.to(torch.float64, copy=True)
    lifted[:, 0] = torch.linalg.vector_norm(lifted[:, 1:], dim=1).square_().add_(1).sqrt_()
    return lifted


def _growth_dtype(points: Tensor, others: Tensor) -> torch.dtype:
    """A precision that holds ``exp(distance)``, which is at most ``4 t t'``."""
    if not len(points) or not len(others):
        return points.dtype
    largest = 4 * float(points[:, 0].max()) * float(others[:, 0].max())
    return torch.float64 if largest > torch.finfo(points.dtype).max else points.dtype


def _along(points: Tensor, pull: Tensor) -> Tensor:
    """``pull_t/t·s - pull_s``."""
    return torch.addcmul(-pull[:, 1:], points[:, 1:], pull[:, :1] / points[:, :1])


def _from_products(product: Tensor, time: Tensor, other_time: Tensor, growth: Tensor, slopes: Tensor) -> None:
    """From ``t t' - s·s'`` to ``exp(distance) - 1`` and the slope of the distance in the chord, taken as 0 at 0."""
    rounding = _rounding(product)
    if product.is_cpu:
        arguments: list[Any] = [tensor.numpy() for tensor in (product, time, other_time, growth, slopes)]
        _grow(*arguments, rounding)  # type: ignore[call-arg]
        return
    chord = product.sub_(1).mul_(2)
    chord.masked_fill_(chord <= torch.outer(time, other_time).mul_(rounding), 0.0)
    sinh = chord.sqrt().mul_(torch.add(1, chord, alpha=0.25).sqrt_())
    slopes.copy_(safe_reciprocal(2 * sinh))
    growth.copy_(sinh.add_(chord, alpha=0.5))


@compiled
def _grow(product: Any, time: Any, other_time: Any, growth: Any, slopes: Any, rounding: float) -> None:
    for i in range(product.shape[0]):
        for j in range(product.shape[1]):
            chord = 2 * (product[i, j] - 1)
            chord = 0.0 if chord <= time[i] * other_time[j] * rounding else chord  # NaN stays NaN
            sinh = np.sqrt(chord) * np.sqrt(1 + 0.25 * chord)
            growth[i, j] = sinh + 0.5 * chord
            slopes[i, j] = 0.0 if chord == 0 else 0.5 / sinh


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
