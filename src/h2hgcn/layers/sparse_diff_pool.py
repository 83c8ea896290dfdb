"""Differentiable pooling of the graphs of a batch, without their dense adjacency matrices."""

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from h2hgcn.geometry.numerics import safe_sqrt
from h2hgcn.layers.sparse import SparseMatrix, sparse_matmul


def sparse_diff_pool(
    x: Tensor, scores: Tensor, adjacency: SparseMatrix, batch: Tensor, num_graphs: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What PyG's ``dense_diff_pool`` gives (Ying et al. 2018, Eq. 3 and 4, and section 3.3): ``SᵀX (graphs, clusters,
    width)``, ``SᵀAS (graphs, clusters, clusters)``, the link-prediction loss and the entropy.

    ``S`` is the softmax of ``scores (n, clusters)``. Means of the losses are over real pairs of nodes and real nodes,
    so they do not depend on how much the largest graph of a batch has others padded. Memory grows with nodes times
    clusters, since ``|A - SSᵀ|² = |A|² - 2⟨S, AS⟩ + |SᵀS|²``.
    """
    log_shares = scores.log_softmax(1)
    shares = log_shares.exp()
    messages = sparse_matmul(adjacency, shares)
    parts = [x, messages, shares]
    widths = [part.shape[1] for part in parts]
    dense, mask = to_dense_batch(torch.cat(parts, 1), batch, batch_size=num_graphs)
    pooled, coarse, gram = (dense[..., -widths[2] :].mT @ dense).split(widths, 2)
    square = adjacency.values.square().sum() - 2 * (shares * messages).sum() + gram.square().sum()
    pairs = mask.sum(1).square().sum()
    entropy = -(shares * log_shares).sum() / max(len(x), 1)
    return pooled, coarse, safe_sqrt(square) / pairs.clamp_min(1), entropy
