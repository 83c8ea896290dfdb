"""The hyperboloid of curvature -1: points ``[time, space...]`` with ``-time² + |space|² = -1`` and ``time ≥ 1``.

Functions of two points take differences in float64 and return the input's dtype. A point's time is derived from its
space coordinates wherever both are at hand, since an independently stored time drifts.
"""

import torch
from torch import Tensor

from h2hgcn.geometry.numerics import (
    INNER_PRODUCT_STEPS,
    MIDPOINT_FLOOR,
    asinhc,
    full_precision,
    layer_radius,
    max_radius,
    safe_norm,
    safe_reciprocal,
    safe_sqrt,
    sinhc,
    squared_norm,
    wide,
)

# Up to here, distances take less than a millisecond without a kernel.
_FEW_NUMBERS = 1 << 15


def inner(x: Tensor, y: Tensor) -> Tensor:
    """Lorentz inner product ``-x₀y₀ + Σ xᵢyᵢ`` over the last axis (Dai et al. 2021, Eq. 1), taken as it stands."""
    check_pair(x, y)
    product = x * y
    return product[..., 1:].sum(-1) - product[..., 0]


def distance(x: Tensor, y: Tensor) -> Tensor:
    """Geodesic distance (Dai et al. 2021, Eq. 2) between points that broadcast, as accurate as their coordinates.

    At equal points the value is 0 and the gradient is 0; elsewhere the gradient is that of ``arcosh(-<x, y>)`` with
    time a function of space, so it flows to the space coordinates alone.
    """
    return _distance(x, y, squared=False)


def squared_distance(x: Tensor, y: Tensor) -> Tensor:
    """Square of ``distance``, smooth everywhere, equal points included."""
    return _distance(x, y, squared=True)


def _distance(x: Tensor, y: Tensor, squared: bool) -> Tensor:
    """By the CPU's kernel, if there are enough points to make up for compiling it."""
    if not torch.compiler.is_compiling() and x.numel() + y.numel() > _FEW_NUMBERS:
        from h2hgcn.kernels.distances import distance_of_pairs, takes_pairs  # here: kernels are built on this file

        if takes_pairs(x, y):
            return distance_of_pairs(x, y, squared)
    return composed_distance(x, y, squared)


def composed_distance(x: Tensor, y: Tensor, squared: bool) -> Tensor:
    """``distance`` or its square by PyTorch's operations, on any device and under any transform."""
    chord = squared_chord(x, y).squeeze(-1)
    stretch = asinhc(chord / 4)
    distance = chord * stretch.square() if squared else safe_sqrt(chord) * stretch
    return distance.to(torch.promote_types(x.dtype, y.dtype))


def squared_chord(x: Tensor, y: Tensor) -> Tensor:
    """``-2 - 2<x, y> = 4 sinh²(distance/2)`` in float64; the last axis is kept.

    With ``ρ = t_x/t_y`` it is ``|s_x - ρ s_y|²/ρ + (t_x - t_y)²/(t_x t_y)``: no term is negative, so nothing cancels
    far out, and it is smooth at the origin. Equal points have a chord of exactly 0.
    """
    check_pair(x, y)
    x, y = wide(x[..., 1:]), wide(y[..., 1:])
    time_x, time_y = _time(x), _time(y)
    ratio = time_x / time_y
    return squared_norm(x - ratio * y) / ratio + (time_x - time_y).square() / (time_x * time_y)


def distance_to_origin(point: Tensor) -> Tensor:
    """The radius of a point: ``asinh|space|``, with gradient 0 at the origin."""
    return torch.asinh(safe_norm(point[..., 1:])).squeeze(-1)


def pairwise_distance(points: Tensor, others: Tensor) -> Tensor:
    """All distances ``(..., n, m)`` between ``n`` points and ``m`` others by one matrix product.

    The product is taken in float64 from times derived from space. It cancels where ``distance`` does not: two points at
    radius ``r`` count as equal, with gradient 0, where their chord is below the rounding of ``cosh²(r)``.
    """
    check_pair(points, others)
    space, other_space = wide(points[..., 1:]), wide(others[..., 1:])
    times = _time(space) * _time(other_space).mT
    chord = 2 * (times - space @ other_space.mT - 1)
    chord = torch.where(chord <= times.detach() * INNER_PRODUCT_STEPS * torch.finfo(times.dtype).eps, 0.0, chord)
    return (safe_sqrt(chord) * asinhc(chord / 4)).to(torch.promote_types(points.dtype, others.dtype))


def exp_origin(tangent: Tensor, max_norm: float | None = None) -> Tensor:
    """Exponential map at the origin (Dai et al. 2021, Eq. 9): a Euclidean vector ``(..., dim)`` to a point ``(...,
    dim + 1)``.

    A vector longer than ``max_norm``, and in any case than ``max_radius(dtype)``, keeps its direction and is
    shortened to it; its gradient is then along the sphere only. At 0 the map is the identity to first order.
    """
    bound = max_radius(tangent.dtype) if max_norm is None else min(max_norm, max_radius(tangent.dtype))
    bounded = _shortened(tangent, safe_norm(tangent), bound)
    space = bounded * sinhc(squared_norm(bounded))
    return project(torch.cat([torch.ones_like(space[..., :1]), space], dim=-1))


def log_origin(point: Tensor) -> Tensor:
    """Inverse of ``exp_origin``: the Euclidean vector ``(..., dim)`` whose length is the point's radius."""
    space = point[..., 1:]
    return space * asinhc(squared_norm(space))


