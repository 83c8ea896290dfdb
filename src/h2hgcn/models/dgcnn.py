"""The network that sorts nodes before it reads them."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import SortAggregation

from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers.inputs import FeatureLinear
from h2hgcn.layers.spaces import check_sizes
from h2hgcn.models.encoder import PoolingEncoder

_CHANNELS = (16, 32)
_KERNEL = 5
# Nodes that are left after pooling by two have to fill a kernel.
_SMALLEST_K = 2 * _KERNEL


class DGCNN(PoolingEncoder):
    """Deep graph convolutional network (Zhang et al. 2018): convolutions ``tanh(D̃⁻¹ Ã Z W)`` (Eq. 1) whose outputs are
    put side by side, the first ``k`` nodes by their last coordinate (SortPooling), and two 1-D convolutions over these.

    Args:
        dim: Width of the dense layer, which is the vector of a graph; 128 in the paper.
        num_layers: Number of graph convolutions; the last has one channel, by which nodes are sorted.
        width: Channels of the other graph convolutions.
        k: Nodes that are kept of each graph, 10 or more; smaller graphs are filled up with zeros. In the paper, three
            in five graphs of a collection have more than ``k`` nodes, which makes 22 for PROTEINS, 27 for ENZYMES and
            205 for DD.
        dropout: Of the input of the dense layer.
        options: See ``PoolingEncoder``.
    """

    name = "dgcnn"
    summary = "graph convolutions, nodes sorted by their last coordinate, 1-D convolutions"
    paper = "Zhang et al. 2018, An End-to-End Deep Learning Architecture for Graph Classification"

    def __init__(
        self, in_features: int, dim: int, num_layers: int = 4, *, width: int = 32, k: int = 30, **options: Any
    ) -> None:
        super().__init__(in_features, dim, **options)
        check_sizes(num_layers=num_layers, width=width)
        if k < _SMALLEST_K:
            raise ValueError(f"k={k} nodes are too few for the 1-D convolutions; keep {_SMALLEST_K} or more")
        widths = [in_features, *[width] * (num_layers - 1), 1]
        self.linears = nn.ModuleList(FeatureLinear(*pair, bias=False) for pair in pairwise(widths))
        self.sort = SortAggregation(k)
        # a 1-D convolution over all numbers of a node, node by node, is a linear map of each node
        self.node_map = nn.Linear(sum(widths[1:]), _CHANNELS[0])
        self.conv = nn.Conv1d(*_CHANNELS, _KERNEL)
        self.dense = nn.Linear(_CHANNELS[1] * (k // 2 - _KERNEL + 1), dim)

    def pooled(self, x: Any, adjacency: Adjacency, batch: Tensor, num_graphs: int) -> Tensor:
        means = adjacency.matrix("uniform", self.node_map.weight.dtype)
        outputs: list[Any] = [x]
        for linear in self.linears:
            outputs.append(sparse_matmul(means, linear(outputs[-1])).tanh())
        nodes = torch.cat(outputs[1:], 1)
        if len(nodes):  # the first k nodes of each graph: (num_graphs, k, width)
            nodes = self.sort(nodes, batch, dim_size=num_graphs).view(num_graphs, self.sort.k, -1)
        else:
            nodes = nodes.new_zeros(num_graphs, self.sort.k, nodes.shape[1])
        channels = F.max_pool1d(self.node_map(nodes).relu().mT, 2)
        flat = self.conv(channels).relu().flatten(1)
        return self.dense(self.dropout(flat)).relu()
