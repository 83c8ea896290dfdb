"""Hyperbolic graph neural networks, and their Euclidean twin."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.resolver import activation_resolver

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.graph.adjacency import adjacency_of, first_rows
from h2hgcn.graph.features import check_features
from h2hgcn.kernels.convolution import exp_origin
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers.h2h_conv import resolve_activation
from h2hgcn.layers.inputs import FeatureLinear, vector_stem
from h2hgcn.layers.inputs import feature_dropout as dropped_features
from h2hgcn.layers.spaces import (
    Space,
    check_manifold,
    check_shares,
    check_sizes,
    in_coordinates,
    unit_length,
)
from h2hgcn.models.encoder import Encoder


class HGNN(Encoder):
    """Hyperbolic graph neural network (Liu et al. 2019): ``h_i ← σ(exp_o(Σ_j A_ij W log_o(h_j)))``.

    ``A`` is normalized as in a graph convolution. The activation acts on coordinates of the Poincaré ball, to and from
    which points of the hyperboloid are taken.

    Args:
        in_features: Number of features of a node.
        dim: Dimension of the manifold.
        num_layers: Number of layers.
        manifold: ``"lorentz"`` or ``"ball"``. The network is the same in both but for the coordinates of vectors, which
            are half as long in the ball.
        activation, negative_slope: One that keeps the Poincaré ball, see ``H2HConv``.
        feature_dropout, dropout: Of the input features, and of the vectors between layers.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learned vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
    """

    name = "hgnn"
    summary = "graph convolutions in the tangent space at the origin, activations in the Poincaré ball"
    paper = "Liu et al. 2019, Hyperbolic Graph Neural Networks"
    space: Space = "lorentz"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        manifold: str = "lorentz",
        activation: str | None = "leaky_relu",
        negative_slope: float = 0.01,
        feature_dropout: float = 0.0,
        dropout: float = 0.0,
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
        self.space = check_manifold(manifold)
        self.activation = resolve_activation(activation, negative_slope)
        self.feature_dropout = 0.0 if node_vectors else feature_dropout
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.dropout = dropout
        self.linears = nn.ModuleList(
            FeatureLinear(width, dim, bias=False, device=device, dtype=dtype)
            for width in [dim if node_vectors else in_features, *[dim] * (num_layers - 1)]
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights again."""
        if self.stem is not None:
            self.stem.reset_parameters()
        for linear in self.linears:
            nn.init.xavier_uniform_(linear.weight)  # type: ignore[arg-type]

    def forward(
        self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Points of nodes with features ``x (n, in_features)``, dense or sparse: ``(n, dim + 1)`` on the hyperboloid,
        ``(n, dim)`` in the ball. Vectors longer than ``layer_radius`` are shortened to it.
        """
        check_features(x, self.in_features)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        x = x if self.stem is None else self.stem(x, adjacency, nodes)
        unit, (first, *others) = unit_length(self.space), self.linears
        messages = first(dropped_features(x, self.feature_dropout, self.training))
        start, *graphs = adjacency.layer_graphs(len(self.linears))
        points = self._activated(sparse_matmul(start.matrix("gcn", messages.dtype), messages) * unit)
        for linear, graph in zip(others, graphs, strict=True):
            vectors = F.dropout(lorentz.log_origin(first_rows(points, graph)), self.dropout, self.training)
            # the unit of the vectors goes in and out of a linear map
            points = self._activated(sparse_matmul(graph.matrix("gcn", messages.dtype), linear(vectors)))
        return in_coordinates(points, self.space)

    def _activated(self, tangent: Tensor) -> Tensor:
        return self.activation(exp_origin(tangent, layer_radius(tangent.dtype)))

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.dim}, manifold={self.space!r}, activation={self.activation.name!r}"


class EuclideanGNN(Encoder):
    """Graph neural network of the shape of ``HGNN`` (Liu et al. 2019, the Euclidean model): ``h_i ← σ(Σ_j A_ij W
    h_j)``.

    Args:
        in_features: Number of features of a node.
        dim: Dimension of the space.
        num_layers: Number of layers.
        activation: Any activation that PyG knows by name, or None.
        feature_dropout, dropout: Of the input features, and of the vectors between layers.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learned vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
    """

    name = "euclidean-gnn"
    summary = "the Euclidean twin of hgnn, of the same shape"
    paper = "Liu et al. 2019, Hyperbolic Graph Neural Networks (the Euclidean model)"
    space: Space = "euclidean"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        activation: str | None = "leaky_relu",
        feature_dropout: float = 0.0,
        dropout: float = 0.0,
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
        self.activation = activation_resolver(activation) if activation else nn.Identity()
        self.feature_dropout = 0.0 if node_vectors else feature_dropout
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.dropout = dropout
        self.linears = nn.ModuleList(
            FeatureLinear(width, dim, bias=False, device=device, dtype=dtype)
            for width in [dim if node_vectors else in_features, *[dim] * (num_layers - 1)]
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights again."""
        if self.stem is not None:
            self.stem.reset_parameters()
        for linear in self.linears:
            nn.init.xavier_uniform_(linear.weight)  # type: ignore[arg-type]

    def forward(
        self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Points ``(n, dim)`` of nodes with features ``x (n, in_features)``, dense or sparse."""
        check_features(x, self.in_features)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        x = x if self.stem is None else self.stem(x, adjacency, nodes)
        hidden: Any = dropped_features(x, self.feature_dropout, self.training)
        for k, (linear, graph) in enumerate(zip(self.linears, adjacency.layer_graphs(len(self.linears)), strict=True)):
            if k:
                hidden = F.dropout(first_rows(hidden, graph), self.dropout, self.training)
            messages = linear(hidden)
            hidden = self.activation(sparse_matmul(graph.matrix("gcn", messages.dtype), messages))
        return hidden

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.dim}"