def exp(point: Tensor, tangent: Tensor) -> Tensor:
    """Exponential map (Dai et al. 2021, Eq. 3) of a tangent vector ``(..., dim + 1)`` at a point.

    The tangent's time follows from its space part, so that it is tangent; lengths are bounded by ``max_radius(dtype)``.
    """
    check_pair(point, tangent)
    dtype = torch.promote_types(point.dtype, tangent.dtype)
    space, vector = wide(point[..., 1:]), wide(tangent[..., 1:])
    bounded = _shortened(vector, safe_sqrt(_lorentz_square(space, vector)), max_radius(dtype))
    square = _lorentz_square(space, bounded)
    moved = space * (1 + square / 2 * sinhc(square / 4).square()) + bounded * sinhc(square)
    return torch.cat([_time(moved), moved], dim=-1).to(dtype)


def log(point: Tensor, other: Tensor) -> Tensor:
    """Logarithmic map (Dai et al. 2021, Eq. 4): the tangent vector at ``point`` that leads to ``other``; 0 if they
    are equal.
    """
    dtype = torch.promote_types(point.dtype, other.dtype)
    chord, space = squared_chord(point, other), wide(point[..., 1:])
    scale = asinhc(chord / 4) / (1 + chord / 4).sqrt()
    tangent = scale * (wide(other[..., 1:]) - space - chord / 2 * space)
    time = (space * tangent).sum(-1, keepdim=True) / _time(space)
    return torch.cat([time, tangent], dim=-1).to(dtype)


def translated(tangent: Tensor, shift: Tensor) -> Tensor:
    """``log(exp(tangent) ⊕ exp(shift))``, maps at the origin, of rows ``(n, dim)`` and one vector ``(dim,)``: a bias.

    In the Poincaré ball ``⊕`` is the Möbius addition (Ganea et al. 2018, Eq. 4); at ``x = exp(tangent)`` it is the
    exponential map of ``shift``, parallel transported from the origin (Chami et al. 2019, section 4.2). On the
    hyperboloid it is the boost that takes the origin to ``x``, applied to ``y = exp(shift)``: its space part is
    ``y_s + g x_s`` with ``g = y_0 + x_s·y_s/(1 + x_0)``. So the result lies in the plane of the two vectors, and only
    their lengths and products need float64.

    Vectors longer than ``layer_radius(float64)``, 16.4, are shortened to it.
    """
    square, scale = _bounded(tangent)
    shift_square, shift_scale = _bounded(shift)
    with full_precision(tangent):
        product = wide(tangent @ shift).unsqueeze(-1) * scale * shift_scale
    x, y = sinhc(torch.cat([square, shift_square.view(1, 1)])).split([len(square), 1])  # of x·tangent and y·shift
    x_time, y_time = (1 + square * x.square()).sqrt(), (1 + shift_square * y.square()).sqrt()
    x = x * (y_time + x * y * product / (1 + x_time))
    length = x.square() * square + 2 * x * y * product + y.square() * shift_square
    back = asinhc(length.clamp_min(0))  # rounding may leave less than 0 near the origin
    return (back * x * scale).to(tangent.dtype) * tangent + (back * y * shift_scale).to(tangent.dtype) * shift


def project(point: Tensor) -> Tensor:
    """The point of the hyperboloid with the same space coordinates: its time is ``sqrt(1 + |space|²)``."""
    return torch.cat([_time(point[..., 1:]), point[..., 1:]], dim=-1)


def norm_of_sum(sums: Tensor) -> Tensor:
    """``Q = sqrt(T² - |S|²)`` of sums whose weights add up to 1; the last axis is kept.

    It is at least 1, since every pair of neighbors contributes at least the product of its weights; see
    ``MIDPOINT_FLOOR``.
    """
    return (sums[..., :1].square() - squared_norm(sums[..., 1:])).clamp_min(MIDPOINT_FLOOR).sqrt()


def violation(point: Tensor) -> Tensor:
    """How far a point is off the hyperboloid: ``|<x, x> + 1|`` relative to time², computed in float64."""
    time, space = wide(point[..., 0]), wide(point[..., 1:])
    return (space.square().sum(-1) - time.square() + 1).abs() / time.square()


def check_pair(x: Tensor, y: Tensor) -> None:
    """Raises unless both have ``dim + 1`` coordinates; leading axes may broadcast, but coordinates must not."""
    if x.dim() == 0 or y.dim() == 0 or x.shape[-1] != y.shape[-1] or x.shape[-1] == 0:
        raise ValueError(
            f"points of shape {tuple(x.shape)} and {tuple(y.shape)} do not go together; pass points of one space, "
            "whose last axes hold [time, space...] and are equally long"
        )


def _shortened(vector: Tensor, norm: Tensor, max_norm: float) -> Tensor:
    """The vector, whose length is ``norm``, brought to length ``max_norm`` if it is longer."""
    too_long = norm > max_norm
    return torch.where(too_long, vector / torch.where(too_long, norm, 1.0) * max_norm, vector)


def _bounded(vector: Tensor) -> tuple[Tensor, Tensor]:
    """Squared lengths within the bound of ``translated``, and the factors that shorten the vectors to them."""
    bound = layer_radius(torch.float64) ** 2
    square = wide(squared_norm(vector))
    factor = bound / square.clamp_min(bound)
    return square * factor, factor.sqrt()


def _lorentz_square(space: Tensor, vector: Tensor) -> Tensor:
    """Squared Lorentz norm of a tangent vector by its space part: its radial part shrinks by time, the rest stays."""
    direction = space * safe_reciprocal(safe_norm(space))
    radial = (direction * vector).sum(-1, keepdim=True)
    return squared_norm(vector - direction * radial) + (radial / _time(space)).square()


def _time(space: Tensor) -> Tensor:
    return (1 + squared_norm(space)).sqrt()
