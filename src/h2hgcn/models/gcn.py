"""Euclidean graph neural networks: GCN, GAT, GraphSAGE and SGC."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv
from torch_geometric.nn.inits import glorot, zeros

from h2hgcn.graph.adjacency import Adjacency, NeighborWeights, check_neighbor_weights, first_rows
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers.inputs import FeatureLinear
from h2hgcn.layers.spaces import Space, check_sizes
from h2hgcn.models.encoder import GraphEncoder
from h2hgcn.models.mlp import Stack


class GCNLayer(nn.Module):
    """``S X W + b`` (Kipf and Welling 2017, Eq. 2), PyG's ``GCNConv``: the sum over neighbors and the node itself.

    ``S`` is ``D^-1/2 (A + I) D^-1/2`` if ``neighbor_weights="symmetric"``, and the mean ``D^-1 (A + I)``, which does
    not scale vectors with degrees, if ``"uniform"``.
    """

    def __init__(
        self, in_features: int, out_features: int, neighbor_weights: str = "symmetric", **factory: Any
    ) -> None:
        super().__init__()
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.linear = FeatureLinear(in_features, out_features, bias=False, **factory)
        self.bias = nn.Parameter(torch.empty(out_features, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.linear.weight)
        zeros(self.bias)

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        return self.product(self.linear(first_rows(x, adjacency)), adjacency) + self.bias

    def product(self, hidden: Tensor, adjacency: Adjacency) -> Tensor:
        kind = "gcn" if self.neighbor_weights == "symmetric" else self.neighbor_weights
        return sparse_matmul(adjacency.matrix(kind, hidden.dtype), hidden)


class SGCLayer(GCNLayer):
    """``S^K X W + b`` (Wu et al. 2019, Eq. 8), PyG's ``SGConv``. ``S`` acts on ``X W``, which is narrower than wide
    features and dense in any case.
    """

    def __init__(self, in_features: int, out_features: int, hops: int, *arguments: Any, **factory: Any) -> None:
        super().__init__(in_features, out_features, *arguments, **factory)
        self.hops = hops

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()
        zeros(self.bias)

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        hidden = self.linear(x)
        for graph in adjacency.layer_graphs(self.hops):
            hidden = self.product(first_rows(hidden, graph), graph)
        return hidden + self.bias


class SAGELayer(nn.Module):
    """``W_1 x_i + W_2 mean(x_j) + b``, the mean over neighbors (Hamilton et al. 2017, Algorithm 1), PyG's
    ``SAGEConv``; the mean is weighted if edges are.
    """

    def __init__(self, in_features: int, out_features: int, **factory: Any) -> None:
        super().__init__()
        self.linear = FeatureLinear(in_features, 2 * out_features, bias=False, **factory)
        self.bias = nn.Parameter(torch.empty(out_features, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()
        zeros(self.bias)

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        own, sent = self.linear(first_rows(x, adjacency)).chunk(2, dim=1)
        return own + sparse_matmul(adjacency.matrix("mean", sent.dtype), sent) + self.bias


class GATLayer(nn.Module):
    """Attention over neighbors and the node itself (Veličković et al. 2018, Eq. 3-6): PyG's ``GATConv``, its linear
    map apart, so that features may be sparse. Edge weights do not count.
    """

    def __init__(
        self, in_features: int, out_features: int, heads: int, concat: bool, dropout: float, **factory: Any
    ) -> None:
        super().__init__()
        width = heads * out_features
        self.linear = FeatureLinear(in_features, width, bias=False, **factory)
        self.attention = GATConv(width, out_features, heads=heads, concat=concat, dropout=dropout, add_self_loops=False)
        self.attention.lin = _Identity()
        self.attention.to(**factory)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.linear.weight)
        self.attention.reset_parameters()

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        points: Tensor = self.attention(self.linear(first_rows(x, adjacency)), adjacency.edges()[0])
        return points


class _Identity(nn.Identity):
    def reset_parameters(self) -> None:
        """There are none; PyG asks for it."""


class ConvolutionStack(GraphEncoder):
    """A stack of convolutions with activations between them: features and a graph to Euclidean points."""

    space: Space = "euclidean"
    stack: Stack

    def encode(self, hidden: Any, adjacency: Adjacency) -> Tensor:
        points: Tensor = self.stack(hidden, adjacency.layer_graphs(self.num_layers))
        return points


class GCN(ConvolutionStack):
    """Graph convolutional network (Kipf and Welling 2017).

    Args:
        neighbor_weights: ``"symmetric"`` as in the paper, or ``"uniform"``, a mean, see ``GCNLayer``.
        activation: Between layers, any that PyG knows by name, or None.
        options: See ``GraphEncoder``.
    """

    name = "gcn"
    summary = "graph convolutions"
    paper = "Kipf and Welling 2017, Semi-Supervised Classification with Graph Convolutional Networks"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        neighbor_weights: NeighborWeights = "symmetric",
        activation: str | None = "relu",
        **options: Any,
    ) -> None:
        super().__init__(in_features, dim, num_layers, **options)
        layers = [GCNLayer(*width, neighbor_weights, **self.factory) for width in self.widths]
        self.stack = Stack(layers, activation, self.dropout)


class SAGE(ConvolutionStack):
    """GraphSAGE with the mean of all neighbors (Hamilton et al. 2017), without the paper's sampling.

    Args:
        activation: Between layers, any that PyG knows by name, or None.
        options: See ``GraphEncoder``.
    """

    name = "sage"
    summary = "a node and the mean of its neighbors, mapped apart"
    paper = "Hamilton et al. 2017, Inductive Representation Learning on Large Graphs"

    def __init__(
        self, in_features: int, dim: int, num_layers: int = 2, *, activation: str | None = "relu", **options: Any
    ) -> None:
        super().__init__(in_features, dim, num_layers, **options)
        layers = [SAGELayer(*width, **self.factory) for width in self.widths]
        self.stack = Stack(layers, activation, self.dropout)


class GAT(ConvolutionStack):
    """Graph attention network (Veličković et al. 2018).

    Args:
        heads: Of the hidden layers, which concatenate heads of width ``dim / heads``.
        out_heads: Of the last layer, which averages heads of width ``dim``.
        attention_dropout: Dropout of the attention to neighbors.
        activation: Between layers, any that PyG knows by name, or None.
        options: See ``GraphEncoder``.
    """

    name = "gat"
    summary = "attention over neighbors"
    paper = "Veličković et al. 2018, Graph Attention Networks"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        heads: int = 1,
        out_heads: int = 1,
        attention_dropout: float = 0.0,
        activation: str | None = "elu",
        **options: Any,
    ) -> None:
        check_sizes(heads=heads, out_heads=out_heads)
        if num_layers > 1 and dim % heads:
            raise ValueError(f"dim={dim} cannot be shared out among heads={heads}; choose a multiple")
        super().__init__(in_features, dim, num_layers, **options)
        *hidden, (last, _) = self.widths
        layers = [GATLayer(width, dim // heads, heads, True, attention_dropout, **self.factory) for width, _ in hidden]
        layers.append(GATLayer(last, dim, out_heads, False, attention_dropout, **self.factory))
        self.stack = Stack(layers, activation, self.dropout)


class SGC(ConvolutionStack):
    """Simplified graph convolution (Wu et al. 2019): one linear map of features averaged over ``num_layers`` hops.

    Args:
        dim: Dimension of the space, and width of the one layer.
        num_layers: Number of hops, ``K`` in the paper.
        neighbor_weights: ``"symmetric"`` as in the paper, or ``"uniform"``, a mean, see ``GCNLayer``.
        options: See ``GraphEncoder``; there is no dropout between the hops.
    """

    name = "sgc"
    summary = "one linear map of features averaged over several hops"
    paper = "Wu et al. 2019, Simplifying Graph Convolutional Networks"
    without = ("dropout",)

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        neighbor_weights: NeighborWeights = "symmetric",
        **options: Any,
    ) -> None:
        super().__init__(in_features, dim, num_layers, **options)
        self.stack = Stack([SGCLayer(self.widths[0][0], dim, num_layers, neighbor_weights, **self.factory)], None)

    def encode(self, hidden: Any, adjacency: Adjacency) -> Tensor:
        points: Tensor = self.stack(hidden, adjacency)  # all hops are in one layer
        return points
