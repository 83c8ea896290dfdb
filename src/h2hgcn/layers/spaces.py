"""The spaces that encoders map to, and what a decoder has to know of them."""

from collections.abc import Callable
from typing import Literal, get_args

from torch import Tensor
from torch_geometric.nn import global_mean_pool

from h2hgcn.geometry import lorentz, poincare

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
    sums[sums[:, 0] == 0, 0] = 1  # a graph without nodes is at the origin
    norm = (sums[:, :1].square() - sums[:, 1:].square().sum(1, keepdim=True)).clamp_min(1).sqrt()
    means = lorentz.project((sums / norm).to(points.dtype))
    return means if space == "lorentz" else poincare.from_lorentz(means)


def _ball(x: Tensor, y: Tensor) -> Tensor:
    return lorentz.squared_distance(poincare.to_lorentz(x), poincare.to_lorentz(y))


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).square().sum(-1)
