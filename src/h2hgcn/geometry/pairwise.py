"""All distances between two sets of points, by matrix products.

In float64, block by block; for float32 points first in float32, which is taken if nearly all chords are known well
enough by it, the few others being worked out one by one.

``chord = 2(t t' - s·s' - 1)``, ``sinh(d) = sqrt(chord + chord²/4)`` and ``d = log1p(sinh(d) + chord/2)``: all
terms are positive, so that once the chord is known nothing cancels, and the logarithm may be taken in the precision of
the points. Blocks of rows stay in the cache; a chain of operations on the whole ``(n, m)`` matrix would wait for memory
at every step.
"""

from typing import Any

import torch
from torch import Tensor

from h2hgcn.compiled import run_on_rows
from h2hgcn.geometry.numerics import (
    CHORD_TOLERANCE,
    GRADIENT_TOLERANCE,
    INNER_PRODUCT_STEPS,
    asinhc,
    safe_reciprocal,
    safe_sqrt,
    wide,
)
from h2hgcn.geometry.pairwise_loops import grow, grow_known, lift, pull_back

# Float64 numbers of a block: a megabyte. Smaller ones cost more to begin than they save.
_BLOCK_ELEMENTS = 1 << 17

# A chord of its own costs as much as some ten by a product in float64: with more of them the product is the better way.
_SHARE_OF_SINGLES = 0.05


def all_distances(points: Tensor, others: Tensor) -> Tensor:
    """``lorentz.pairwise_distance`` of points ``(n, dim + 1)`` and ``(m, dim + 1)``."""
    if points.dim() != 2 or others.dim() != 2 or torch.compiler.is_compiling():
        return composed_all_distances(points, others)
    if not torch.is_grad_enabled():
        return _measured(points, others, with_slopes=False)[0]
    distances: Tensor = _AllDistances.apply(points, others)  # type: ignore[no-untyped-call]
    return distances


def composed_all_distances(points: Tensor, others: Tensor) -> Tensor:
    """The same out of differentiable operations, for any number of leading axes."""
    space, other_space = wide(points[..., 1:]), wide(others[..., 1:])
    time, other_time = _time(space), _time(other_space)
    product = time * other_time.mT
    chord = 2 * (product - space @ other_space.mT - 1)
    chord = torch.where(chord <= product.detach() * _rounding(product.dtype), 0.0, chord)
    return (safe_sqrt(chord) * asinhc(chord / 4)).to(points.dtype)


def _measured(points: Tensor, others: Tensor, with_slopes: bool) -> tuple[Tensor, Tensor | None, float]:
    """Distances, twice their slopes in the chord if these are wanted, and the largest ``t t'``."""
    largest = _largest_time(points) * _largest_time(others)
    if points.is_cpu and points.dtype == torch.float32 == _growth_dtype(largest, points.dtype):
        narrow = _measured_narrow(points, others, with_slopes)
        if narrow is not None:
            return *narrow, largest
    mirrored = _lifted(others, torch.float64)
    mirrored[:, 1:].neg_()
    growth = points.new_empty(len(points), len(others), dtype=_growth_dtype(largest, points.dtype))
    slopes = torch.empty_like(growth) if with_slopes else None
    blocks = _blocks(len(points), len(others))
    products = mirrored.new_empty(max((block.stop - block.start for block in blocks), default=0), len(others))
    for block in blocks:
        lifted = _lifted(points[block], torch.float64)
        product = torch.mm(lifted, mirrored.mT, out=products[: len(lifted)])
        _from_products(product, lifted, mirrored, growth[block], None if slopes is None else slopes[block])
    return growth.log1p_().to(points.dtype), slopes, largest


def _measured_narrow(points: Tensor, others: Tensor, with_slopes: bool) -> tuple[Tensor, Tensor | None] | None:
    """Distances and slopes out of a product in the points' own precision, or None where it knows too few chords."""
    lifted, mirrored = _lifted(points, points.dtype), _lifted(others, points.dtype)
    mirrored[:, 1:].neg_()
    growth = lifted @ mirrored.mT
    slopes = torch.empty_like(growth) if with_slopes else None
    arrays = (growth.numpy(), lifted.numpy(), mirrored.numpy(), (growth if slopes is None else slopes).numpy())
    noise = _product_noise(lifted) / CHORD_TOLERANCE
    singles = int(growth.numel() * _SHARE_OF_SINGLES)
    known = grow_known(*arrays, noise, _rounding(torch.float64), singles, with_slopes)
    return (growth.log1p_(), slopes) if known else None


