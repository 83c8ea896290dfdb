"""Distances on the hyperboloid: of pairs of rows, which are not gathered, and of all pairs of two sets."""

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import CHORD_TOLERANCE, GRADIENT_TOLERANCE, INNER_PRODUCT_STEPS, full_precision
from h2hgcn.jit import compiled, inlined
from h2hgcn.kernels import differentiable, run_on_rows, use_kernel

# Pairs that a thread measures at once: what is written in passing stays in cache.
_PAIRS = 1 << 15


def takes_pairs(x: Tensor, y: Tensor) -> bool:
    """Whether ``distance_of_pairs`` can measure these points."""
    return x.dtype == y.dtype and min(x.dim(), y.dim()) > 0 and use_kernel(x, y)


def distance_of_pairs(x: Tensor, y: Tensor, squared: bool) -> Tensor:
    """``lorentz.distance``, or its square, of points ``(..., dim + 1)`` that broadcast."""
    lorentz.check_pair(x, y)
    shape = torch.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    points = torch.cat([x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])])
    rows = torch.arange(len(points)).split([x.shape[:-1].numel(), y.shape[:-1].numel()])
    sides = (row.view(side.shape[:-1]).expand(shape).reshape(-1) for row, side in zip(rows, (x, y), strict=True))
    return _distances_of_rows(points, torch.stack(list(sides), dim=1), squared).view(shape)


def squared_distances_of_rows(points: Tensor, pairs: Tensor) -> Tensor:
    """``lorentz.squared_distance`` between rows of ``points (n, dim + 1)``, named by ``pairs (k, 2)``.

    The kernel reads the two rows of a pair where they lie, and adds their gradients where they belong: gathered copies
    would cost more than the geometry.
    """
    return _distances_of_rows(points, pairs, squared=True) if use_kernel(points) else _gathered(points, pairs, True)


def _distances_of_rows(points: Tensor, pairs: Tensor, squared: bool) -> Tensor:
    lowest, highest = map(int, pairs.aminmax()) if len(pairs) else (0, -1)
    if lowest < 0 or highest >= len(points):  # the loops do not check bounds
        raise IndexError(f"pairs name the rows {lowest} to {highest}, but there are {len(points)} points")
    differentiated = torch.is_grad_enabled()
    if not differentiated and 2 * len(pairs) < len(points):  # times of a few points instead of all
        points = points.index_select(0, pairs.reshape(-1))
        pairs = torch.arange(len(points)).view(-1, 2)
    run = partial(_measured_pairs, pairs=pairs, squared=squared, differentiated=differentiated)
    reference = partial(_gathered, pairs=pairs, squared=squared)
    return differentiable(run, partial(_pair_gradients, pairs=pairs), reference, points)


def _gathered(points: Tensor, pairs: Tensor, squared: bool) -> Tensor:
    first, second = pairs.unbind(1)
    return lorentz.composed_distance(points.index_select(0, first), points.index_select(0, second), squared)


def _measured_pairs(points: Tensor, pairs: Tensor, squared: bool, differentiated: bool) -> tuple[Tensor, ...]:
    """Distances of pairs, or their squares; times of all points, in float64; and twice the slopes of the distances in
    the chord if wanted: ``2 distance / sinh(distance)`` of squares, else ``1 / sinh(distance)``, 0 at 0.
    """
    rows, ends = points.detach().contiguous().numpy(), pairs.contiguous().numpy()
    times = torch.empty(len(rows), dtype=torch.float64)
    run_on_rows(_times, rows.shape, rows, times.numpy())
    measured = points.new_empty(len(ends))
    stretch = points.new_empty(len(ends) if differentiated else 0)
    block = _PAIRS * torch.get_num_threads()
    for first in range(0, len(ends), block):
        part = slice(first, first + block)
        chord = torch.empty(len(ends[part]), dtype=torch.float64)
        run_on_rows(_chords, (len(chord), rows.shape[1]), rows, ends[part], times.numpy(), chord.numpy())
        sinh = torch.addcmul(chord, chord, chord, value=0.25).sqrt_()
        distance = torch.add(sinh, chord, alpha=0.5).log1p_()
        if differentiated:
            slope = 2 * distance if squared else (sinh > 0).to(sinh.dtype)
            stretch[part] = sinh.clamp_min_(torch.finfo(sinh.dtype).tiny).reciprocal_().mul_(slope)
        measured[part] = distance.square_() if squared else distance
    return measured, times, stretch


def _pair_gradients(
    grad: Tensor, needed: Any, points: Tensor, measured: Tensor, times: Tensor, stretch: Tensor, pairs: Tensor
) -> tuple[Tensor]:
    gradient = torch.zeros_like(points, memory_format=torch.contiguous_format)
    arrays = (points.detach().contiguous(), pairs.contiguous(), times, stretch, grad.contiguous(), gradient)
    run_on_rows(_add_gradients, points.shape, *(x.numpy() for x in arrays))
    return (gradient,)


