"""The Lorentz linear transformation."""

from typing import Any

import torch
from torch import Tensor, nn

from h2hgcn.geometry import stiefel
from h2hgcn.geometry.numerics import full_precision
from h2hgcn.layers.stiefel_parameter import stiefel_parameter


class LorentzLinear(nn.Module):
    """``y = [x₀, W x₁..ₙ]`` with orthonormal columns of ``W (out_dim, in_dim)`` (Dai et al. 2021, Eq. 10-11).

    An isometry from points ``(..., in_dim + 1)`` to points ``(..., out_dim + 1)``, which keeps the time of every
    point. Columns can be orthonormal only if ``out_dim ≥ in_dim``.
    """

    def __init__(
        self, in_dim: int, out_dim: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        check_dimensions(in_dim, out_dim)
        self.in_dim = in_dim
        self.out_dim = out_dim
        self.weight = stiefel_parameter(out_dim, in_dim, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws ``W`` anew, uniformly over the Stiefel manifold."""
        like: dict[str, Any] = {"device": self.weight.device, "dtype": self.weight.dtype}
        with torch.no_grad():
            self.weight.copy_(stiefel.random_orthonormal(self.out_dim, self.in_dim, **like))

    def forward(self, points: Tensor) -> Tensor:
        check_width(points, self.in_dim)
        with full_precision(points):
            return torch.cat([points[..., :1], points[..., 1:] @ self.weight.mT], dim=-1)

    def extra_repr(self) -> str:
        return f"{self.in_dim}, {self.out_dim}"


def check_dimensions(in_dim: int, out_dim: int) -> None:
    """Raises unless an orthonormal map from ``in_dim`` to ``out_dim`` exists."""
    if in_dim < 1:
        raise ValueError(f"in_dim={in_dim}: a hyperbolic space has at least one dimension")
    if out_dim < in_dim:
        raise ValueError(
            f"out_dim={out_dim} is below in_dim={in_dim}, but orthonormal columns need out_dim ≥ in_dim; reduce the "
            "dimension before the exponential map, as the Euclidean stem of H2HGCN does"
        )


def check_width(points: Tensor, dim: int) -> None:
    """Raises unless the last axis holds ``[time, space...]`` of ``dim`` dimensions."""
    if not isinstance(points, Tensor):
        raise ValueError(f"points are a {type(points).__name__}; pass a tensor")
    if points.dim() == 0 or points.shape[-1] != dim + 1:
        raise ValueError(
            f"points have shape {tuple(points.shape)}, but dimension {dim} needs a last axis of {dim + 1}: "
            "[time, space...]; map Euclidean features with lorentz.exp_origin first"
        )
    if not points.is_floating_point() or points.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"points are {points.dtype}; hyperbolic geometry needs float32 or float64")
