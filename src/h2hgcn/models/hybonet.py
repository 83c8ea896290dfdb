"""Fully hyperbolic neural networks."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.resolver import activation_resolver

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius, safe_norm, safe_reciprocal, sinhc
from h2hgcn.graph.adjacency import adjacency_of, check_neighbor_weights, first_rows
from h2hgcn.graph.features import check_features, is_sparse, prepare_features
from h2hgcn.kernels.csr import csr_matmul
from h2hgcn.layers.h2h_conv import midpoint
from h2hgcn.layers.inputs import feature_dropout as dropped_features
from h2hgcn.layers.inputs import feature_product, vector_stem
from h2hgcn.layers.spaces import Space, check_shares, check_sizes
from h2hgcn.models.encoder import Encoder


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

    def _rescaled(self, product: Tensor) -> Tensor:
        logit, direction = product[:, :1], product[:, 1:]
        largest = math.log(math.cosh(layer_radius(product.dtype)) - self.min_time)
        time = self.min_time + self.log_scale.clamp_max(largest).exp() * torch.sigmoid(logit)
        space = direction * ((time.square() - 1).sqrt() * safe_reciprocal(safe_norm(direction)))
        return lorentz.project(torch.cat([time, space], dim=1))

    def extra_repr(self) -> str:
        out_width, in_width = self.weight.shape
        return f"{in_width - 1}, {out_width - 1}, dropout={self.dropout}, min_time={self.min_time}"


def _row_norms(x: Any, dtype: torch.dtype) -> Tensor:
    if not is_sparse(x):
        return safe_norm(x.to(dtype)).squeeze(1)
    crow, col, values = prepare_features(x).to(dtype).matrix[:3]
    squares: Tensor = csr_matmul(crow, col, values.square(), values.new_ones(x.shape[1]))
    return squares.sqrt()


class HyboNet(Encoder):
    """Fully hyperbolic graph network (Chen et al. 2022): Lorentz linear layers with boosts, Lorentz centroids of
    neighbors.

    The centroid ``Σ w_j x_j / ‖Σ w_j x_j‖`` is the Einstein midpoint of ``H2HGCN``. The activation comes before
    the linear map of every layer but the first.

    Args:
        in_features: Number of features of a node.
        dim: Dimension of the manifold; the points have ``dim + 1`` coordinates.
        num_layers: Number of layers.
        activation: Any activation that PyG knows by name, or None.
        neighbor_weights: ``"uniform"`` or ``"symmetric"``, see ``H2HConv``.
        feature_dropout, dropout: Of the input features, and of the coordinates that enter a layer.
        scale, min_time: Of the linear layers, see ``BoostedLinear``.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learned vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
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
        feature_dropout: float = 0.0,
        dropout: float = 0.0,
        scale: float = 10.0,
        min_time: float = 1.1,
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(in_features=in_features, dim=dim, num_layers=num_layers)
        check_shares(feature_dropout=feature_dropout, dropout=dropout)
        self.in_features = in_features
        self.dim = dim
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.feature_dropout = 0.0 if node_vectors else feature_dropout
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features,
            device=device, dtype=dtype,
        )  # fmt: skip
        activate = activation_resolver(activation) if activation else None
        shared: dict[str, Any] = {"scale": scale, "min_time": min_time, "device": device, "dtype": dtype}
        self.linears = nn.ModuleList(
            BoostedLinear(
                dim if k or node_vectors else in_features, dim, activate if k else None, dropout=dropout, **shared
            )
            for k in range(num_layers)
        )

    def reset_parameters(self) -> None:
        """Draws all weights again."""
        if self.stem is not None:
            self.stem.reset_parameters()
        for linear in self.linears:
            linear.reset_parameters()  # type: ignore[operator]

    def forward(
        self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Points ``(n, dim + 1)`` of nodes with features ``x (n, in_features)``, dense or sparse."""
        check_features(x, self.in_features)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        x = x if self.stem is None else self.stem(x, adjacency, nodes)
        first, *others = self.linears
        points: Tensor = first.of_features(dropped_features(x, self.feature_dropout, self.training))  # type: ignore[operator]
        start, *graphs = adjacency.layer_graphs(len(self.linears))
        points = midpoint(points, start.matrix(self.neighbor_weights, points.dtype))
        for linear, graph in zip(others, graphs, strict=True):
            points = midpoint(linear(first_rows(points, graph)), graph.matrix(self.neighbor_weights, points.dtype))
        return lorentz.project(points)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.dim}, neighbor_weights={self.neighbor_weights!r}"