@compiled
def _times(first: int, last: int, points: Any, times: Any) -> None:
    for i in range(first, last):
        row = points[i, 1:]
        square = 1.0
        for k in range(len(row)):
            square += np.float64(row[k]) * np.float64(row[k])
        times[i] = np.sqrt(square)


@compiled
def _chords(first: int, last: int, points: Any, pairs: Any, times: Any, chord: Any) -> None:
    """The formula of ``lorentz.squared_chord``."""
    for p in range(first, last):
        x, y = points[pairs[p, 0], 1:], points[pairs[p, 1], 1:]
        time_x, time_y = times[pairs[p, 0]], times[pairs[p, 1]]
        # equal points have a ratio of exactly 1, which no division by a reciprocal promises
        ratio = 1.0 if time_x == time_y else time_x / time_y
        separation = 0.0
        for k in range(len(x)):
            difference = np.float64(x[k]) - ratio * np.float64(y[k])
            separation += difference * difference
        chord[p] = separation / ratio + (time_x - time_y) * (time_x - time_y) / (time_x * time_y)


@compiled
def _add_gradients(
    first: int, last: int, points: Any, pairs: Any, times: Any, stretch: Any, grad: Any, gradient: Any
) -> None:
    """Adds to the rows from ``first`` to ``last``, in the order of pairs, so that the number of threads, each of which
    has rows of its own, changes nothing. A pair whose rows belong to two threads is computed by both.

    Differences are taken in float64 and added up in the points' own precision, of which twice as many fit in an
    instruction.
    """
    change = np.empty(points.shape[1] - 1, points.dtype)
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        add_to_i, add_to_j = first <= i < last, first <= j < last
        if not (add_to_i or add_to_j):
            continue
        x, y = points[i, 1:], points[j, 1:]
        ratio = times[j] / times[i]
        scale = np.float64(stretch[p]) * grad[p]
        for k in range(len(change)):
            change[k] = (ratio * np.float64(x[k]) - np.float64(y[k])) * scale
        if add_to_i:
            grad_x = gradient[i, 1:]
            for k in range(len(change)):
                grad_x[k] += change[k]
        if add_to_j:
            grad_y = gradient[j, 1:]
            inverse = points.dtype.type(1 / ratio)
            for k in range(len(change)):
                grad_y[k] -= change[k] * inverse


# Float64 numbers of a block: a megabyte. Smaller ones cost more to begin than they save.
_BLOCK_ELEMENTS = 1 << 17

# A chord of its own costs as much as some ten by a product in float64: with more of them the product is the better way.
_SHARE_OF_SINGLES = 0.05

# The rounding of ``t t' - s·s'`` in float64, relative to ``t t'``.
_ROUNDING = INNER_PRODUCT_STEPS * torch.finfo(torch.float64).eps


def pairwise_distance(points: Tensor, others: Tensor) -> Tensor:
    """``lorentz.pairwise_distance``; of points ``(n, dim + 1)`` and ``(m, dim + 1)`` by the kernel.

    Float32 products serve where they know the chord, and float64 ones elsewhere.
    """
    if points.dim() != 2 or others.dim() != 2 or points.dtype != others.dtype or not use_kernel(points, others):
        return lorentz.pairwise_distance(points, others)
    lorentz.check_pair(points, others)
    run = partial(_measured, with_slopes=torch.is_grad_enabled())
    with full_precision(points):
        return differentiable(run, _distance_gradients, lorentz.pairwise_distance, points, others)


def _measured(points: Tensor, others: Tensor, with_slopes: bool) -> tuple[Tensor, ...]:
    """Distances, and twice their slopes in the chord if these are wanted."""
    # the square of exp(distance), which is at most 4 t t', must not overflow
    small = (4 * _largest_product(points, others)) ** 2 < torch.finfo(points.dtype).max
    dtype = points.dtype if small else torch.float64
    if dtype == torch.float32:
        known = _measured_in_float32(points, others, with_slopes)
        if known is not None:
            return known
    mirrored = _lifted(others, torch.float64)
    mirrored[:, 1:].neg_()
    growth = points.new_empty(len(points), len(others), dtype=dtype)
    slopes = torch.empty_like(growth) if with_slopes else growth
    for block in _blocks(len(points), len(others)):
        lifted = _lifted(points[block], torch.float64)
        product, slope = lifted @ mirrored.mT, slopes[block].numpy()
        arrays = (product.numpy(), lifted.numpy(), mirrored.numpy(), growth[block].numpy(), slope)
        _grow(*arrays, _ROUNDING, with_slopes)
    return growth.log1p_().to(points.dtype), slopes


