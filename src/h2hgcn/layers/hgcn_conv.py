"""The hyperbolic graph convolution of HGCN."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.layers.adjacency import Adjacency, check_neighbor_weights
from h2hgcn.layers.feature_linear import feature_product
from h2hgcn.layers.local_aggregation import aggregate_locally
from h2hgcn.layers.sparse import SparseMatrix, sparse_matmul
from h2hgcn.layers.tangent import translated
from h2hgcn.layers.tangent_attention import TangentAttention


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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.local_aggregation = local_aggregation
        self.weight_dropout = weight_dropout
        self.weight = nn.Parameter(torch.empty(out_dim, in_dim, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_dim, device=device, dtype=dtype)) if bias else None
        self.attention = TangentAttention(out_dim, device=device, dtype=dtype) if attention else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew. A bias of 0 would leave the curvature of the layer without a gradient."""
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
            tangent = translated(tangent, self.bias * scale)
        if self.local_aggregation:
            return aggregate_locally(tangent, self._neighbors(tangent / scale, adjacency)) / scale
        vectors = tangent / scale
        return sparse_matmul(self._neighbors(vectors, adjacency), vectors)

    def _neighbors(self, vectors: Tensor, adjacency: Adjacency) -> SparseMatrix:
        if self.attention is not None:
            matrix: SparseMatrix = self.attention(vectors, adjacency)
            return matrix
        return adjacency.matrix(self.neighbor_weights, vectors.dtype)

    def extra_repr(self) -> str:
        out_dim, in_dim = self.weight.shape
        return f"{in_dim}, {out_dim}, local_aggregation={self.local_aggregation}"
