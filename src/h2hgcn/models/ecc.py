"""The network of edge-conditioned convolutions."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, global_mean_pool
from torch_geometric.nn.inits import reset

from h2hgcn.geometry.numerics import safe_reciprocal
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers.inputs import FeatureLinear, feature_product
from h2hgcn.layers.spaces import check_sizes
from h2hgcn.models.encoder import PoolingEncoder


class EdgeConditionedConv(nn.Module):
    """The mean over neighbors of ``F(w_ij) x_j`` (Simonovsky and Komodakis 2017, Eq. 1): an MLP ``F`` makes a matrix
    of the weight of an edge.

    The same as PyG's ``NNConv`` with means, but without a matrix for every edge. A sum over edges is a sum of few
    matrices ``Θ_m``, each times a mean of the ``x_j`` with coefficients ``c_m(w_ij)``. These are either the matrices of
    the distinct weights, of which many collections have but one, or those of the last layer of ``F``, which is linear.

    Args:
        in_width, out_width: Numbers of features of a node, before and after.
        filter_width: Of the hidden layer of ``F``.
        root_weight: Whether a node has a matrix of its own for itself. Otherwise it is one of its neighbors, as in the
            paper, by a self-loop.
    """

    def __init__(self, in_width: int, out_width: int, filter_width: int = 16, root_weight: bool = True) -> None:
        super().__init__()
        self.in_width, self.out_width = in_width, out_width
        self.hidden = nn.Linear(1, filter_width)
        self.last = nn.Linear(filter_width, in_width * out_width)
        self.root = FeatureLinear(in_width, out_width, bias=False) if root_weight else None

    def reset_parameters(self) -> None:
        for layer in self.children():
            reset(layer)

    def forward(self, x: Any, adjacency: Adjacency) -> Tensor:
        """``x (n, in_width)`` to ``(n, out_width)``; ``x`` may be sparse."""
        dtype, rows = self.last.weight.dtype, adjacency.receivers
        used = rows != adjacency.col if self.root is not None else torch.ones_like(rows, dtype=torch.bool)
        counts = torch.zeros(adjacency.num_nodes, dtype=dtype, device=rows.device).index_add(0, rows, used.to(dtype))
        shares = safe_reciprocal(counts)[rows] * used  # what each neighbor counts in the mean
        coefficients, matrices = self._terms(adjacency.weights.to(dtype), used)
        result = shares.new_zeros(adjacency.num_nodes, self.out_width) if self.root is None else self.root(x)
        for coefficient, matrix in zip(coefficients.unbind(1), matrices.unbind(0), strict=True):
            product = feature_product(x, matrix.mT)
            result = result + sparse_matmul(adjacency.with_values(shares * coefficient), product)
        return result

    def _terms(self, weights: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients ``(entries, terms)`` and matrices ``(terms, in_width, out_width)``, as few as will do."""
        distinct, which = _distinct(torch.where(used, weights, weights[used][:1].sum()).detach())
        if len(distinct) <= self.last.in_features + 1 and not weights.requires_grad:
            rows = self.last(self.hidden(distinct[:, None]).relu())
            coefficients = (which[:, None] == torch.arange(len(distinct), device=which.device)).to(weights.dtype)
        else:
            rows = torch.cat([self.last.weight.mT, self.last.bias[None]])
            coefficients = torch.cat([self.hidden(weights[:, None]).relu(), torch.ones_like(weights)[:, None]], 1)
        return coefficients, rows.view(-1, self.in_width, self.out_width)


def _distinct(weights: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct weights, and which of them each one is."""
    if not len(weights) or bool((weights == weights[0]).all()):  # without sorting
        return weights[:1], torch.zeros(len(weights), dtype=torch.long, device=weights.device)
    distinct, which = weights.unique(return_inverse=True)
    return distinct, which


class ECC(PoolingEncoder):
    """Edge-conditioned convolutions (Simonovsky and Komodakis 2017, Eq. 1) with batch norm and ReLU, the mean over each
    graph, and a layer with ReLU.

    The label of an edge is its weight. Graphs are not coarsened between the convolutions, as they are in the paper.

    Args:
        num_layers: Number of convolutions.
        filter_width, root_weight: Of the convolutions, see ``EdgeConditionedConv``.
        options: See ``PoolingEncoder``.
    """

    name = "ecc"
    summary = "convolutions with a filter that an MLP makes of each edge's weight"
    paper = "Simonovsky and Komodakis 2017, Dynamic Edge-Conditioned Filters in Convolutional Neural Networks on Graphs"

    def __init__(
        self, in_features: int, dim: int, num_layers: int = 3, *, filter_width: int = 16, root_weight: bool = True,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(in_features, dim, **options)
        check_sizes(num_layers=num_layers, filter_width=filter_width)
        widths = [in_features, *[dim] * (num_layers - 1)]
        # the bias of Eq. 1 is that of batch norm
        self.convs = nn.ModuleList(EdgeConditionedConv(width, dim, filter_width, root_weight) for width in widths)
        self.norms = nn.ModuleList(BatchNorm(dim, allow_single_element=True) for _ in widths)
        self.output = nn.Linear(dim, dim)

    def pooled(self, x: Any, adjacency: Adjacency, batch: Tensor, num_graphs: int) -> Tensor:
        hidden = x
        for conv, norm in zip(self.convs, self.norms, strict=True):
            hidden = self.dropout(norm(conv(hidden, adjacency)).relu())
        return self.output(global_mean_pool(hidden, batch, num_graphs)).relu()
