"""Hyperbolic graph neural networks, and their Euclidean twin."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.graph.adjacency import Adjacency, first_rows
from h2hgcn.kernels.convolution import exp_origin
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers.h2h_conv import resolve_activation
from h2hgcn.layers.inputs import FeatureLinear
from h2hgcn.layers.spaces import HYPERBOLIC, Space, check_choice, in_coordinates, unit_length
from h2hgcn.models.encoder import GraphEncoder
from h2hgcn.models.mlp import activation_of


class _Linear(FeatureLinear):
    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight)


class HGNN(GraphEncoder):
    """Hyperbolic graph neural network (Liu et al. 2019): ``h_i ← σ(exp_o(Σ_j A_ij W log_o(h_j)))``.

    ``A`` is normalized as in a graph convolution. The activation acts on coordinates of the Poincaré ball, to and from
    which points of the hyperboloid are taken. Vectors longer than ``layer_radius`` are shortened to it.

    Args:
        manifold: ``"lorentz"`` or ``"ball"``. The network is the same in both but for the coordinates of vectors, which
            are half as long in the ball.
        activation, negative_slope: One that keeps the Poincaré ball, see ``H2HConv``.
        options: See ``GraphEncoder``.
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
        **options: Any,
    ) -> None:
        super().__init__(in_features, dim, num_layers, **options)
        self.space = check_choice("manifold", manifold, HYPERBOLIC)
        self.activation = resolve_activation(activation, negative_slope)
        self.linears = nn.ModuleList(_Linear(*width, bias=False, **self.factory) for width in self.widths)
        self.reset_parameters()

    def encode(self, hidden: Any, adjacency: Adjacency) -> Tensor:
        points, unit = hidden, unit_length(self.space)
        for k, (linear, graph) in enumerate(zip(self.linears, adjacency.layer_graphs(self.num_layers), strict=True)):
            if k:
                hidden = F.dropout(lorentz.log_origin(first_rows(points, graph)), self.dropout, self.training)
            messages = linear(hidden)
            tangent = sparse_matmul(graph.matrix("gcn", messages.dtype), messages)
            # after the first layer, the unit of the vectors goes in and out of a linear map
            points = self.activation(exp_origin(tangent if k else tangent * unit, layer_radius(tangent.dtype)))
        return in_coordinates(points, self.space)


class EuclideanGNN(GraphEncoder):
    """Graph neural network of the shape of ``HGNN`` (Liu et al. 2019, the Euclidean model): ``h_i ← σ(Σ_j A_ij W
    h_j)``.

    Args:
        activation: Any activation that PyG knows by name, or None.
        options: See ``GraphEncoder``.
    """

    name = "euclidean-gnn"
    summary = "the Euclidean twin of hgnn, of the same shape"
    paper = "Liu et al. 2019, Hyperbolic Graph Neural Networks (the Euclidean model)"
    space: Space = "euclidean"

    def __init__(
        self, in_features: int, dim: int, num_layers: int = 2, *, activation: str | None = "leaky_relu", **options: Any
    ) -> None:
        super().__init__(in_features, dim, num_layers, **options)
        self.activation = activation_of(activation)
        self.linears = nn.ModuleList(_Linear(*width, bias=False, **self.factory) for width in self.widths)
        self.reset_parameters()

    def encode(self, hidden: Any, adjacency: Adjacency) -> Tensor:
        for k, (linear, graph) in enumerate(zip(self.linears, adjacency.layer_graphs(self.num_layers), strict=True)):
            if k:
                hidden = F.dropout(first_rows(hidden, graph), self.dropout, self.training)
            messages = linear(hidden)
            hidden = self.activation(sparse_matmul(graph.matrix("gcn", messages.dtype), messages))
        vectors: Tensor = hidden
        return vectors
