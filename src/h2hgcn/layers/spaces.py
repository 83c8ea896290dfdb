"""The spaces that encoders map to, points seen from the origin, and checks of arguments."""

import math
from collections.abc import Callable
from typing import Literal, TypeVar, get_args

from torch import Tensor
from torch_geometric.nn import global_mean_pool

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.kernels.convolution import exp_origin

Space = Literal["lorentz", "ball", "euclidean"]
HYPERBOLIC: tuple[Space, ...] = ("lorentz", "ball")


def squared_distance(space: Space) -> Callable[[Tensor, Tensor], Tensor]:
    """The squared distance of two sets of points of a space."""
    if space == "euclidean":
        return _squared_euclidean
    return lorentz.squared_distance if space == "lorentz" else _squared_in_ball


def _squared_euclidean(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).square().sum(-1)


def _squared_in_ball(x: Tensor, y: Tensor) -> Tensor:
    return lorentz.squared_distance(poincare.to_lorentz(x), poincare.to_lorentz(y))


def as_lorentz(points: Tensor, space: Space) -> Tensor:
    """Points of a hyperbolic space on the hyperboloid."""
    if space == "euclidean":
        raise ValueError("Euclidean points have no place on the hyperboloid")
    return points if space == "lorentz" else poincare.to_lorentz(points)


def in_coordinates(points: Tensor, space: Space) -> Tensor:
    """Points of the hyperboloid in the coordinates of a hyperbolic space."""
    return poincare.from_lorentz(points) if space == "ball" else points


def points_of(tangent: Tensor, space: Space) -> Tensor:
    """The points of a hyperbolic space. Vectors longer than ``layer_radius`` are shortened to it."""
    return in_coordinates(exp_origin(tangent, layer_radius(tangent.dtype)), space)


def unit_length(space: Space) -> float:
    """The length of a unit vector at the origin: the metric of the Poincaré ball is 4 times the Euclidean one there."""
    return 2.0 if space == "ball" else 1.0


def mean_points(points: Tensor, group: Tensor, num_groups: int, space: Space) -> Tensor:
    """The mean of each group of points: in hyperbolic space the Einstein midpoint, the sum on the hyperboloid scaled
    back to it.
    """
    if space == "euclidean":
        return global_mean_pool(points, group, num_groups)
    sums = global_mean_pool(as_lorentz(points, space).double(), group, num_groups)
    means = (sums / lorentz.norm_of_sum(sums)).to(points.dtype)  # projected, a graph without nodes is at the origin
    return in_coordinates(lorentz.project(means), space)


Choice = TypeVar("Choice", bound=str)


def check_choice(name: str, value: str, known: tuple[Choice, ...]) -> Choice:
    """The argument itself, if it is one of the known ones."""
    for choice in known:
        if value == choice:
            return choice
    raise ValueError(f"{name}={value!r} is not known; use {' or '.join(map(repr, known))}")


def check_space(space: str) -> Space:
    """The argument itself, if it is the name of a space."""
    known: tuple[Space, ...] = get_args(Space)
    return check_choice("the encoder's space", space, known)


def check_sizes(**sizes: int) -> None:
    """Raises unless all are at least 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}={size} must be at least 1")


def check_shares(**shares: float) -> None:
    """Raises unless every share can be dropped."""
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise ValueError(f"{name}={share} must be 0 or more, and below 1")


def log_curvature(curvature: float) -> float:
    """``log c`` of a space of curvature ``-c``; encoders learn it in this form."""
    if not (math.isfinite(curvature) and curvature > 0):
        raise ValueError(f"curvature={curvature}: give c > 0 for a space of curvature -c")
    return math.log(curvature)
