"""The spaces that encoders map to, and points seen from the origin."""

import math
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_mean_pool

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.kernels.convolution import exp_origin

Space = Literal["lorentz", "ball", "euclidean"]


def check_space(space: str) -> Space:
    """The argument itself, if it is the name of a space."""
    for known in get_args(Space):
        if space == known:
            return known
    raise ValueError(f"the space {space!r} is not known; an encoder's `space` is one of {get_args(Space)}")


def squared_distance(space: Space) -> Callable[[Tensor, Tensor], Tensor]:
    """The squared distance of two sets of points of a space."""
    return {"lorentz": lorentz.squared_distance, "ball": _ball, "euclidean": _euclidean}[space]


def as_lorentz(points: Tensor, space: Space) -> Tensor:
    """Points of a hyperbolic space on the hyperboloid."""
    if space == "euclidean":
        raise ValueError("Euclidean points have no place on the hyperboloid")
    return points if space == "lorentz" else poincare.to_lorentz(points)


def mean_points(points: Tensor, group: Tensor, num_groups: int, space: Space) -> Tensor:
    """The mean of each group of points: the Einstein midpoint in hyperbolic space, which is the sum on the hyperboloid
    scaled back to it.
    """
    if space == "euclidean":
        return global_mean_pool(points, group, num_groups)
    sums = global_mean_pool(as_lorentz(points, space).double(), group, num_groups)
    time = sums[:, :1] + (sums[:, :1] == 0)  # a graph without nodes is at the origin
    sums = torch.cat([time, sums[:, 1:]], dim=1)
    norm = (sums[:, :1].square() - sums[:, 1:].square().sum(1, keepdim=True)).clamp_min(1).sqrt()
    means = lorentz.project((sums / norm).to(points.dtype))
    return means if space == "lorentz" else poincare.from_lorentz(means)


def _ball(x: Tensor, y: Tensor) -> Tensor:
    return lorentz.squared_distance(poincare.to_lorentz(x), poincare.to_lorentz(y))


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).square().sum(-1)


class Curvature(nn.Module):
    """``c > 0`` of a space of curvature ``-c``, kept as its logarithm. All geometry is at curvature -1: vectors that
    enter are multiplied with ``root``, and distances that leave are divided by it.
    """

    def __init__(self, curvature: float = 1.0, learnable: bool = False) -> None:
        super().__init__()
        if not (math.isfinite(curvature) and curvature > 0):
            raise ValueError(f"curvature={curvature}: give c > 0 for a space of curvature -c")
        self.log = nn.Parameter(torch.tensor(math.log(curvature)), requires_grad=learnable)

    @property
    def root(self) -> Tensor:
        """``sqrt(c)``."""
        return (0.5 * self.log).exp()

    def extra_repr(self) -> str:
        return f"{-self.log.exp().item():g}"


def unit_length(manifold: Space) -> float:
    """The length of a unit vector at the origin: the metric of the Poincaré ball is 4 times the Euclidean one there."""
    return 2.0 if manifold == "ball" else 1.0


def points_of(tangent: Tensor, manifold: Space) -> Tensor:
    """The points of a hyperbolic space. Vectors longer than ``layer_radius`` are shortened to it."""
    return in_coordinates(exp_origin(tangent, layer_radius(tangent.dtype)), manifold)


def in_coordinates(points: Tensor, manifold: Space) -> Tensor:
    """Points of the hyperboloid in the coordinates of a hyperbolic space."""
    return poincare.from_lorentz(points) if manifold == "ball" else points


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


def check_manifold(manifold: str) -> Space:
    """The argument itself, if it names a model of hyperbolic space."""
    if manifold == "lorentz":
        return "lorentz"
    if manifold == "ball":
        return "ball"
    raise ValueError(f"manifold={manifold!r} is not known; use 'lorentz' or 'ball'")
