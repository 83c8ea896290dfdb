"""All distances between two sets of points, by matrix products in float64, block by block.

``chord = 2(t t' - s·s' - 1)``, ``sinh(d) = sqrt(chord + chord²/4)`` and ``d = log1p(sinh(d) + chord/2)``: all
terms are positive, so that once the chord is known nothing cancels, and the logarithm may be taken in the precision of
the points. Blocks of rows stay in the cache; a chain of operations on the whole ``(n, m)`` matrix would wait for memory
at every step.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.compiled import compiled, run_on_rows
from h2hgcn.geometry.numerics import GRADIENT_TOLERANCE, INNER_PRODUCT_STEPS, asinhc, safe_reciprocal, safe_sqrt, wide

# Float64 numbers of a block: a megabyte. Smaller ones cost more to begin than they save.
_BLOCK_ELEMENTS = 1 << 17


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
        ctx.largest = _largest_product(points, others)
        mirrored = _lifted(others, torch.float64)
        mirrored[:, 1:].neg_()
        growth = points.new_empty(len(points), len(others), dtype=_growth_dtype(ctx.largest, points.dtype))
        slopes = torch.empty_like(growth)
        blocks = _blocks(len(points), len(others))
        products = mirrored.new_empty(max((block.stop - block.start for block in blocks), default=0), len(others))
        for block in blocks:
            lifted = _lifted(points[block], torch.float64)
            product = torch.mm(lifted, mirrored.mT, out=products[: len(lifted)])
            _from_products(product, lifted[:, 0], mirrored[:, 0], growth[block], slopes[block])
        ctx.save_for_backward(points, others, slopes)
        return growth.log1p_().to(points.dtype)

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
        run_on_rows(_lift, points.shape, points.detach().contiguous().numpy(), lifted.numpy())
        return lifted
    lifted = points.to(dtype, copy=True)
    lifted[:, 0] = torch.linalg.vector_norm(lifted[:, 1:], dim=1).square_().add_(1).sqrt_()
    return lifted


@compiled
def _lift(first: int, last: int, points: Any, lifted: Any) -> None:
    for i in range(first, last):
        row, new = points[i], lifted[i]
        square = lifted.dtype.type(1)
        for k in range(1, len(row)):
            new[k] = row[k]
            square += new[k] * new[k]
        new[0] = np.sqrt(square)


def _largest_product(points: Tensor, others: Tensor) -> float:
    """The largest ``t t'``."""
    return (
        float(points[:, 0].detach().max()) * float(others[:, 0].detach().max()) if len(points) and len(others) else 1.0
    )


def _growth_dtype(largest: float, dtype: torch.dtype) -> torch.dtype:
    """A precision that holds the square of ``exp(distance)``, which is at most ``4 t t'``."""
    return dtype if (4 * largest) ** 2 < torch.finfo(dtype).max else torch.float64


def _gradient_dtype(largest: float, dtype: torch.dtype) -> torch.dtype:
    """A precision that knows the differences ``t'/t·s - s'`` well enough."""
    return dtype if largest * torch.finfo(dtype).eps <= GRADIENT_TOLERANCE else torch.float64


def _set_gradient(grad: Tensor, points: Tensor, pull: Tensor) -> None:
    """``pull_t/t·s - pull_s``, and 0 for time, which follows from space."""
    grad[:, 0] = 0
    ratio = pull[:, :1] / points[:, :1]
    if grad.dtype == pull.dtype:
        torch.mul(points[:, 1:], ratio, out=grad[:, 1:]).sub_(pull[:, 1:])
    else:
        grad[:, 1:] = torch.addcmul(-pull[:, 1:], points[:, 1:], ratio)


def _from_products(product: Tensor, time: Tensor, other_time: Tensor, growth: Tensor, slopes: Tensor) -> None:
    """From ``t t' - s·s'`` to ``exp(distance) - 1`` and twice the slope of the distance in the chord, 0 at 0."""
    noise = time * _rounding(product)
    if product.is_cpu:
        arrays: list[Any] = [x.numpy() for x in (product, noise, other_time.contiguous(), growth, slopes)]
        _grow(*arrays, arrays[3].dtype.type(0.5))  # type: ignore[call-arg]
        return
    chord = product.sub_(1).mul_(2)
    chord.masked_fill_(chord <= torch.outer(noise, other_time), 0.0)
    sinh = torch.addcmul(chord, chord, chord, value=0.25).sqrt_()
    slopes.copy_(safe_reciprocal(sinh))
    growth.copy_(sinh.add_(chord, alpha=0.5))


@compiled
def _grow(product: Any, noise: Any, other_time: Any, growth: Any, slopes: Any, half: Any) -> None:
    """Only the chord is in float64: roots and quotients of the points' own precision are twice as many at a time."""
    one, quarter = half + half, half * half
    zero = half - half
    for i in range(product.shape[0]):
        products, chords, slope = product[i], growth[i], slopes[i]
        for j in range(len(products)):
            chord = 2 * (products[j] - 1)
            chords[j] = 0.0 if chord <= noise[i] * other_time[j] else chord  # NaN stays NaN
        for j in range(len(products)):
            chord = chords[j]
            sinh = np.sqrt(chord + quarter * chord * chord)
            chords[j] = sinh + half * chord
            slope[j] = zero if chord == zero else one / sinh


def _blocks(rows: int, columns: int) -> list[slice]:
    size = max(1, _BLOCK_ELEMENTS // max(columns, 1))
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def _rounding(product: Tensor) -> float:
    return INNER_PRODUCT_STEPS * torch.finfo(product.dtype).eps


def _time(space: Tensor) -> Tensor:
    return (1 + space.square().sum(-1, keepdim=True)).sqrt()


def _differentiable_gradients(points: Tensor, others: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    points, others = (x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in (points, others))
    grads = torch.autograd.grad(composed_all_distances(points, others), (points, others), grad, create_graph=True)
    return grads[0], grads[1]
