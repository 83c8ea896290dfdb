"""Distances on the hyperboloid: of pairs, and of all pairs of two sets."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.geometry.numerics import (
    CHORD_TOLERANCE,
    GRADIENT_TOLERANCE,
    INNER_PRODUCT_STEPS,
    asinhc,
    floored_reciprocal,
    safe_reciprocal,
    safe_sqrt,
    squared_norm,
    wide,
)
from h2hgcn.jit import compiled, inlined, run_on_rows


@compiled
def lift(first: int, last: int, points: Any, lifted: Any) -> None:
    for i in range(first, last):
        row, new = points[i], lifted[i]
        square = lifted.dtype.type(1)
        for k in range(1, len(row)):
            new[k] = row[k]
            square += new[k] * new[k]
        new[0] = np.sqrt(square)


@compiled
def pull_back(first: int, last: int, points: Any, pull: Any, grad: Any) -> None:
    for i in range(first, last):
        point, pulled, new = points[i], pull[i], grad[i]
        ratio = pulled[0] / point[0]
        new[0] = 0
        for k in range(1, len(new)):
            new[k] = ratio * point[k] - pulled[k]


@compiled
def grow(product: Any, lifted: Any, mirrored: Any, growth: Any, slopes: Any, rounding: float, wanted: bool) -> None:
    """Only the chord is in float64: roots and quotients of the points' own precision are twice as many at a time."""
    other_time = np.empty(len(mirrored))
    for j in range(len(mirrored)):
        other_time[j] = mirrored[j, 0] * rounding
    for i in range(product.shape[0]):
        products, chords, slope, time = product[i], growth[i], slopes[i], lifted[i, 0]
        for j in range(len(products)):
            chord = 2 * (products[j] - 1)
            chords[j] = 0.0 if chord <= time * other_time[j] else chord  # NaN stays NaN
        _grow_row(chords, slope, wanted)


@compiled
def grow_known(
    products: Any, lifted: Any, mirrored: Any, slopes: Any, noise: float, rounding: float, singles: int, wanted: bool
) -> bool:
    """The same in place, the chords that ``noise`` might spoil being worked out anew; whether they were few enough."""
    kind = products.dtype.type
    zero, one, two = kind(0), kind(1), kind(2)
    bounds = mirrored[:, 0] * kind(noise)
    for i in range(products.shape[0]):
        chords, point = products[i], lifted[i]
        spoilt = zero  # a count in the precision of the loop, which keeps it wide
        for j in range(len(chords)):
            chords[j] = two * (chords[j] - one)
            spoilt += zero if chords[j] >= point[0] * bounds[j] else one  # NaN is
        singles -= int(spoilt)
        if singles < 0:
            return False
        if spoilt:
            for j in range(len(chords)):
                if not chords[j] >= point[0] * bounds[j]:
                    chords[j] = _chord(point, mirrored[j], rounding)
        _grow_row(chords, slopes[i], wanted)
    return True


@inlined
def _chord(point: Any, mirrored: Any, rounding: float) -> float:
    """The chord of one pair in float64, 0 where it is noise."""
    square, other_square, product = 1.0, 1.0, 0.0
    for k in range(1, len(point)):
        value, other = np.float64(point[k]), np.float64(mirrored[k])
        square += value * value
        other_square += other * other
        product += value * other
    times = np.sqrt(square * other_square)
    chord = 2 * (times + product - 1)
    return 0.0 if chord <= times * rounding else chord  # NaN stays NaN


@inlined
def _grow_row(chords: Any, slopes: Any, wanted: bool) -> None:
    """From chords to ``exp(distance) - 1``, and twice the slopes if these are wanted."""
    kind = chords.dtype.type
    zero, one, half, quarter = kind(0), kind(1), kind(0.5), kind(0.25)
    if wanted:
        for j in range(len(chords)):
            sinh = np.sqrt(chords[j] + quarter * chords[j] * chords[j])
            slopes[j] = zero if chords[j] == zero else one / sinh
    for j in range(len(chords)):
        chords[j] = np.sqrt(chords[j] + quarter * chords[j] * chords[j]) + half * chords[j]


# Elements of one block of rows: a few float64 scratch arrays of this size stay in a core's cache.
_PAIR_BLOCK = 1 << 17


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
            return *_differentiable_pair_gradients(x, y, ctx.squared, grad), None
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
    size = max(1, _PAIR_BLOCK // x.shape[1])
    buffers = torch.empty(2, min(size, len(x)), x.shape[1], dtype=torch.float64, device=x.device)
    for start in range(0, len(x), size):
        block = slice(start, min(start + size, len(x)))
        wide_x, wide_y = buffers[:, : block.stop - start]
        yield block, wide_x.copy_(x[block]), wide_y.copy_(y[block])


def _differentiable_pair_gradients(x: Tensor, y: Tensor, squared: bool, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, y = (point.view_as(point) if point.requires_grad else point.detach().requires_grad_() for point in (x, y))
    grad_x, grad_y = torch.autograd.grad(composed_pair_distance(x, y, squared), (x, y), grad, create_graph=True)
    return grad_x, grad_y


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