def _product_noise(points: Tensor) -> float:
    """The error of ``t t' - s·s'`` relative to ``t t'``: the sum is rounded once for each coordinate, at random."""
    return torch.finfo(points.dtype).eps * (INNER_PRODUCT_STEPS + points.shape[1] ** 0.5)


class _AllDistances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: Tensor, others: Tensor) -> Tensor:
        distances, slopes, ctx.largest = _measured(points, others, with_slopes=True)
        ctx.save_for_backward(points, others, slopes)
        return distances

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        points, others, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            return _differentiable_gradients(points, others, grad)
        dtype = _gradient_dtype(ctx.largest, points.dtype)
        lifted_others = _lifted(others, dtype)
        grad_points = torch.empty_like(points, memory_format=torch.contiguous_format)
        pull = torch.zeros_like(lifted_others)
        whole = [slice(0, len(points))]
        for block in whole if dtype == points.dtype == slopes.dtype else _blocks(len(points), len(others)):
            lifted = _lifted(points[block], dtype)
            weights = (grad[block] * slopes[block]).to(dtype)
            # ∂chord/∂s = 2(t'/t·s - s'), and the same with roles exchanged
            _set_gradient(grad_points[block], lifted, weights @ lifted_others)
            pull.addmm_(weights.mT, lifted)
        grad_others = torch.empty_like(others, memory_format=torch.contiguous_format)
        _set_gradient(grad_others, lifted_others, pull)
        return grad_points, grad_others


def _lifted(points: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy of the points in another precision, their time worked out from their space."""
    if points.is_cpu:
        lifted = points.new_empty(points.shape, dtype=dtype)
        run_on_rows(lift, points.shape, points.detach().contiguous().numpy(), lifted.numpy())
        return lifted
    lifted = points.to(dtype, copy=True)
    lifted[:, 0] = torch.linalg.vector_norm(lifted[:, 1:], dim=1).square_().add_(1).sqrt_()
    return lifted


def _largest_time(points: Tensor) -> float:
    if not len(points):
        return 1.0
    times = points.detach()[:, 0]
    return float(times.numpy().max() if times.is_cpu else times.max())


def _growth_dtype(largest: float, dtype: torch.dtype) -> torch.dtype:
    """A precision that holds the square of ``exp(distance)``, which is at most ``4 t t'``."""
    return dtype if (4 * largest) ** 2 < torch.finfo(dtype).max else torch.float64


def _gradient_dtype(largest: float, dtype: torch.dtype) -> torch.dtype:
    """A precision that knows the differences ``t'/t·s - s'`` well enough."""
    return dtype if largest * torch.finfo(dtype).eps <= GRADIENT_TOLERANCE else torch.float64


def _set_gradient(grad: Tensor, points: Tensor, pull: Tensor) -> None:
    """``pull_t/t·s - pull_s``, and 0 for time, which follows from space."""
    if grad.is_cpu:
        run_on_rows(pull_back, grad.shape, points.numpy(), pull.numpy(), grad.numpy())
        return
    grad[:, 0] = 0
    grad[:, 1:] = torch.addcmul(-pull[:, 1:], points[:, 1:], pull[:, :1] / points[:, :1])


def _from_products(product: Tensor, lifted: Tensor, mirrored: Tensor, growth: Tensor, slopes: Tensor | None) -> None:
    """From ``t t' - s·s'`` to ``exp(distance) - 1`` and twice the slope of the distance in the chord, 0 at 0."""
    if product.is_cpu:
        slope_array = (growth if slopes is None else slopes).numpy()
        arrays = (product.numpy(), lifted.numpy(), mirrored.numpy(), growth.numpy(), slope_array)
        grow(*arrays, _rounding(product.dtype), slopes is not None)
        return
    noise = torch.outer(lifted[:, 0], mirrored[:, 0]) * _rounding(product.dtype)
    chord = product.sub_(1).mul_(2)
    chord.masked_fill_(chord <= noise, 0.0)
    sinh = torch.addcmul(chord, chord, chord, value=0.25).sqrt_()
    if slopes is not None:
        slopes.copy_(safe_reciprocal(sinh))
    growth.copy_(sinh.add_(chord, alpha=0.5))


def _blocks(rows: int, columns: int) -> list[slice]:
    size = max(1, _BLOCK_ELEMENTS // max(columns, 1))
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def _rounding(dtype: torch.dtype) -> float:
    return INNER_PRODUCT_STEPS * torch.finfo(dtype).eps


def _time(space: Tensor) -> Tensor:
    return (1 + space.square().sum(-1, keepdim=True)).sqrt()


def _differentiable_gradients(points: Tensor, others: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    points, others = (x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in (points, others))
    grads = torch.autograd.grad(composed_all_distances(points, others), (points, others), grad, create_graph=True)
    return grads[0], grads[1]
