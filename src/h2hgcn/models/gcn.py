"""Euclidean graph neural networks: GCN, GAT, GraphSAGE and SGC."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv
from torch_geometric.nn.inits import glorot, zeros

from h2hgcn.graph.adjacency import Adjacency, NeighborWeights, adjacency_of, check_neighbor_weights, first_rows
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers.inputs import FeatureLinear, VectorStem, vector_stem
from h2hgcn.layers.spaces import Space, check_sizes
from h2hgcn.models.encoder import Encoder
from h2hgcn.models.mlp import Stack, widths


class GCNLayer(nn.Module):
    """``S X W + b`` (Kipf and Welling 2017, Eq. 2), PyG's ``GCNConv``; see ``gcn_product`` for ``S``."""

    def __init__(self, in_features: int, out_features: int, neighbor_weights: str = "symmetric") -> None:
        super().__init__()
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.linear = FeatureLinear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.linear.weight)
        zeros(self.bias)

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        return gcn_product(self.linear(first_rows(x, adjacency)), adjacency, self.neighbor_weights) + self.bias


class SAGELayer(nn.Module):
    """``W_1 x_i + W_2 mean(x_j) + b``, the mean over neighbours (Hamilton et al. 2017, Algorithm 1), PyG's
    ``SAGEConv``; the mean is weighted if edges are.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = FeatureLinear(in_features, 2 * out_features, bias=False)
        self.bias = nn.Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()
        zeros(self.bias)

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        own, sent = self.linear(first_rows(x, adjacency)).chunk(2, dim=1)
        return own + sparse_matmul(adjacency.matrix("mean", sent.dtype), sent) + self.bias


class GATLayer(nn.Module):
    """Attention over neighbours and the node itself (Veličković et al. 2018, Eq. 3-6): PyG's ``GATConv``, its linear
    map apart, so that features may be sparse. Edge weights do not count.
    """

    def __init__(self, in_features: int, out_features: int, heads: int, concat: bool, dropout: float) -> None:
        super().__init__()
        width = heads * out_features
        self.linear = FeatureLinear(in_features, width, bias=False)
        self.attention = GATConv(width, out_features, heads=heads, concat=concat, dropout=dropout, add_self_loops=False)
        self.attention.lin = _Identity()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.linear.weight)
        self.attention.reset_parameters()

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        points: Tensor = self.attention(self.linear(first_rows(x, adjacency)), adjacency.edges()[0])
        return points


class SGCLayer(nn.Module):
    """``S^K X W + b`` (Wu et al. 2019, Eq. 8), PyG's ``SGConv``; see ``gcn_product`` for ``S``.

    ``S`` acts on ``X W``, which is narrower than wide features and dense in any case.
    """

    def __init__(self, in_features: int, out_features: int, hops: int, neighbor_weights: str = "symmetric") -> None:
        super().__init__()
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.linear = FeatureLinear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.empty(out_features))
        self.hops = hops
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()
        zeros(self.bias)

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        hidden = self.linear(x)
        for graph in adjacency.layer_graphs(self.hops):
            hidden = gcn_product(first_rows(hidden, graph), graph, self.neighbor_weights)
        return hidden + self.bias


def gcn_product(hidden: Tensor, adjacency: Adjacency, neighbor_weights: NeighborWeights) -> Tensor:
    """``S X``, the sum over neighbours and the node itself: ``"symmetric"`` is ``D^-1/2 (A + I) D^-1/2`` of Kipf and
    Welling (2017), ``"uniform"`` the mean ``D^-1 (A + I)``, which does not scale vectors with degrees.
    """
    if neighbor_weights == "symmetric":
        return sparse_matmul(adjacency.matrix("gcn", hidden.dtype), hidden)
    return sparse_matmul(adjacency.matrix("uniform", hidden.dtype), hidden)


class _Identity(nn.Identity):
    def reset_parameters(self) -> None:
        """There are none; PyG asks for it."""


class ConvolutionStack(Encoder):
    """A stack of convolutions: features and a graph to Euclidean points."""

    space: Space = "euclidean"
    stack: Stack
    stem: VectorStem | None

    def reset_parameters(self) -> None:
        self.stack.reset_parameters()
        if self.stem is not None:
            self.stem.reset_parameters()

    def forward(
        self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Points ``(n, dim)`` of nodes with features ``x (n, in_features)``, dense or sparse.

        ``edge_index`` is a ``(2, edges)`` tensor, a sparse ``adj_t``, or what ``prepare_adjacency`` returned; for
        ``nodes`` see ``NodeVectors``.
        """
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        hidden = x if self.stem is None else self.stem(x, adjacency, nodes)
        points: Tensor = self.stack(hidden, self._graphs(adjacency))
        return points

    def _graphs(self, adjacency: Adjacency) -> list[Adjacency]:
        """What each layer works on."""
        return adjacency.layer_graphs(len(self.stack.layers))


