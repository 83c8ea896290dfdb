"""The network of edge-conditioned convolutions."""

from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import global_mean_pool

from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.edge_conditioned import EdgeConditionedConv
from h2hgcn.models.pooling import PoolingEncoder, batch_norm, check_counts, check_shares


class ECC(PoolingEncoder):
    """Edge-conditioned convolutions (Simonovsky and Komodakis 2017, Eq. 1) with batch norm and ReLU, the mean over each
    graph, and a layer with ReLU.

    The label of an edge is its weight. Graphs are not coarsened between the convolutions, as they are in the paper.

    Args:
        in_features: Number of features of a node.
        dim: Width of the layers and of the vector of a graph.
        num_layers: Number of convolutions.
        filter_width, root_weight: Of the convolutions, see ``EdgeConditionedConv``.
        dropout: Of the hidden layers.
    """

    name = "ecc"
    summary = "convolutions with a filter that an MLP makes of each edge's weight"
    paper = "Simonovsky and Komodakis 2017, Dynamic Edge-Conditioned Filters in Convolutional Neural Networks on Graphs"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 3,
        *,
        filter_width: int = 16,
        root_weight: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.config = {
            "in_features": in_features, "dim": dim, "num_layers": num_layers, "filter_width": filter_width,
            "root_weight": root_weight, "dropout": dropout,
        }  # fmt: skip
        check_counts(in_features=in_features, dim=dim, num_layers=num_layers, filter_width=filter_width)
        check_shares(dropout=dropout)
        self.in_features = in_features
        self.dim = dim
        self.dropout = nn.Dropout(dropout)
        widths = [in_features, *[dim] * (num_layers - 1)]
        # the bias of Eq. 1 is that of batch norm
        self.convs = nn.ModuleList(EdgeConditionedConv(width, dim, filter_width, root_weight) for width in widths)
        self.norms = nn.ModuleList(batch_norm(dim) for _ in widths)
        self.output = nn.Linear(dim, dim)

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for module in (*self.convs, *self.norms, self.output):
            module.reset_parameters()

    def pooled(self, x: Any, adjacency: Adjacency, batch: Tensor, num_graphs: int) -> Tensor:
        hidden = x
        for conv, norm in zip(self.convs, self.norms, strict=True):
            hidden = self.dropout(norm(conv(hidden, adjacency)).relu())
        return self.output(global_mean_pool(hidden, batch, num_graphs)).relu()
