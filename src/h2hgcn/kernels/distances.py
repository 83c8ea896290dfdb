"""Squared distances of pairs of rows of one set of points, without gathering the rows.

The form is that of ``polar.py``, whose letters these are. The two rows of a pair are read where they lie, and their
gradients added where they belong: gathered copies of both would cost more than the geometry. Norms are taken once for a
point, not for every pair."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import floored_reciprocal
from h2hgcn.jit import compiled, inlined, prefetch_row, run_on_rows

# What the loops are compiled for.
_LOOPED = (torch.float32, torch.float64)

# Rows are asked for this many pairs before they are read, unless all points are so few bytes that they stay in cache.
_AHEAD = 8
_CACHED = 2 << 20

# Pairs that are measured at once by a thread: what is written in passing stays in cache.
_BLOCK = 1 << 15


def squared_distances_of_rows(points: Tensor, pairs: Tensor) -> Tensor:
    """``lorentz.squared_distance`` between rows of ``points (n, dim + 1)``, named by ``pairs (k, 2)``."""
    if not points.is_cpu or points.dtype not in _LOOPED or torch.compiler.is_compiling():
        return _gathered(points, pairs)
    if not torch.is_grad_enabled():
        if 2 * len(pairs) < len(points):  # norms of a few points instead of all
            points, pairs = _only_named(points, pairs)
        return _measured(points, pairs, differentiated=False).square
    distances: Tensor = _LinkDistances.apply(points, pairs)  # type: ignore[no-untyped-call]
    return distances


def _gathered(points: Tensor, pairs: Tensor) -> Tensor:
    first, second = pairs.unbind(1)
    return lorentz.squared_distance(points.index_select(0, first), points.index_select(0, second))


def _only_named(points: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    """The two rows of each pair one after the other, and the pairs of their new places."""
    _check_rows(pairs.contiguous().numpy(), len(points))
    named = points.index_select(0, pairs.reshape(-1))
    return named, torch.arange(len(named)).view(-1, 2)


class _Measured(NamedTuple):
    """Norms of all points, in float64, squared distances of pairs, and ``2 distance / sinh(distance)``, if it is
    wanted.
    """

    norm: Tensor
    square: Tensor
    stretch: Tensor


def _measured(points: Tensor, pairs: Tensor, differentiated: bool) -> _Measured:
    rows, ends = points.detach().contiguous().numpy(), pairs.contiguous().numpy()
    _check_rows(ends, len(rows))
    norm = torch.empty(len(rows), dtype=torch.float64)
    run_on_rows(_norms, rows.shape, rows, norm.numpy())
    square = points.new_empty(len(ends))
    stretch = points.new_empty(len(ends) if differentiated else 0)
    block, ahead = _BLOCK * torch.get_num_threads(), _ahead(points)
    for first in range(0, len(ends), block):
        part = slice(first, first + block)
        chord = torch.empty(len(ends[part]), dtype=torch.float64)
        run_on_rows(_chords, (len(chord), rows.shape[1]), rows, ends[part], norm.numpy(), chord.numpy(), ahead)
        sinh = torch.addcmul(chord, chord, chord, value=0.25).sqrt_()
        distance = torch.add(sinh, chord, alpha=0.5).log1p_()
        if differentiated:
            stretch[part] = floored_reciprocal(sinh).mul_(2).mul_(distance)
        square[part] = distance.square_()
    return _Measured(norm, square, stretch)


class _LinkDistances(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: Tensor, pairs: Tensor) -> Tensor:
        norm, square, stretch = _measured(points, pairs, differentiated=True)
        ctx.save_for_backward(points, pairs, norm, stretch)
        return square

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        points, pairs, norm, stretch = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody asks for second derivatives
            alias = points.view_as(points)
            return torch.autograd.grad(_gathered(alias, pairs), alias, grad, create_graph=True)[0], None
        gradient = torch.zeros_like(points, memory_format=torch.contiguous_format)
        arrays = (points.detach().contiguous(), pairs.contiguous(), norm, stretch, grad.contiguous(), gradient)
        run_on_rows(_add_gradients, points.shape, *(x.numpy() for x in arrays), _ahead(points))
        return gradient, None


def _ahead(points: Tensor) -> int:
    return _AHEAD if points.nbytes > _CACHED else 0


def _check_rows(pairs: Any, size: int) -> None:
    """The loops do not look."""
    lowest, highest = _bounds(pairs)
    if lowest < 0 or highest >= size:
        raise IndexError(f"pairs name the rows {lowest} to {highest}, but there are {size} points")


@compiled
def _bounds(pairs: Any) -> tuple[int, int]:
    lowest, highest = 0, -1
    for p in range(len(pairs)):
        first, second = pairs[p, 0], pairs[p, 1]
        lowest = min(lowest, first, second)
        highest = max(highest, first, second)
    return lowest, highest


@compiled
def _norms(first: int, last: int, points: Any, norm: Any) -> None:
    for i in range(first, last):
        row = points[i, 1:]
        square = 0.0
        for k in range(len(row)):
            square += np.float64(row[k]) * np.float64(row[k])
        norm[i] = np.sqrt(square)


@compiled
def _chords(first: int, last: int, points: Any, pairs: Any, norm: Any, chord: Any, ahead: int) -> None:
    for p in range(first, last):
        if ahead:
            soon = min(p + ahead, last - 1)
            prefetch_row(points, pairs[soon, 0])
            prefetch_row(points, pairs[soon, 1])
        x, y = points[pairs[p, 0], 1:], points[pairs[p, 1], 1:]
        norm_x, norm_y = norm[pairs[p, 0]], norm[pairs[p, 1]]
        crossed = norm_x * np.sqrt(1 + norm_y * norm_y) + norm_y * np.sqrt(1 + norm_x * norm_x)
        if crossed == 0:
            chord[p] = 0.0
            continue
        # equal points have a ratio of exactly 1, which no division by a reciprocal promises
        ratio = 1.0 if norm_x == norm_y else (norm_x / norm_y if norm_y > 0 else 0.0)
        separation = 0.0
        for k in range(len(x)):
            difference = np.float64(x[k]) - ratio * np.float64(y[k])
            separation += difference * difference
        sinh = (norm_x - norm_y) * (norm_x + norm_y) / crossed
        radial = 2 * sinh * sinh / (1 + np.sqrt(1 + sinh * sinh))
        chord[p] = radial + (separation * norm_y / norm_x if norm_x > 0 else 0.0)


@compiled
def _add_gradients(
    first: int, last: int, points: Any, pairs: Any, norm: Any, stretch: Any, grad: Any, gradient: Any, ahead: int
) -> None:
    """Adds to the rows from ``first`` to ``last``, in the order of pairs, so that the number of threads, each of which
    has rows of its own, changes nothing. A pair whose rows belong to two threads is worked out by both.

    Differences are taken in float64, and added up in the points' own precision, of which twice as many fit in an
    instruction.
    """
    change = np.empty(points.shape[1] - 1, points.dtype)
    for p in range(len(pairs)):
        if ahead:
            soon = min(p + ahead, len(pairs) - 1)
            _prefetch_pair(points, gradient, pairs[soon, 0], pairs[soon, 1], first, last)
        i, j = pairs[p, 0], pairs[p, 1]
        add_to_i, add_to_j = first <= i < last, first <= j < last
        if not (add_to_i or add_to_j):
            continue
        x, y = points[i, 1:], points[j, 1:]
        ratio = np.sqrt((1 + norm[j] * norm[j]) / (1 + norm[i] * norm[i]))
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


@inlined
def _prefetch_pair(points: Any, gradient: Any, i: int, j: int, first: int, last: int) -> None:
    mine_i, mine_j = first <= i < last, first <= j < last
    if mine_i or mine_j:
        prefetch_row(points, i)
        prefetch_row(points, j)
    if mine_i:
        prefetch_row(gradient, i)
    if mine_j:
        prefetch_row(gradient, j)
