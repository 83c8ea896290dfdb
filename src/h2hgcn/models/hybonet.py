"""Fully hyperbolic neural networks."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius, safe_norm, safe_reciprocal, sinhc
from h2hgcn.graph.adjacency import Adjacency, check_neighbor_weights, first_rows
from h2hgcn.kernels.csr import csr_matmul, is_sparse, prepare_features
from h2hgcn.layers.h2h_conv import midpoint
from h2hgcn.layers.inputs import feature_product
from h2hgcn.layers.spaces import Space
from h2hgcn.models.encoder import GraphEncoder
from h2hgcn.models.mlp import activation_of


class BoostedLinear(nn.Module):
    """``y = [t, sqrt(t² - 1) z/|z|]`` with ``z = W h(x) + b`` and ``t = λ σ(vᵀ h(x) + b') + ε``: a map of whole points
    that may also boost, that is, change time and space together (Chen et al. 2022).

    The formula is that of the authors' code. In the paper the sigmoid gives the length of the space part, and time
    follows from it.

    Where ``z`` is 0, ``y`` is the origin.

    Args:
        in_dim, out_dim: Dimensions of the manifolds.
        activation: ``h``, a function of single coordinates; None is the identity.
        dropout: Of the coordinates of ``h(x)``.
        scale: Where ``λ``, which is learned, starts. Times stay below that of ``numerics.layer_radius``, beyond which
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
        **factory: Any,
    ) -> None:
        super().__init__()
        if not (math.isfinite(scale) and scale > 0 and min_time > 1):
            raise ValueError(f"scale={scale}, min_time={min_time}: the scale must be positive, min_time above 1")
        self.activation = activation
        self.dropout = dropout
        self.initial_scale = scale
        self.min_time = min_time
        # the first row is v and b', the first column is for the time of x
        self.weight = nn.Parameter(torch.empty(out_dim + 1, in_dim + 1, **factory))
        self.bias = nn.Parameter(torch.empty(out_dim + 1, **factory))
        self.log_scale = nn.Parameter(torch.empty((), **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights again; at first, time has none, as in the authors' code."""
        bound = self.weight.shape[0] ** -0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)
        nn.init.constant_(self.log_scale, math.log(self.initial_scale))
        with torch.no_grad():
            self.weight[:, 0] = 0

    def forward(self, points: Tensor) -> Tensor:
        """From points ``(n, in_dim + 1)`` to points ``(n, out_dim + 1)``."""
        if self.activation is not None:
            points = self.activation(points)
        points = F.dropout(points, self.dropout, self.training)
        return self._rescaled(F.linear(points, self.weight, self.bias).to(points.dtype))

    def of_features(self, x: Any) -> Tensor:
        """Points of ``exp_o(x)`` for features ``x``, dense or sparse, without an activation before.

        Vectors longer than ``layer_radius`` are shortened to it.
        """
        norm = _row_norms(x, self.weight.dtype)
        radius = norm.clamp_max(layer_radius(norm.dtype))
        shortening = torch.where(norm > radius, radius * safe_reciprocal(norm), 1.0)
        stretch = (shortening * sinhc(radius.square())).unsqueeze(1)
        product = feature_product(x, self.weight[:, 1:]) * stretch + self.bias
        return self._rescaled(product + torch.cosh(radius).unsqueeze(1) * self.weight[:, 0])

    def extra_repr(self) -> str:
        out_dim, in_dim = (size - 1 for size in self.weight.shape)
        return f"{in_dim}, {out_dim}, min_time={self.min_time:g}"

    def _rescaled(self, product: Tensor) -> Tensor:
        logit, direction = product[:, :1], product[:, 1:]
        largest = math.log(math.cosh(layer_radius(product.dtype)) - self.min_time)
        time = self.min_time + self.log_scale.clamp_max(largest).exp() * torch.sigmoid(logit)
        space = direction * ((time.square() - 1).sqrt() * safe_reciprocal(safe_norm(direction)))
        return lorentz.project(torch.cat([time, space], dim=1))


def _row_norms(x: Any, dtype: torch.dtype) -> Tensor:
    if not is_sparse(x):
        return safe_norm(x.to(dtype)).squeeze(1)
    crow, col, values = prepare_features(x).to(dtype).matrix[:3]
    squares: Tensor = csr_matmul(crow, col, values.square(), values.new_ones(x.shape[1]))
    return squares.sqrt()


class HyboNet(GraphEncoder):
    """Fully hyperbolic graph network (Chen et al. 2022): Lorentz linear layers with boosts, Lorentz centroids of
    neighbors.

    The centroid ``Σ w_j x_j / ‖Σ w_j x_j‖`` is the Einstein midpoint of ``H2HGCN``. The activation comes before
    the linear map of every layer but the first.

    Args:
        activation: Any activation that PyG knows by name, or None.
        neighbor_weights: ``"uniform"`` or ``"symmetric"``, see ``H2HConv``.
        scale, min_time: Of the linear layers, see ``BoostedLinear``.
        options: See ``GraphEncoder``. ``dropout`` is that of the coordinates that enter a layer.
    """

    name = "hybonet"
    summary = "linear maps with boosts and centroids, all on the hyperboloid"
    paper = "Chen et al. 2022, Fully Hyperbolic Neural Networks"
    space: Space = "lorentz"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        activation: str | None = "relu",
        neighbor_weights: str = "uniform",
        scale: float = 10.0,
        min_time: float = 1.1,
        **options: Any,
    ) -> None:
        super().__init__(in_features, dim, num_layers, **options)
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        shared = {"dropout": self.dropout, "scale": scale, "min_time": min_time, **self.factory}
        (first, *others), activate = self.widths, activation_of(activation)
        self.linears = nn.ModuleList(
            [BoostedLinear(*first, **shared), *(BoostedLinear(*width, activate, **shared) for width in others)]
        )

    def encode(self, hidden: Any, adjacency: Adjacency) -> Tensor:
        for k, (linear, graph) in enumerate(zip(self.linears, adjacency.layer_graphs(self.num_layers), strict=True)):
            points = linear(first_rows(hidden, graph)) if k else linear.of_features(hidden)  # type: ignore[operator]
            hidden = midpoint(points, graph.matrix(self.neighbor_weights, points.dtype))
        return lorentz.project(hidden)