def _measured_in_float32(points: Tensor, others: Tensor, with_slopes: bool) -> tuple[Tensor, Tensor] | None:
    """Distances and slopes by a product in float32, or None where it knows too few chords."""
    lifted, mirrored = _lifted(points, points.dtype), _lifted(others, points.dtype)
    mirrored[:, 1:].neg_()
    growth = lifted @ mirrored.mT
    slopes = torch.empty_like(growth) if with_slopes else growth
    # the sum of a product is rounded once for each coordinate, at random
    noise = torch.finfo(points.dtype).eps * (INNER_PRODUCT_STEPS + points.shape[1] ** 0.5) / CHORD_TOLERANCE
    singles = int(growth.numel() * _SHARE_OF_SINGLES)
    arrays = (growth.numpy(), lifted.numpy(), mirrored.numpy(), slopes.numpy())
    known = _grow_known(*arrays, noise, _ROUNDING, singles, with_slopes)
    return (growth.log1p_(), slopes) if known else None


def _distance_gradients(
    grad: Tensor, needed: Any, points: Tensor, others: Tensor, distances: Tensor, slopes: Tensor
) -> tuple[Tensor, Tensor]:
    good = _largest_product(points, others) * torch.finfo(points.dtype).eps <= GRADIENT_TOLERANCE
    dtype = points.dtype if good else torch.float64
    lifted_others = _lifted(others, dtype)
    grad_points, grad_others = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (points, others))
    pull = torch.zeros_like(lifted_others)
    whole = [slice(0, len(points))]
    with full_precision(points):
        for block in whole if dtype == slopes.dtype else _blocks(len(points), len(others)):
            lifted = _lifted(points[block], dtype)
            weights = (grad[block] * slopes[block]).to(dtype)
            # ∂chord/∂s = 2(t'/t·s - s'), and the same with roles exchanged
            _set_gradient(grad_points[block], lifted, weights @ lifted_others)
            pull.addmm_(weights.mT, lifted)
    _set_gradient(grad_others, lifted_others, pull)
    return grad_points, grad_others


def _lifted(points: Tensor, dtype: torch.dtype) -> Tensor:
    """A copy of the points in another precision, with their time computed from their space."""
    lifted = points.new_empty(points.shape, dtype=dtype)
    run_on_rows(_lift, points.shape, points.detach().contiguous().numpy(), lifted.numpy())
    return lifted


def _largest_product(points: Tensor, others: Tensor) -> float:
    """The largest ``t t'``."""
    return math.prod(float(x.detach()[:, 0].numpy().max()) for x in (points, others) if len(x))


def _set_gradient(grad: Tensor, points: Tensor, pull: Tensor) -> None:
    run_on_rows(_pull_back, grad.shape, points.numpy(), pull.numpy(), grad.numpy())


def _blocks(rows: int, columns: int) -> list[slice]:
    size = max(1, _BLOCK_ELEMENTS // max(columns, 1))
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


@compiled
def _lift(first: int, last: int, points: Any, lifted: Any) -> None:
    for i in range(first, last):
        row, new = points[i], lifted[i]
        square = lifted.dtype.type(1)
        for k in range(1, len(row)):
            new[k] = row[k]
            square += new[k] * new[k]
        new[0] = np.sqrt(square)


@compiled
def _pull_back(first: int, last: int, points: Any, pull: Any, grad: Any) -> None:
    """``pull_t/t·s - pull_s``, and 0 for time, which follows from space."""
    for i in range(first, last):
        point, pulled, new = points[i], pull[i], grad[i]
        ratio = pulled[0] / point[0]
        new[0] = 0
        for k in range(1, len(new)):
            new[k] = ratio * point[k] - pulled[k]


@compiled
def _grow(product: Any, lifted: Any, mirrored: Any, growth: Any, slopes: Any, rounding: float, wanted: bool) -> None:
    """From ``t t' - s·s'`` to ``exp(distance) - 1``, and twice the slopes of the distance in the chord, 0 at 0.

    Only the chord is in float64: roots and quotients of the points' own precision are twice as many at a time.
    """
    other_time = np.empty(len(mirrored))
    for j in range(len(mirrored)):
        other_time[j] = mirrored[j, 0] * rounding
    for i in range(product.shape[0]):
        products, chords, time = product[i], growth[i], lifted[i, 0]
        for j in range(len(products)):
            chord = 2 * (products[j] - 1)
            chords[j] = 0.0 if chord <= time * other_time[j] else chord  # NaN stays NaN
        _grow_row(chords, slopes[i], wanted)


@compiled
def _grow_known(
    products: Any, lifted: Any, mirrored: Any, slopes: Any, noise: float, rounding: float, singles: int, wanted: bool
) -> bool:
    """The same in place; chords that ``noise`` might spoil are computed again. Whether they were few enough."""
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
                    chords[j] = _single_chord(point, mirrored[j], rounding)
        _grow_row(chords, slopes[i], wanted)
    return True


@inlined
def _single_chord(point: Any, mirrored: Any, rounding: float) -> float:
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
    kind = chords.dtype.type
    zero, one, half, quarter = kind(0), kind(1), kind(0.5), kind(0.25)
    if wanted:
        for j in range(len(chords)):
            sinh = np.sqrt(chords[j] + quarter * chords[j] * chords[j])
            slopes[j] = zero if chords[j] == zero else one / sinh
    for j in range(len(chords)):
        chords[j] = np.sqrt(chords[j] + quarter * chords[j] * chords[j]) + half * chords[j]
