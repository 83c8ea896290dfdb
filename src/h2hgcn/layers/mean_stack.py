"""Convolutions by the mean over neighbours, one upon the other."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, DenseGraphConv

from h2hgcn.layers.feature_linear import FeatureLinear
from h2hgcn.layers.sparse import SparseMatrix, sparse_matmul


class SparseMeanConv(nn.Module):
    """``W₁ mean_j x_j + W₂ x_i`` (Hamilton et al. 2017, the mean aggregator), features and means being sparse matrices.

    PyG's ``GraphConv`` with means of equal weights, in less time.
    """

    def __init__(self, in_width: int, out_width: int) -> None:
        super().__init__()
        self.neighbors = FeatureLinear(in_width, out_width, bias=False)
        self.root = FeatureLinear(in_width, out_width, bias=False)

    def reset_parameters(self) -> None:
        self.neighbors.reset_parameters()
        self.root.reset_parameters()

    def forward(self, x: Any, means: SparseMatrix) -> Tensor:
        return sparse_matmul(means, self.neighbors(x)) + self.root(x)


class DenseMeanConv(DenseGraphConv):  # type: ignore[misc]
    """The same on dense graphs ``(graphs, n, n)``."""

    def __init__(self, in_width: int, out_width: int) -> None:
        super().__init__(in_width, out_width, aggr="mean", bias=False)


class MeanStack(nn.Module):
    """Convolutions, each with batch norm and ReLU, whose outputs, side by side, go through a linear map (Ying et al.
    2018, section 4.1).

    Args:
        conv: Makes a convolution of two widths: ``SparseMeanConv`` or ``DenseMeanConv``.
        in_width, width, out_width: Features of a node before, within and after.
        num_layers: Number of convolutions.
    """

    def __init__(
        self, conv: Callable[[int, int], nn.Module], in_width: int, width: int, out_width: int, num_layers: int
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(conv(first, width) for first in [in_width, *[width] * (num_layers - 1)])
        self.norms = nn.ModuleList(BatchNorm(width, allow_single_element=True) for _ in range(num_layers))
        self.output = nn.Linear(num_layers * width, out_width)

    def reset_parameters(self) -> None:
        for module in (*self.convs, *self.norms, self.output):
            module.reset_parameters()

    def forward(self, x: Any, graph: Any) -> Tensor:
        outputs: list[Any] = [x]
        for conv, norm in zip(self.convs, self.norms, strict=True):
            hidden = conv(outputs[-1], graph)
            outputs.append(norm(hidden.flatten(0, -2)).view_as(hidden).relu())
        result: Tensor = self.output(torch.cat(outputs[1:], -1))
        return result
