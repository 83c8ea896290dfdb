"""Euclidean distances to learnt centroids, the twin of ``CentroidDistance``."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_mean_pool


class EuclideanCentroids(nn.Module):
    """Distances of Euclidean points to ``num_centroids`` learnt ones, of nodes or averaged over graphs (Liu et al.
    2019, the Euclidean model).
    """

    def __init__(self, dim: int, num_centroids: int) -> None:
        super().__init__()
        self.centroids = nn.Parameter(torch.empty(num_centroids, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scatters the centroids in all directions, at a radius of about one."""
        nn.init.normal_(self.centroids, std=self.centroids.shape[1] ** -0.5)

    def forward(self, points: Tensor, batch: Tensor | None = None, num_graphs: int | None = None) -> Tensor:
        distances = torch.cdist(points, self.centroids)
        return distances if batch is None else global_mean_pool(distances, batch, num_graphs)

    def extra_repr(self) -> str:
        num_centroids, dim = self.centroids.shape
        return f"{dim}, num_centroids={num_centroids}"
