"""Every epsilon, bound and series of the package, with its reason and its behavior at the edges.

Functions of a squared argument (``sinhc``, ``asinhc``) are analytic at 0, so value and all derivatives are finite
there; a function of the norm itself would not be.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

# Taylor coefficients in the squared argument. sinh(x)/x: 1/(2n+1)!; asinh(x)/x: (-1)^n (2n)! / (4^n n!^2 (2n+1)).
SINHC_SERIES = tuple(1.0 / math.factorial(2 * n + 1) for n in range(8))
SINHC_SLOPE_SERIES = tuple(2 * n / math.factorial(2 * n + 1) for n in range(1, 9))
_ASINHC_SERIES = tuple((-1) ** n * math.comb(2 * n, n) / (4**n * (2 * n + 1)) for n in range(9))

# Below these squares the series is exact to float64 rounding (the first dropped term is < 1e-17), above them the closed
# form loses less than two digits in its derivative.
SINHC_SERIES_LIMIT = 0.1
_ASINHC_SERIES_LIMIT = 1e-2

# The share of rounding error allowed in the squared time of a neighborhood sum: see ``layer_radius``.
_LAYER_TOLERANCE = 1e-2

# The lower bound of ``T² - |S|²`` for weights that sum to 1. In exact arithmetic it is at least 1, and equal to 1 for
# a node without neighbors; a bound of 1 would put a kink just there. Within ``layer_radius`` rounding leaves 0.99,
# so one half is never met where sums are good, and beyond it no root of a negative number is taken.
MIDPOINT_FLOOR = 0.5

# Rounding steps by which ``t_x t_y - s_x·s_y`` may be off, relative to ``t_x t_y``: one for each product and one for
# their difference, and one to spare. A smaller chord is noise.
INNER_PRODUCT_STEPS = 4

# The relative error allowed in a chord that a float32 product knows; half of it is the distance's, and what rounding
# the coordinates themselves does to a distance is of that size. Chords known less well are taken in float64.
CHORD_TOLERANCE = 8e-6

# The share of rounding error allowed in the gradient of a distance, whose radial part is a difference of terms ``t t'``
# times as large: beyond, it is taken in float64. Float32 points within radius 3.7 are below.
GRADIENT_TOLERANCE = 5e-5

# By how much a user's activation may exceed ``|b|`` in float64 and still count as ``|act(b)| ≤ |b|``: rounding, not
# growth.
ACTIVATION_TOLERANCE = 1e-12

# The largest ``|log t|`` of a decoder's temperature: ``t`` is between 2e-9 and 5e8. Squared distances are at most 5400,
# that of points twice ``max_radius`` apart. Second derivatives divide them by ``t³``, which makes 1e30 and leaves
# float32 room for a ``distance_scale``. Colder, one rounding step of a float32 distance would turn no link into a link;
# hotter, every probability would be 1/2 to five digits.
MAX_LOG_TEMPERATURE = 20.0

# By how much ``|<x, x> + 1|``, relative to time², may exceed 0 in coordinates that came from elsewhere. Rounding and
# drift stay far below, and time is recomputed in any case; what is beyond is no point of the hyperboloid at all.
HYPERBOLOID_TOLERANCE = 1e-3

# How far ``MᵀM`` may be from the identity for ``M`` to be made orthonormal by a Cholesky factor of it. All eigenvalues
# are then between one half and three halves, so the condition is at most 3 and the result orthonormal to rounding.
NEARLY_ORTHONORMAL = 0.5

# Sums of more neighbors than this are checked, since rounding grows with their number: where ``eps`` times the
# number times the squared time exceeds the tolerance, they are taken again in float64.
LONG_SUM = 16
SUM_TOLERANCE = 2e-2


_NOTHING = nullcontext()


def max_radius(dtype: torch.dtype) -> float:
    """The largest distance from the origin at which ``dtype`` still tells points apart: 16.6 in float32, 36.7 in
    float64.

    There, neighboring representable coordinates, ``eps * sinh(radius)``, are one unit of distance apart. Every
    exponential map is bounded by it; squares of the coordinates are then far from overflow.
    """
    return math.asinh(1.0 / torch.finfo(dtype).eps)


def layer_radius(dtype: torch.dtype) -> float:
    """The largest radius at which neighborhood sums taken in ``dtype`` are good: 6.4 in float32, 16.4 in float64.

    The squared time ``T² - |S|²`` of a sum of neighbors is known to about ``eps * cosh²(radius)``; here this is 1 %,
    which moves the midpoint by half a hundredth of a unit.
    """
    return math.acosh(math.sqrt(_LAYER_TOLERANCE / torch.finfo(dtype).eps))


def first_order_excess(dtype: torch.dtype) -> float:
    """The largest Frobenius norm of ``MᵀM - I`` whose square is nothing to ``dtype``: 1.7e-4 in float32.

    Then ``M(I - U)``, with ``U`` the upper triangle of ``MᵀM - I`` and half its diagonal, is ``M R⁻¹``: what is left of
    the excess is at most twice its square, half a rounding step.
    """
    return 0.5 * math.sqrt(torch.finfo(dtype).eps)


def ball_gap(dtype: torch.dtype) -> float:
    """The smallest ``1 - |b|²`` used when a ball or Klein point is lifted: one rounding step, so no division by zero.

    A point at or outside the boundary is lifted to the farthest point that its dtype can name; its gradient through
    the gap is 0.
    """
    return torch.finfo(dtype).eps


def wide(x: Tensor) -> Tensor:
    """``x`` in float64, in which differences of hyperbolic coordinates are taken."""
    return x.to(torch.float64)


def full_precision(x: Tensor) -> AbstractContextManager[Any]:
    """A context in which autocast does not lower the precision of products on the device of ``x``."""
    kind = "cpu" if x.is_cpu else x.device.type
    # entering and leaving autocast takes as long as a small product
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else _NOTHING


def safe_sqrt(square: Tensor) -> Tensor:
    """Square root with gradient 0 (not infinity) at 0. Negative rounding noise counts as 0; NaN stays NaN."""
    positive = ~(square <= 0)
    return torch.where(positive, square, 1.0).sqrt() * positive


def safe_reciprocal(x: Tensor) -> Tensor:
    """``1/x``, and 0 with gradient 0 where ``x`` is 0."""
    nonzero = x != 0
    return nonzero / torch.where(nonzero, x, 1.0)


def squared_norm(x: Tensor) -> Tensor:
    """Sum of squares over the last axis, which is kept with length 1."""
    return x.square().sum(-1, keepdim=True)


def safe_norm(x: Tensor) -> Tensor:
    """Euclidean norm over the last axis (kept), without overflow or underflow; at 0 the gradient is 0."""
    if x.shape[-1] == 0:
        return x.new_zeros((*x.shape[:-1], 1))
    largest = torch.linalg.vector_norm(x.detach(), ord=math.inf, dim=-1, keepdim=True)
    scale = torch.where((largest > 0) & largest.isfinite(), largest, 1.0)
    return safe_sqrt(squared_norm(x / scale)) * scale


def sinhc(square: Tensor) -> Tensor:
    """``sinh(x)/x`` as a function of ``x²``: 1 with derivative 1/6 at 0."""
    return _analytic(square, SINHC_SERIES, SINHC_SERIES_LIMIT, torch.sinh)


def asinhc(square: Tensor) -> Tensor:
    """``asinh(x)/x`` as a function of ``x²``: 1 with derivative -1/6 at 0."""
    return _analytic(square, _ASINHC_SERIES, _ASINHC_SERIES_LIMIT, torch.asinh)


def _analytic(square: Tensor, series: tuple[float, ...], limit: float, function: Callable[[Tensor], Tensor]) -> Tensor:
    """``function(x)/x`` as a function of ``x²``: by its series below the limit."""
    near = square < limit
    small, root = torch.where(near, square, 0.0), torch.where(near, 1.0, square).sqrt()
    value = torch.full_like(small, series[-1])
    for coefficient in reversed(series[:-1]):
        value = value * small + coefficient
    return torch.where(near, value, function(root) / root)
