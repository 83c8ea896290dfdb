"""Euclidean graph convolutions for dense or sparse features and a prepared adjacency.

PyG's convolutions gather and scatter a row for each edge. Where the weights of edges are known beforehand, one sparse
product does the same in less time; the tests hold these layers against PyG's.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv
from torch_geometric.nn.inits import glorot, zeros

from h2hgcn.layers.adjacency import Adjacency, NeighborWeights, check_neighbor_weights, first_rows
from h2hgcn.layers.feature_linear import FeatureLinear
from h2hgcn.layers.sparse import sparse_matmul


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
        return own + sparse_matmul(adjacency.mean_matrix(sent.dtype), sent) + self.bias


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
        for graph in adjacency.steps(self.hops):
            hidden = gcn_product(first_rows(hidden, graph), graph, self.neighbor_weights)
        return hidden + self.bias


def gcn_product(hidden: Tensor, adjacency: Adjacency, neighbor_weights: NeighborWeights) -> Tensor:
    """``S X``, the sum over neighbours and the node itself: ``"symmetric"`` is ``D^-1/2 (A + I) D^-1/2`` of Kipf and
    Welling (2017), ``"uniform"`` the mean ``D^-1 (A + I)``, which does not scale vectors with degrees.
    """
    if neighbor_weights == "symmetric":
        return sparse_matmul(adjacency.gcn_matrix(hidden.dtype), hidden)
    return sparse_matmul(adjacency.matrix("uniform", hidden.dtype), hidden)


class _Identity(nn.Identity):
    def reset_parameters(self) -> None:
        """There are none; PyG asks for it."""
