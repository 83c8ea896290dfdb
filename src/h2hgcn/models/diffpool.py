"""The network that learns to coarsen graphs."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, DenseGraphConv, dense_diff_pool, global_max_pool
from torch_geometric.utils import to_dense_batch

from h2hgcn.geometry.numerics import safe_sqrt
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.kernels.csr import SparseMatrix, sparse_matmul
from h2hgcn.layers.inputs import FeatureLinear
from h2hgcn.layers.spaces import check_sizes
from h2hgcn.models.encoder import PoolingEncoder


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


class DiffPool(PoolingEncoder):
    """Differentiable pooling (Ying et al. 2018): at each level one stack of convolutions embeds the nodes and another
    assigns them to clusters, which are the nodes of the next level.

    The largest coordinates over the nodes of every level, side by side, go through a layer with ReLU. While training,
    ``auxiliary_loss`` is the sum of the link-prediction losses and entropies of the last batch (section 3.3), which
    the task adds to its loss; in evaluation it is None.

    Args:
        num_layers: Convolutions of a stack.
        num_pools: Times that graphs are coarsened.
        num_clusters: Clusters of the first pooling; the paper takes a quarter (for DD a tenth) of the nodes of the
            largest graph.
        cluster_ratio: Clusters of a pooling as a share of those of the one before, rounded up.
        link_weight, entropy_weight: Of the two auxiliary losses.
        dropout: Of the readouts.
        options: See ``PoolingEncoder``.
    """

    name = "diffpool"
    summary = "graphs coarsened level by level by learned soft clusters"
    paper = "Ying et al. 2018, Hierarchical Graph Representation Learning with Differentiable Pooling"

    auxiliary_loss: Tensor | None

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 3,
        *,
        num_pools: int = 2,
        num_clusters: int = 32,
        cluster_ratio: float = 0.25,
        link_weight: float = 1.0,
        entropy_weight: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(in_features, dim, **options)
        check_sizes(num_layers=num_layers, num_pools=num_pools, num_clusters=num_clusters)
        if not 0 < cluster_ratio <= 1:
            raise ValueError(f"cluster_ratio={cluster_ratio} must be above 0, and 1 at most")
        if not min(link_weight, entropy_weight) >= 0:
            raise ValueError(f"link_weight={link_weight}, entropy_weight={entropy_weight}: neither may be negative")
        self.loss_weights = (link_weight, entropy_weight)
        clusters = [math.ceil(num_clusters * cluster_ratio**level) for level in range(num_pools)]
        make: list[Callable[[int], MeanStack]] = [
            lambda out: MeanStack(SparseMeanConv, in_features, dim, out, num_layers),
            *[lambda out: MeanStack(DenseMeanConv, dim, dim, out, num_layers)] * num_pools,
        ]
        self.embed = nn.ModuleList(stack(dim) for stack in make)
        self.assign = nn.ModuleList(stack(count) for stack, count in zip(make, clusters, strict=False))
        self.output = nn.Linear((num_pools + 1) * dim, dim)
        self.auxiliary_loss = None

    def pooled(self, x: Any, adjacency: Adjacency, batch: Tensor, num_graphs: int) -> Tensor:
        dtype = self.output.weight.dtype
        means = adjacency.matrix("mean", dtype)
        nodes = self.embed[0](x, means)
        readouts = [global_max_pool(nodes, batch, num_graphs)]
        edges = adjacency.matrix("sum", dtype)
        pooling = sparse_diff_pool(nodes, self.assign[0](x, means), edges, batch, num_graphs)
        losses = [pooling[2:]]
        for embed, assign in zip(self.embed[1:-1], self.assign[1:], strict=True):
            clusters, graph = pooling[:2]
            nodes = embed(clusters, graph)
            readouts.append(nodes.amax(1))
            pooling = dense_diff_pool(nodes, graph, assign(clusters, graph))
            losses.append(pooling[2:])
        readouts.append(self.embed[-1](*pooling[:2]).amax(1))
        links, entropies = (torch.stack(kind).sum() for kind in zip(*losses, strict=True))
        loss = self.loss_weights[0] * links + self.loss_weights[1] * entropies
        self.auxiliary_loss = loss if self.training else None
        return self.output(self.dropout(torch.cat(readouts, 1))).relu()

    def __getstate__(self) -> dict[str, Any]:
        """Copies are made without the loss, which belongs to a batch."""
        return {**self.__dict__, "auxiliary_loss": None}
