"""The Klein model: the open unit ball with straight geodesics, where the Einstein midpoint is a weighted mean."""

import torch
from torch import Tensor

from h2hgcn.geometry.lorentz import norm_of_sum, project
from h2hgcn.geometry.numerics import ball_gap, squared_norm, wide


def from_lorentz(point: Tensor) -> Tensor:
    """``space / time`` (Dai et al. 2021, Eq. 6): ``(..., dim + 1)`` to ``(..., dim)``."""
    return point[..., 1:] / point[..., :1]


def to_lorentz(klein_point: Tensor) -> Tensor:
    """``γ[1, k]`` (Dai et al. 2021, Eq. 6). Float32 Klein coordinates end at radius 8.7, float64 ones at 18.7."""
    factor = lorentz_factor(klein_point).unsqueeze(-1)
    return project(torch.cat([factor, factor * klein_point], dim=-1))


def lorentz_factor(klein_point: Tensor) -> Tensor:
    """``γ = 1/sqrt(1 - |k|²)``, the time of the point; bounded by ``ball_gap`` at and beyond the boundary."""
    gap = 1 - squared_norm(wide(klein_point)).squeeze(-1)
    return gap.clamp_min(ball_gap(klein_point.dtype)).rsqrt().to(klein_point.dtype)


def einstein_midpoint(points: Tensor, weights: Tensor | None = None) -> Tensor:
    """Einstein midpoint (Dai et al. 2021, Eq. 12) of points along the last axis but one.

    ``points`` is ``(..., k, dim)`` in the Klein model or ``(..., k, dim + 1)`` on the hyperboloid, and so is the
    result; the first coordinate tells which, since it is at least 1 on the hyperboloid and below 1 in the ball.
    ``weights`` is ``(..., k)`` for one midpoint of each set or ``(..., m, k)`` for ``m`` of them; without it all
    count alike.

    Since γ is the time and γ·k the space of a point, the midpoint is the weighted sum of Lorentz points brought back
    to the hyperboloid: ``(T, S) / sqrt(T² - |S|²)``, where the root is at least the sum of the weights.
    """
    if points.shape[-2] == 0:
        raise ValueError("the midpoint of no points is not defined; pass at least one point")
    on_hyperboloid = bool((points[..., 0] >= 1 - ball_gap(points.dtype)).all())
    lifted = project(wide(points)) if on_hyperboloid else to_lorentz(wide(points))
    shares = _normalized(points, weights)
    one_each = shares.dim() < points.dim()
    sums = (shares.unsqueeze(-2) @ lifted).squeeze(-2) if one_each else shares @ lifted
    midpoint = (sums / norm_of_sum(sums)).to(points.dtype)
    return project(midpoint) if on_hyperboloid else from_lorentz(midpoint)


def _normalized(points: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        weights = points.new_ones(points.shape[:-1])
    if weights.dim() not in (points.dim() - 1, points.dim()) or weights.shape[-1] != points.shape[-2]:
        raise ValueError(
            f"weights of shape {tuple(weights.shape)} do not fit points of shape {tuple(points.shape)}; "
            "pass one weight for each point"
        )
    if bool((weights < 0).any()) or not bool(weights.isfinite().all()):
        raise ValueError("weights must be finite and not negative: the midpoint is not defined otherwise")
    total = wide(weights).sum(-1, keepdim=True)
    if not bool((total > 0).all()):
        raise ValueError("all weights of a set are zero; give at least one point a positive weight")
    return wide(weights) / total
