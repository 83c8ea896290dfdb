"""Inputs of encoders: a linear layer for dense or sparse features, and learned node vectors."""

from typing import Any

import geoopt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import SparseFeatures, check_features, is_sparse, prepare_features
from h2hgcn.layers.spaces import check_shares, check_sizes


class FeatureLinear(nn.Linear):
    """``nn.Linear`` for features ``(n, in_features)`` that may be a sparse matrix of torch or SciPy."""

    def forward(self, x: Any) -> Tensor:
        check_features(x, self.in_features)
        return feature_product(x, self.weight, self.bias)


def feature_product(x: Any, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``F.linear`` for features that may be sparse. The result has the weight's dtype, also under autocast."""
    if is_sparse(x):
        return prepare_features(x).to(weight.dtype).linear(weight, bias)
    return F.linear(x.to(weight.dtype), weight, bias).to(weight.dtype)


def feature_dropout(x: Any, p: float, training: bool) -> Tensor | SparseFeatures:
    """Dropout of features that may be sparse."""
    return prepare_features(x).dropout(p, training) if is_sparse(x) else F.dropout(x, p, training)


class NodeVectors(nn.Module):
    """A learned Euclidean vector for each node of one graph, of length about 1 at the start.

    Args:
        num_nodes, dim: Shape of the table of vectors.
        dropout: Dropout of the vectors' entries.

    ``sparse_gradients`` is set during sampled training: the gradient then has rows for the nodes of a batch only.
    """

    def __init__(self, num_nodes: int | None, dim: int, dropout: float = 0.0, **factory: Any) -> None:
        super().__init__()
        check_sizes(dim=dim)
        check_shares(vector_dropout=dropout)
        self.weight = nn.Parameter(torch.empty(check_num_nodes(num_nodes), dim, **factory))
        self.dropout = dropout
        self.sparse_gradients = False
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)

    def forward(self, nodes: Tensor | slice | None = None, adjacency: Adjacency | None = None) -> Tensor:
        """Vectors of all nodes in order, or of ``nodes``.

        ``nodes`` are numbers of training nodes, one for each row of ``adjacency``; -1 stands for a new node, which gets
        the mean of its neighbors' vectors, or 0 if no path of new nodes leads to a known one.
        """
        return F.dropout(self._rows(nodes, adjacency), self.dropout, self.training)

    def _rows(self, nodes: Tensor | slice | None, adjacency: Adjacency | None) -> Tensor:
        if nodes is None:
            return self.weight.clone()  # in-place changes of the result must not reach the weight
        if isinstance(nodes, slice):
            return self.weight[nodes]
        nodes = nodes.to(self.weight.device)
        if adjacency is None or not bool((nodes < 0).any()):
            return F.embedding(nodes, self.weight, sparse=self.sparse_gradients)
        return _spread(F.embedding(nodes.clamp_min(0), self.weight), nodes >= 0, adjacency)


def _spread(vectors: Tensor, known: Tensor, adjacency: Adjacency) -> Tensor:
    """Gives new nodes the mean of their neighbors' vectors, along edges of either direction, step by step."""
    vectors = vectors * known.unsqueeze(1)
    ends = adjacency.edges(self_loops=False)[0]
    sources, targets = torch.cat([ends, ends.flip(0)], dim=1)
    while True:
        sends = known[sources] & ~known[targets]
        reached, senders = targets[sends], sources[sends]
        if not len(reached):
            return vectors
        counts = torch.bincount(reached, minlength=len(known)).unsqueeze(1)
        sums = torch.zeros_like(vectors).index_add(0, reached, vectors[senders])
        vectors = torch.where(counts > 0, sums / counts.clamp_min(1), vectors)
        known = known | (counts > 0).squeeze(1)


def check_inputs(node_vectors: bool, use_features: bool) -> None:
    """Raises if an encoder has neither features nor node vectors as input."""
    if not use_features and not node_vectors:
        raise ValueError("use_features=False leaves nothing to compute points from; use node_vectors=True with it")


def node_vectors_of(module: nn.Module) -> NodeVectors | None:
    """The node vectors within a module, if it has any."""
    return next((part for part in module.modules() if isinstance(part, NodeVectors)), None)


class NodePoints(nn.Module):
    """Points ``(num_nodes, dim)`` of the Poincaré ball, near the origin at first (Nickel and Kiela 2017).

    A Riemannian optimizer trains them. geoopt keeps them within a radius of 6.2 in float32 and of 12.2 in float64.
    """

    weight: geoopt.ManifoldParameter

    def __init__(self, num_nodes: int, dim: int) -> None:
        super().__init__()
        check_sizes(dim=dim)
        weight = torch.empty(check_num_nodes(num_nodes), dim)
        self.weight = geoopt.ManifoldParameter(weight, manifold=geoopt.PoincareBall())
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.weight, -1e-3, 1e-3)  # Nickel and Kiela 2017, section 3.1

    def forward(self) -> Tensor:
        return self.weight.clone()  # an optimizer step must not change the result

    def tangents(self) -> Tensor:
        """The tangent vectors at the origin whose exponential map gives the points."""
        return lorentz.log_origin(poincare.to_lorentz(self.weight))


class NodeTangents(NodeVectors):
    """Points of the hyperboloid ``(num_nodes, dim + 1)``: the exponential map of a learned tangent vector of each node.

    Unlike ``NodePoints``, they need no Riemannian optimizer and may lie at any radius.
    """

    def reset_parameters(self) -> None:
        # near the origin, but far enough apart for their first gradients to differ
        nn.init.normal_(self.weight, std=0.1)

    def forward(self, nodes: Tensor | slice | None = None, adjacency: Adjacency | None = None) -> Tensor:
        return lorentz.exp_origin(super().forward(nodes, adjacency))


def check_num_nodes(num_nodes: Any) -> int:
    if not isinstance(num_nodes, int) or num_nodes < 1:
        raise ValueError(f"num_nodes={num_nodes}: pass the number of nodes of the graph; each gets a vector")
    return num_nodes
