"""The baseline that does not see the graph."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import is_sparse, prepare_features
from h2hgcn.layers.inputs import FeatureLinear
from h2hgcn.models.encoder import PoolingEncoder


class Fingerprint(PoolingEncoder):
    """The structure-blind baseline of the fair comparison (Errica et al. 2020, section 4.2): a sum over the nodes of a
    graph, into a layer with ReLU. Edges play no part.

    Args:
        node_layer: Whether a layer with ReLU comes before the sum, as in the paper where nodes have attributes (Zaheer
            et al. 2017); without it, one-hot features are counted: a molecular fingerprint.
        dropout: Of what the layer before the sum gives.
        options: See ``PoolingEncoder``.
    """

    name = "fingerprint"
    summary = "sums of node features into an MLP, blind to edges"
    paper = "Errica et al. 2020, A Fair Comparison of Graph Neural Networks for Graph Classification"

    def __init__(self, in_features: int, dim: int, *, node_layer: bool = True, **options: Any) -> None:
        super().__init__(in_features, dim, **options)
        self.node_layer = FeatureLinear(in_features, dim) if node_layer else None
        self.graph_layer = nn.Linear(dim if node_layer else in_features, dim)

    def pooled(self, x: Any, adjacency: Adjacency, batch: Tensor, num_graphs: int) -> Tensor:
        if self.node_layer is None:
            sums = feature_sums(x, batch, num_graphs).to(self.graph_layer.weight.dtype)
        else:
            sums = global_add_pool(self.dropout(self.node_layer(x).relu()), batch, num_graphs)
        return self.graph_layer(sums).relu()


def feature_sums(x: Any, batch: Tensor, num_graphs: int) -> Tensor:
    """The sum ``(num_graphs, features)`` of the features of each graph's nodes, dense or sparse."""
    if not is_sparse(x):
        sums: Tensor = global_add_pool(x, batch, num_graphs)
        return sums
    crow, column, values = prepare_features(x).matrix[:3]
    graphs = batch[torch.repeat_interleave(crow.diff())]
    zeros = values.new_zeros(num_graphs, x.shape[1])
    return zeros.index_put((graphs, column.long()), values, accumulate=True)
