"""Hyperbolic graph convolutional neural networks."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.resolver import activation_resolver

from h2hgcn.layers.adjacency import first_rows
from h2hgcn.layers.arguments import check_features, check_manifold, check_shares, check_sizes
from h2hgcn.layers.feature_linear import feature_dropout as dropped_features
from h2hgcn.layers.hgcn_conv import HGCNConv
from h2hgcn.layers.node_vectors import vector_stem
from h2hgcn.layers.remembered import adjacency_of
from h2hgcn.layers.spaces import Space
from h2hgcn.layers.tangent import points_of, unit_length
from h2hgcn.models.pretrained import Pretrained


class HGCN(Pretrained):
    """Hyperbolic graph convolutional network (Chami et al. 2019), in tangent spaces, with a curvature for each layer.

    Layer ``l`` transforms, adds a bias and aggregates at curvature ``-c_{l-1}``; its activation leads to ``-c_l``.
    All geometry is at curvature -1: tangent vectors are scaled by ``√c`` on the way in, and by its inverse on the way
    out.

    Args:
        in_features: Number of features of a node.
        dim: Dimension of the manifold.
        num_layers: Number of convolutions.
        manifold: ``"lorentz"`` or ``"ball"``. The network is the same in both but for the coordinates of vectors, which
            are half as long in the ball.
        activation: Any activation that PyG knows by name, or None; taken in the tangent space at the origin.
        bias: Whether points are moved by a bias, by parallel transport.
        neighbor_weights: ``"uniform"``, as in the authors' code, or ``"symmetric"``.
        attention: Whether neighbours are weighed by attention, see ``TangentAttention``.
        local_aggregation: Whether neighbours are averaged in the tangent space of the receiving point, as the
            paper writes it, instead of the one at the origin, as the authors' code does by default.
        feature_dropout, dropout, weight_dropout: Of the input features, of the vectors between layers, and, as in the
            authors' code, of the weights.
        curvature, learn_curvature: ``c > 0`` that all layers start with, and whether they learn their own.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learnt vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
    """

    name = "hgcn"
    summary = "graph convolutions in tangent spaces, with a learnt curvature for each layer"
    paper = "Chami et al. 2019, Hyperbolic Graph Convolutional Neural Networks"
    space: Space = "lorentz"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        manifold: str = "lorentz",
        activation: str | None = "relu",
        bias: bool = True,
        neighbor_weights: str = "uniform",
        attention: bool = False,
        local_aggregation: bool = False,
        feature_dropout: float = 0.0,
        dropout: float = 0.0,
        weight_dropout: float = 0.0,
        curvature: float = 1.0,
        learn_curvature: bool = True,
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = {
            "in_features": in_features, "dim": dim, "num_layers": num_layers, "manifold": manifold,
            "activation": activation, "bias": bias, "neighbor_weights": neighbor_weights, "attention": attention,
            "local_aggregation": local_aggregation, "feature_dropout": feature_dropout, "dropout": dropout,
            "weight_dropout": weight_dropout, "curvature": curvature, "learn_curvature": learn_curvature,
            "node_vectors": node_vectors, "vector_dropout": vector_dropout, "use_features": use_features,
            "num_nodes": num_nodes if node_vectors else None,
        }  # fmt: skip
        check_sizes(in_features=in_features, dim=dim, num_layers=num_layers)
        check_shares(feature_dropout=feature_dropout, dropout=dropout, weight_dropout=weight_dropout)
        if not (math.isfinite(curvature) and curvature > 0):
            raise ValueError(f"curvature={curvature}: give c > 0 for a space of curvature -c")
        self.in_features = in_features
        self.dim = dim
        self.space = check_manifold(manifold)
        self.feature_dropout = 0.0 if node_vectors else feature_dropout
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.dropout = dropout
        self.activation = activation_resolver(activation) if activation else nn.Identity()
        self.convs = nn.ModuleList(
            HGCNConv(
                width, dim, bias=bias, neighbor_weights=neighbor_weights, attention=attention,
                local_aggregation=local_aggregation, weight_dropout=weight_dropout, device=device, dtype=dtype,
            )
            for width in [dim if node_vectors else in_features, *[dim] * (num_layers - 1)]
        )  # fmt: skip
        start = torch.full((num_layers + 1,), math.log(curvature), device=device, dtype=dtype)
        self.log_curvatures = nn.Parameter(start, requires_grad=learn_curvature)

    def reset_parameters(self) -> None:
        """Draws all weights anew, and brings the curvatures back to where they start."""
        if self.stem is not None:
            self.stem.reset_parameters()
        for conv in self.convs:
            conv.reset_parameters()  # type: ignore[operator]
        nn.init.constant_(self.log_curvatures, math.log(self.config["curvature"]))

    @property
    def curvatures(self) -> Tensor:
        """``c`` of the spaces of curvature ``-c`` before, between and after the layers."""
        return self.log_curvatures.exp()

    @property
    def distance_scale(self) -> Tensor:
        """The factor from distances between the points, which lie at curvature -1, to those of the last space."""
        return (-0.5 * self.log_curvatures[-1]).exp()

    def forward(
        self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Points of nodes with features ``x (n, in_features)``, dense or sparse: ``(n, dim + 1)`` on the hyperboloid,
        ``(n, dim)`` in the ball.
        """
        check_features(x, self.in_features)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        x = x if self.stem is None else self.stem(x, adjacency, nodes)
        *scales, last_scale = (unit_length(self.space) * (0.5 * self.log_curvatures).exp()).unbind()
        vectors: Any = dropped_features(x, self.feature_dropout, self.training)
        graphs = adjacency.steps(len(self.convs))
        for k, (conv, graph, scale) in enumerate(zip(self.convs, graphs, scales, strict=True)):
            if k:
                vectors = F.dropout(first_rows(vectors, graph), self.dropout, self.training)
            vectors = self.activation(conv(vectors, graph, scale))
        return points_of(vectors * last_scale, self.space)

    def extra_repr(self) -> str:
        curvatures = ", ".join(f"{-c:.3g}" for c in self.curvatures.tolist())
        return f"{self.in_features}, {self.dim}, manifold={self.space!r}, curvatures=({curvatures})"
