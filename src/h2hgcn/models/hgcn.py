"""Hyperbolic graph convolutional neural networks."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.utils import softmax

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.graph.adjacency import Adjacency, check_neighbor_weights, first_rows
from h2hgcn.kernels.csr import SparseMatrix, sparse_matmul
from h2hgcn.layers.inputs import feature_product
from h2hgcn.layers.spaces import (
    HYPERBOLIC,
    Space,
    check_choice,
    check_shares,
    log_curvature,
    points_of,
    unit_length,
)
from h2hgcn.models.encoder import GraphEncoder
from h2hgcn.models.mlp import activation_of


def aggregate_locally(tangent: Tensor, matrix: SparseMatrix) -> Tensor:
    """``exp_{x_i}(Σ_j w_ij log_{x_i}(x_j))`` (Chami et al. 2019, section 4.3).

    Points are held as tangent vectors at the origin, and a vector is taken for each edge. Vectors longer than
    ``layer_radius`` are shortened to it.
    """
    points = lorentz.exp_origin(tangent, layer_radius(tangent.dtype))
    receivers = torch.repeat_interleave(matrix.crow.diff(), output_size=len(matrix.col))
    towards = lorentz.log(points[receivers], points[matrix.col.long()]) * matrix.values.unsqueeze(1)
    mean = torch.zeros_like(points).index_add(0, receivers, towards)
    return lorentz.log_origin(lorentz.exp(points, mean))


class TangentAttention(nn.Module):
    """``w_ij = softmax_j(MLP(log_o(x_i) ‖ log_o(x_j)))`` (Chami et al. 2019, section 4.3), with one hidden layer.

    The hidden layer is a sum of a part of the receiver and one of the sender, each worked out once for a node. An edge
    of weight ``w`` counts as ``w`` edges.
    """

    def __init__(self, dim: int, **factory: Any) -> None:
        super().__init__()
        self.receiver = nn.Linear(dim, dim, **factory)
        self.sender = nn.Linear(dim, dim, bias=False, **factory)
        self.score = nn.Linear(dim, 1, bias=False, **factory)

    def reset_parameters(self) -> None:
        """Draws all weights again."""
        for linear in (self.receiver, self.sender, self.score):
            linear.reset_parameters()

    def forward(self, tangent: Tensor, adjacency: Adjacency) -> SparseMatrix:
        """The weights of all neighbors, which add up to 1 for each receiver."""
        (senders, receivers), weights = adjacency.edges()
        hidden = F.leaky_relu(self.receiver(tangent)[receivers] + self.sender(tangent)[senders])
        scores = self.score(hidden).squeeze(1).to(tangent.dtype) + weights.log().to(tangent.dtype)
        return adjacency.with_values(softmax(scores, receivers, num_nodes=adjacency.num_nodes))


class HGCNConv(nn.Module):
    """Transformation, bias and aggregation of points seen from the origin (Chami et al. 2019, sections 4.2 and 4.3).

    The exponential and logarithmic maps at the origin that stand between two linear steps cancel each other, so they
    are taken only around the bias and for local aggregation.

    Args:
        in_dim, out_dim: Dimensions of the manifolds.
        neighbor_weights: ``"uniform"``, as in the authors' code, or ``"symmetric"``; attention takes their place.
        bias, attention, local_aggregation, weight_dropout: See ``HGCN``.
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        *,
        bias: bool = True,
        neighbor_weights: str = "uniform",
        attention: bool = False,
        local_aggregation: bool = False,
        weight_dropout: float = 0.0,
        **factory: Any,
    ) -> None:
        super().__init__()
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.local_aggregation = local_aggregation
        self.weight_dropout = weight_dropout
        self.weight = nn.Parameter(torch.empty(out_dim, in_dim, **factory))
        self.bias = nn.Parameter(torch.empty(out_dim, **factory)) if bias else None
        self.attention = TangentAttention(out_dim, **factory) if attention else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights again. A bias of 0 would leave the curvature of the layer without a gradient."""
        nn.init.xavier_uniform_(self.weight, gain=math.sqrt(2))
        if self.bias is not None:
            bound = self.weight.shape[1] ** -0.5
            nn.init.uniform_(self.bias, -bound, bound)
        if self.attention is not None:
            self.attention.reset_parameters()

    def forward(self, vectors: Any, adjacency: Adjacency, scale: Tensor) -> Tensor:
        """From tangent vectors ``(n, in_dim)`` of a space to ``(n, out_dim)`` of the same space.

        ``scale`` is the factor from the space's vectors to lengths at curvature -1. Vectors of the first layer, which
        are features, may be sparse.
        """
        weight = F.dropout(self.weight, self.weight_dropout, self.training)
        tangent = feature_product(vectors, weight) * scale
        if self.bias is not None:
            tangent = lorentz.translated(tangent, self.bias * scale)
        if self.local_aggregation:
            return aggregate_locally(tangent, self._neighbors(tangent / scale, adjacency)) / scale
        vectors = tangent / scale
        return sparse_matmul(self._neighbors(vectors, adjacency), vectors)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, neighbor_weights={self.neighbor_weights!r}"

    def _neighbors(self, vectors: Tensor, adjacency: Adjacency) -> SparseMatrix:
        if self.attention is not None:
            matrix: SparseMatrix = self.attention(vectors, adjacency)
            return matrix
        return adjacency.matrix(self.neighbor_weights, vectors.dtype)


class HGCN(GraphEncoder):
    """Hyperbolic graph convolutional network (Chami et al. 2019), in tangent spaces, with a curvature for each layer.

    Layer ``l`` transforms, adds a bias and aggregates at curvature ``-c_{l-1}``; its activation leads to ``-c_l``.
    All geometry is at curvature -1: tangent vectors are scaled by ``√c`` on the way in, and by its inverse on the way
    out.

    Args:
        manifold: ``"lorentz"`` or ``"ball"``. The network is the same in both but for the coordinates of vectors, which
            are half as long in the ball.
        activation: Any activation that PyG knows by name, or None; taken in the tangent space at the origin.
        bias: Whether points are moved by a bias, by parallel transport.
        neighbor_weights: ``"uniform"``, as in the authors' code, or ``"symmetric"``.
        attention: Whether neighbors are weighed by attention, see ``TangentAttention``.
        local_aggregation: Whether neighbors are averaged in the tangent space of the receiving point, as the
            paper writes it, instead of the one at the origin, as the authors' code does by default.
        weight_dropout: Dropout of the weights, as in the authors' code.
        curvature, learn_curvature: ``c > 0`` that all layers start with, and whether they learn their own.
        options: See ``GraphEncoder``.
    """

    name = "hgcn"
    summary = "graph convolutions in tangent spaces, with a learned curvature for each layer"
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
        weight_dropout: float = 0.0,
        curvature: float = 1.0,
        learn_curvature: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(in_features, dim, num_layers, **options)
        check_shares(weight_dropout=weight_dropout)
        self.space = check_choice("manifold", manifold, HYPERBOLIC)
        self.activation = activation_of(activation)
        self.initial = log_curvature(curvature)
        self.convs = nn.ModuleList(
            HGCNConv(
                *width,
                bias=bias,
                neighbor_weights=neighbor_weights,
                attention=attention,
                local_aggregation=local_aggregation,
                weight_dropout=weight_dropout,
                **self.factory,
            )
            for width in self.widths
        )
        start = torch.full((num_layers + 1,), self.initial, **self.factory)
        self.log_curvatures = nn.Parameter(start, requires_grad=learn_curvature)

    def reset_parameters(self) -> None:
        """Draws all weights again, and brings the curvatures back to where they start."""
        super().reset_parameters()
        nn.init.constant_(self.log_curvatures, self.initial)

    @property
    def curvatures(self) -> Tensor:
        """``c`` of the spaces of curvature ``-c`` before, between and after the layers."""
        return self.log_curvatures.exp()

    @property
    def distance_scale(self) -> Tensor:
        """The factor from distances between the points, which lie at curvature -1, to those of the last space."""
        return (-0.5 * self.log_curvatures[-1]).exp()

    def encode(self, hidden: Any, adjacency: Adjacency) -> Tensor:
        *scales, last_scale = (unit_length(self.space) * (0.5 * self.log_curvatures).exp()).unbind()
        graphs = adjacency.layer_graphs(self.num_layers)
        for k, (conv, graph, scale) in enumerate(zip(self.convs, graphs, scales, strict=True)):
            if k:
                hidden = F.dropout(first_rows(hidden, graph), self.dropout, self.training)
            hidden = self.activation(conv(hidden, graph, scale))
        return points_of(hidden * last_scale, self.space)

    def extra_repr(self) -> str:
        curvatures = ", ".join(f"{-c:.3g}" for c in self.curvatures.tolist())
        return f"{super().extra_repr()}, curvatures=({curvatures})"
