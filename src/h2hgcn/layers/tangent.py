"""Points seen from the origin: each as the tangent vector ``(n, dim)`` whose length is its radius."""

import torch
from torch import Tensor

from h2hgcn.geometry import poincare
from h2hgcn.geometry.numerics import asinhc, layer_radius, squared_norm
from h2hgcn.layers.kernels import exp_origin_parts
from h2hgcn.layers.spaces import Space


def unit_length(manifold: Space) -> float:
    """The length of a unit vector at the origin: the metric of the Poincaré ball is 4 times the Euclidean one there."""
    return 2.0 if manifold == "ball" else 1.0


def log_of_space(space: Tensor) -> Tensor:
    """The tangent vectors of points that are given by their space coordinates ``(n, dim)``."""
    return space * asinhc(squared_norm(space))


def translated(tangent: Tensor, shift: Tensor) -> Tensor:
    """``log_o(exp_x(P_{o→x}(shift)))`` for ``x = exp_o(tangent)``: a bias (Chami et al. 2019, section 4.2).

    Parallel transport from the origin is the boost that takes the origin to ``x``; it takes ``exp_o(shift)`` where
    the exponential map at ``x`` ends. Vectors longer than ``layer_radius`` are shortened to it.
    """
    bound = layer_radius(tangent.dtype)
    time, space = exp_origin_parts(tangent, bound)
    shift_time, shift_space = exp_origin_parts(shift.unsqueeze(0), bound)
    along = (space * shift_space).sum(1) / (1 + time)
    return log_of_space(space * (shift_time + along).unsqueeze(1) + shift_space)


def points_of(tangent: Tensor, manifold: Space) -> Tensor:
    """The points of a hyperbolic space. Vectors longer than ``layer_radius`` are shortened to it."""
    time, space = exp_origin_parts(tangent, layer_radius(tangent.dtype))
    return in_coordinates(time, space, manifold)


def in_coordinates(time: Tensor, space: Tensor, manifold: Space) -> Tensor:
    """Points, held as time ``(n)`` and space ``(n, dim)``, in the coordinates of a hyperbolic space."""
    points = torch.cat([time.unsqueeze(1), space], dim=1)
    return poincare.from_lorentz(points) if manifold == "ball" else points
