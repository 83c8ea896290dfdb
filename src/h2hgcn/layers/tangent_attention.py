"""Attention between neighbours, from their tangent vectors at the origin."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.utils import softmax

from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.sparse import SparseMatrix


class TangentAttention(nn.Module):
    """``w_ij = softmax_j(MLP(log_o(x_i) ‖ log_o(x_j)))`` (Chami et al. 2019, section 4.3), with one hidden layer.

    The hidden layer is a sum of a part of the receiver and one of the sender, each worked out once for a node. An edge
    of weight ``w`` counts as ``w`` edges.
    """

    def __init__(self, dim: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.receiver = nn.Linear(dim, dim, device=device, dtype=dtype)
        self.sender = nn.Linear(dim, dim, bias=False, device=device, dtype=dtype)
        self.score = nn.Linear(dim, 1, bias=False, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for linear in (self.receiver, self.sender, self.score):
            linear.reset_parameters()

    def forward(self, tangent: Tensor, adjacency: Adjacency) -> SparseMatrix:
        """The weights of all neighbours, which add up to 1 for each receiver."""
        (senders, receivers), weights = adjacency.edges()
        hidden = F.leaky_relu(self.receiver(tangent)[receivers] + self.sender(tangent)[senders])
        scores = self.score(hidden).squeeze(1) + weights.log().to(tangent.dtype)
        return adjacency.with_values(softmax(scores, receivers, num_nodes=adjacency.num_nodes))
