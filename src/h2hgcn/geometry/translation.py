"""Translations of the hyperboloid, between tangent vectors at the origin."""

import torch
from torch import Tensor

from h2hgcn.geometry.numerics import asinhc, layer_radius, sinhc, squared_norm, wide


def translated(tangent: Tensor, shift: Tensor) -> Tensor:
    """``log(exp(tangent) ⊕ exp(shift))``, maps at the origin, of rows ``(n, dim)`` and one vector ``(dim,)``.

    In the Poincaré ball ``⊕`` is the Möbius addition (Ganea et al. 2018, Eq. 4). On the hyperboloid it is the boost
    that takes the origin to ``p = exp(tangent)``, applied to ``q = exp(shift)``: its space part is ``q_s + g p_s``
    with ``g = q_0 + <p_s, q_s>/(1 + p_0)``. So the result lies in the plane of the two vectors, and only their lengths
    and products need float64.

    Vectors longer than ``layer_radius(float64)``, 16.4, count as if they had that length.
    """
    square, scale = _bounded(tangent)
    shift_square, shift_scale = _bounded(shift)
    product = wide(tangent @ shift).unsqueeze(-1) * scale * shift_scale
    p, q = sinhc(square), sinhc(shift_square)  # space parts are p·tangent and q·shift
    p_time, q_time = (1 + square * p.square()).sqrt(), (1 + shift_square * q.square()).sqrt()
    p = p * (q_time + p * q * product / (1 + p_time))
    length = p.square() * square + 2 * p * q * product + q.square() * shift_square
    back = asinhc(length.clamp_min(0))  # near the origin rounding may leave less than nothing
    return (back * p * scale).to(tangent.dtype) * tangent + (back * q * shift_scale).to(tangent.dtype) * shift


def _bounded(vector: Tensor) -> tuple[Tensor, Tensor]:
    """Squared lengths within the bound, and the factors that shorten the vectors to them."""
    bound = layer_radius(torch.float64) ** 2
    square = wide(squared_norm(vector))
    factor = bound / square.clamp_min(bound)
    return square * factor, factor.sqrt()
