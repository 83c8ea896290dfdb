"""The Lorentz linear layer with boost, of HyboNet."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.geometry.numerics import layer_radius, safe_norm, safe_reciprocal, sinhc, squared_norm
from h2hgcn.layers.feature_linear import feature_product
from h2hgcn.layers.features import is_sparse, prepare_features
from h2hgcn.layers.sparse import csr_matmul


class BoostedLinear(nn.Module):
    """``y = [t, sqrt(t² - 1) z/|z|]`` with ``z = W h(x) + b`` and ``t = λ σ(vᵀ h(x) + b') + ε``: a map of whole points
    that may also boost, that is, change time and space together (Chen et al. 2022).

    The formula is that of the authors' code. In the paper the sigmoid gives the length of the space part, and time
    follows from it.

    Points are held as time ``(n)`` and space ``(n, dim)``. Where ``z`` is 0, ``y`` is the origin.

    Args:
        in_dim, out_dim: Dimensions of the manifolds.
        activation: ``h``, a function of single coordinates; None is the identity.
        dropout: Of the coordinates of ``h(x)``.
        scale: Where ``λ``, which is learnt, starts. Times stay below that of ``numerics.layer_radius``, beyond which
            ``λ`` stays at its bound, with gradient 0.
        min_time: ``ε`` of the authors' code, above 1, so that no point is at the origin, where ``z/|z|`` is lost.
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        activation: nn.Module | None = None,
        *,
        dropout: float = 0.0,
        scale: float = 10.0,
        min_time: float = 1.1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not (math.isfinite(scale) and scale > 0 and min_time > 1):
            raise ValueError(f"scale={scale}, min_time={min_time}: the scale must be positive, min_time above 1")
        self.activation = activation
        self.dropout = dropout
        self.initial_scale = scale
        self.min_time = min_time
        # the first row is v and b', the first column is for the time of x
        self.weight = nn.Parameter(torch.empty(out_dim + 1, in_dim + 1, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_dim + 1, device=device, dtype=dtype))
        self.log_scale = nn.Parameter(torch.empty((), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew; at first, time has none, as in the authors' code."""
        bound = self.weight.shape[0] ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)
        nn.init.constant_(self.log_scale, math.log(self.initial_scale))
        with torch.no_grad():
            self.weight[:, 0] = 0

    def forward(self, time: Tensor, space: Tensor) -> tuple[Tensor, Tensor]:
        """From points to points."""
        if self.activation is not None:
            time, space = self.activation(time), self.activation(space)
        time, space = (F.dropout(part, self.dropout, self.training) for part in (time, space))
        return self._rescaled(F.linear(space, self.weight[:, 1:], self.bias), time)

    def of_features(self, x: Any) -> tuple[Tensor, Tensor]:
        """Points of ``exp_o(x)`` for features ``x``, dense or sparse, without an activation before.

        Vectors longer than ``layer_radius`` are shortened to it.
        """
        norm = _row_norms(x, self.weight.dtype)
        radius = norm.clamp_max(layer_radius(norm.dtype))
        shortening = torch.where(norm > radius, radius * safe_reciprocal(norm), 1.0)
        stretch = (shortening * sinhc(radius.square())).unsqueeze(1)
        product = feature_product(x, self.weight[:, 1:]) * stretch + self.bias
        return self._rescaled(product, torch.cosh(radius))

    def _rescaled(self, product: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        product = product + time.unsqueeze(1) * self.weight[:, 0]
        logit, direction = product[:, :1], product[:, 1:]
        largest = math.log(math.cosh(layer_radius(product.dtype)) - self.min_time)
        time = self.min_time + self.log_scale.clamp_max(largest).exp() * torch.sigmoid(logit)
        space = direction * ((time.square() - 1).sqrt() * safe_reciprocal(safe_norm(direction)))
        return (1 + squared_norm(space)).sqrt().squeeze(1), space

    def extra_repr(self) -> str:
        out_width, in_width = self.weight.shape
        return f"{in_width - 1}, {out_width - 1}, dropout={self.dropout}, min_time={self.min_time}"


def _row_norms(x: Any, dtype: torch.dtype) -> Tensor:
    if not is_sparse(x):
        return safe_norm(x.to(dtype)).squeeze(1)
    crow, col, values = prepare_features(x).to(dtype).matrix[:3]
    squares: Tensor = csr_matmul(crow, col, values.square(), values.new_ones(x.shape[1]))
    return squares.sqrt()
