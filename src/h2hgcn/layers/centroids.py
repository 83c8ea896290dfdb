"""Distances to learnt centroids, the features of node and graph classifiers."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_mean_pool

from h2hgcn.geometry import lorentz
from h2hgcn.layers.edges import holds_integers
from h2hgcn.layers.kernels import exp_origin_points
from h2hgcn.layers.linear import check_width


class CentroidDistance(nn.Module):
    """Distances of points to ``num_centroids`` learnt points (Liu et al. 2019; Dai et al. 2021, section 4.4).

    For nodes the result is ``(n, num_centroids)``; with ``batch``, the graph of each node, it is the mean over each
    graph's nodes, ``(graphs, num_centroids)``. A centroid is learnt as the tangent vector at the origin that leads to
    it, so that any optimiser serves.
    """

    def __init__(
        self,
        dim: int,
        num_centroids: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim={dim}: a hyperbolic space has at least one dimension")
        if num_centroids < 1:
            raise ValueError(f"num_centroids={num_centroids}; there must be at least one")
        self.dim = dim
        self.num_centroids = num_centroids
        self.tangents = nn.Parameter(torch.empty(num_centroids, dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scatters the centroids in all directions, at a radius of about one."""
        nn.init.normal_(self.tangents, std=self.dim**-0.5)

    @property
    def centroids(self) -> Tensor:
        """The centroids as points ``(num_centroids, dim + 1)``."""
        return exp_origin_points(self.tangents)

    def forward(
        self,
        points: Tensor,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        *,
        distance_scale: Tensor | float = 1.0,
    ) -> Tensor:
        """``distance_scale`` is the encoder's, if its curvature is not -1."""
        check_width(points, self.dim)
        distances = lorentz.pairwise_distance(points, self.centroids.to(points.dtype))
        if isinstance(distance_scale, Tensor) or distance_scale != 1:
            distances = distances * distance_scale
        return distances if batch is None else _mean_over_graphs(distances, batch, num_graphs)

    def extra_repr(self) -> str:
        return f"{self.dim}, num_centroids={self.num_centroids}"


def _mean_over_graphs(distances: Tensor, batch: Tensor, num_graphs: int | None) -> Tensor:
    if not isinstance(batch, Tensor):
        raise ValueError(f"batch is a {type(batch).__name__}; pass a tensor with the graph of each node")
    if batch.shape != distances.shape[-2:-1] or not holds_integers(batch):
        raise ValueError(
            f"batch has shape {tuple(batch.shape)} and dtype {batch.dtype}, but there are {distances.shape[-2]} nodes; "
            "pass one integer for each, the graph it belongs to"
        )
    batch = batch.long()
    if not torch.compiler.is_compiling():  # compiled code cannot branch on values
        num_graphs = _checked_num_graphs(batch, num_graphs)
    return global_mean_pool(distances, batch, num_graphs)


def _checked_num_graphs(batch: Tensor, num_graphs: int | None) -> int:
    """The number of graphs, as it is given or as ``batch`` has it, once all of ``batch`` is known to fit."""
    lowest, highest = (int(bound) for bound in batch.aminmax()) if len(batch) else (0, -1)
    if lowest < 0:
        raise ValueError(f"batch names graph {lowest}; graphs are counted from 0")
    if num_graphs is None:
        return highest + 1
    if highest >= num_graphs:
        raise ValueError(f"batch names graph {highest}, but there are {num_graphs} graphs; fix num_graphs or the batch")
    return num_graphs
