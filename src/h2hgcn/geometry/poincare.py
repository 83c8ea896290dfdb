"""The Poincaré ball: the open unit ball with the conformal metric, where activations act and pictures are drawn."""

import torch
from torch import Tensor

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import ball_gap, squared_norm, wide


def from_lorentz(point: Tensor) -> Tensor:
    """``space / (1 + time)`` (Dai et al. 2021, Eq. 5): ``(..., dim + 1)`` to ``(..., dim)``."""
    return point[..., 1:] / (1 + point[..., :1])


def to_lorentz(ball_point: Tensor) -> Tensor:
    """``[1 + |b|², 2b] / (1 - |b|²)`` (Dai et al. 2021, Eq. 5); at and beyond the boundary ``1 - |b|²`` counts as
    ``ball_gap``.
    """
    square = squared_norm(wide(ball_point))
    gap = (1 - square).clamp_min(ball_gap(ball_point.dtype))
    point = torch.cat([(1 + square) / gap, 2 * ball_point / gap], dim=-1)
    return lorentz.project(point.to(ball_point.dtype))


def mobius_add(ball_point: Tensor, ball_shift: Tensor) -> Tensor:
    """Möbius addition ``x ⊕ y`` (Ungar): the hyperbolic translation of ``y`` that takes the origin to ``x``."""
    product = (ball_point * ball_shift).sum(-1, keepdim=True)
    square_x, square_y = squared_norm(ball_point), squared_norm(ball_shift)
    numerator = (1 + 2 * product + square_y) * ball_point + (1 - square_x) * ball_shift
    denominator = 1 + 2 * product + square_x * square_y
    return numerator / denominator.clamp_min(ball_gap(denominator.dtype))


def geodesic(ball_start: Tensor, ball_end: Tensor, fractions: Tensor) -> Tensor:
    """Points ``(..., k, dim)`` at ``fractions`` (k) of the way from start to end ``(..., dim)``, at constant speed."""
    start, end = to_lorentz(ball_start), to_lorentz(ball_end)
    tangent = lorentz.log(start, end).unsqueeze(-2) * fractions.unsqueeze(-1)
    return from_lorentz(lorentz.exp(start.unsqueeze(-2).expand_as(tangent), tangent))
