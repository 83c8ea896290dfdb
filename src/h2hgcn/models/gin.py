"""The graph isomorphism network."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GINConv, global_add_pool, global_mean_pool

from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import SparseMatrix, sparse_matmul
from h2hgcn.layers.inputs import FeatureLinear
from h2hgcn.layers.spaces import check_choice, check_sizes
from h2hgcn.models.encoder import PoolingEncoder

READOUTS = {"sum": global_add_pool, "mean": global_mean_pool}


class GIN(PoolingEncoder):
    """Graph isomorphism network (Xu et al. 2019, Eq. 4.1 and 4.2): sums over neighbors into MLPs, and a linear map of
    the readouts of all layers, that of the features included.

    Weights of edges play no part.

    Args:
        num_layers: Number of convolutions, each with an MLP of two layers and batch norm.
        readout: ``"sum"`` or ``"mean"`` over the nodes of a graph, at every layer.
        learn_eps: Whether the weight ``1 + ε`` of a node against its neighbors is learned (GIN-ε), or 1 (GIN-0).
        options: See ``PoolingEncoder``.
    """

    name = "gin"
    summary = "sums over neighbors into MLPs, readouts of all layers"
    paper = "Xu et al. 2019, How Powerful are Graph Neural Networks?"

    def __init__(
        self, in_features: int, dim: int, num_layers: int = 4, *, readout: str = "sum", learn_eps: bool = False,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(in_features, dim, **options)
        check_sizes(num_layers=num_layers)
        self.readout = READOUTS[check_choice("readout", readout, ("sum", "mean"))]
        widths = [in_features, *[dim] * num_layers]
        # the first map of an MLP and the sum over neighbors commute; batch norm makes up for biases
        self.linears = nn.ModuleList(FeatureLinear(width, dim, bias=False) for width in widths[:-1])
        self.convs = nn.ModuleList(_SparseGINConv(_rest_of_mlp(dim), train_eps=learn_eps) for _ in range(num_layers))
        # one map of the concatenated readouts, by parts; that of the features is applied before they are summed
        self.outputs = nn.ModuleList(FeatureLinear(width, dim, bias=False) for width in widths)
        self.bias = nn.Parameter(torch.zeros(dim))

    def reset_parameters(self) -> None:
        """Draws all weights again."""
        super().reset_parameters()
        nn.init.zeros_(self.bias)

    def pooled(self, x: Any, adjacency: Adjacency, batch: Tensor, num_graphs: int) -> Tensor:
        sums = adjacency.matrix("count", self.bias.dtype)
        graphs: Tensor = self.readout(self.outputs[0](x), batch, num_graphs)
        hidden = x
        for linear, conv, output in zip(self.linears, self.convs, self.outputs[1:], strict=True):
            hidden = self.dropout(conv(linear(hidden), sums))
            graphs = graphs + output(self.readout(hidden, batch, num_graphs))
        return graphs + self.bias


class _SparseGINConv(GINConv):  # type: ignore[misc]
    """PyG's convolution with a sparse product for the sum, which takes a fraction of the time."""

    def propagate(self, edge_index: SparseMatrix, x: tuple[Tensor, Tensor], size: None = None) -> Tensor:
        return sparse_matmul(edge_index, x[0])


def _rest_of_mlp(dim: int) -> nn.Sequential:
    before, after = (BatchNorm(dim, allow_single_element=True) for _ in range(2))
    return nn.Sequential(before, nn.ReLU(), nn.Linear(dim, dim, bias=False), after, nn.ReLU())