class GCN(ConvolutionStack):
    """Graph convolutional network (Kipf and Welling 2017).

    Args:
        in_features: Number of features of a node.
        dim: Width of all layers and of the result.
        num_layers: Number of convolutions.
        neighbor_weights: ``"symmetric"`` as in the paper, or ``"uniform"``, a mean, see ``gcn_product``.
        activation, dropout, feature_dropout: See ``Stack``.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learnt vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
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
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features
        )
        layers = [
            GCNLayer(*width, neighbor_weights)
            for width in widths(dim if node_vectors else in_features, dim, num_layers)
        ]
        self.stack = Stack(layers, activation, dropout, 0.0 if node_vectors else feature_dropout)


class SAGE(ConvolutionStack):
    """GraphSAGE with the mean of all neighbours (Hamilton et al. 2017), without the paper's sampling.

    Args:
        in_features: Number of features of a node.
        dim: Width of all layers and of the result.
        num_layers: Number of convolutions.
        activation, dropout, feature_dropout: See ``Stack``.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learnt vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
    """

    name = "sage"
    summary = "a node and the mean of its neighbours, mapped apart"
    paper = "Hamilton et al. 2017, Inductive Representation Learning on Large Graphs"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        activation: str | None = "relu",
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features
        )
        layers = [SAGELayer(*width) for width in widths(dim if node_vectors else in_features, dim, num_layers)]
        self.stack = Stack(layers, activation, dropout, 0.0 if node_vectors else feature_dropout)


class GAT(ConvolutionStack):
    """Graph attention network (Veličković et al. 2018).

    Args:
        in_features: Number of features of a node.
        dim: Width of all layers and of the result.
        num_layers: Number of convolutions.
        heads: Of the hidden layers, which concatenate heads of width ``dim / heads``.
        out_heads: Of the last layer, which averages heads of width ``dim``.
        attention_dropout: Of the attention to neighbors.
        activation, dropout, feature_dropout: See ``Stack``.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learnt vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
    """

    name = "gat"
    summary = "attention over neighbours"
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
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        check_sizes(heads=heads, out_heads=out_heads)
        if num_layers > 1 and dim % heads:
            raise ValueError(f"dim={dim} cannot be shared out among heads={heads}; choose a multiple")
        self.dim = dim
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features
        )
        *hidden, (last, _) = widths(dim if node_vectors else in_features, dim, num_layers)
        layers = [GATLayer(width, dim // heads, heads, True, attention_dropout) for width, _ in hidden]
        layers.append(GATLayer(last, dim, out_heads, False, attention_dropout))
        self.stack = Stack(layers, activation, dropout, 0.0 if node_vectors else feature_dropout)


class SGC(ConvolutionStack):
    """Simplified graph convolution (Wu et al. 2019): one linear map of features averaged over ``num_layers`` hops.

    Args:
        in_features: Number of features of a node.
        dim: Width of the result.
        num_layers: Number of hops, ``K`` in the paper.
        neighbor_weights: ``"symmetric"`` as in the paper, or ``"uniform"``, a mean, see ``gcn_product``.
        feature_dropout: Of the features.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learnt vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
    """

    name = "sgc"
    summary = "one linear map of features averaged over several hops"
    paper = "Wu et al. 2019, Simplifying Graph Convolutional Networks"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        neighbor_weights: NeighborWeights = "symmetric",
        feature_dropout: float = 0.0,
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
    ) -> None:
        super().__init__()
        check_sizes(in_features=in_features, dim=dim, num_layers=num_layers)
        self.dim = dim
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features
        )
        layer = SGCLayer(dim if node_vectors else in_features, dim, num_layers, neighbor_weights)
        self.stack = Stack([layer], None, 0.0, 0.0 if node_vectors else feature_dropout)

    def _graphs(self, adjacency: Adjacency) -> list[Adjacency]:
        return [adjacency]  # all hops are in one layer
