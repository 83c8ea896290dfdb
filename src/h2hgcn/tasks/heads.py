"""What stands on an encoder: decoders that follow from its space."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import global_mean_pool

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.row_pairs import squared_distances_of_rows
from h2hgcn.layers import CentroidDistance, FermiDiracDecoder
from h2hgcn.layers.euclidean_centroids import EuclideanCentroids
from h2hgcn.layers.spaces import as_lorentz, check_space, squared_distance

Classifier = Literal["centroids", "linear"]
Pooling = Literal["mean", "sum"]


class LinkHead(nn.Module):
    """Logits of links between points of any space, by the Fermi-Dirac decoder."""

    def __init__(self, encoder: Any, r: float = 2.0, t: float = 1.0, learnable: bool = True) -> None:
        super().__init__()
        self.space = check_space(encoder.space)
        self.decoder = FermiDiracDecoder(r, t, learnable, squared_distance(self.space))

    def forward(self, points: Tensor, pairs: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of ``pairs (k, 2)`` of rows of ``points``."""
        if self.space == "euclidean":
            source, target = (points.index_select(0, ends) for ends in pairs.unbind(1))
            return self.decoder(source, target, distance_scale=distance_scale)
        square = squared_distances_of_rows(as_lorentz(points, self.space), pairs)
        return self.decoder.logits(square, distance_scale)


class ColumnNorm(nn.BatchNorm1d):
    """Batch normalisation that also takes a batch of one row, by the means and deviations it knows so far."""

    def forward(self, rows: Tensor) -> Tensor:
        if len(rows) > 1 or not self.training:
            return super().forward(rows)
        return F.batch_norm(rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)


class ClassHead(nn.Module):
    """Logits of classes, of nodes or, with ``batch``, of graphs.

    ``"centroids"``: distances to learnt centroids into a linear classifier (Dai et al. 2021, section 4.4), averaged
    over each graph. ``"linear"``: the linear classifier alone, on hyperbolic points at the tangent space of the origin,
    after a mean over each graph. None takes centroids for hyperbolic points and the linear classifier for Euclidean
    ones. ``pooling`` is over the nodes of a graph. With ``norm``, what the classifier sees is standardised.
    """

    def __init__(
        self,
        encoder: Any,
        num_classes: int,
        num_centroids: int = 100,
        dropout: float = 0.0,
        classifier: Classifier | None = None,
        norm: bool = False,
        pooling: Pooling = "mean",
    ) -> None:
        super().__init__()
        self.space = check_space(encoder.space)
        self.pooling = pooling
        flat = self.space == "euclidean"
        wanted = classifier or ("linear" if flat else "centroids")
        self.centroids: nn.Module | None = None
        if wanted == "centroids":
            self.centroids = (EuclideanCentroids if flat else CentroidDistance)(encoder.dim, num_centroids)
        width = num_centroids if wanted == "centroids" else encoder.dim
        self.norm = ColumnNorm(width) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, num_classes)

    def forward(
        self,
        points: Tensor,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        distance_scale: Tensor | float = 1.0,
    ) -> Tensor:
        if self.centroids is None:
            hidden = self._flat(points, distance_scale)
            hidden = hidden if batch is None else global_mean_pool(hidden, batch, num_graphs)
        elif self.space == "euclidean":
            hidden = self.centroids(points, batch, num_graphs)
        else:
            points = as_lorentz(points, self.space)
            hidden = self.centroids(points, batch, num_graphs, distance_scale=distance_scale)
        if batch is not None and self.pooling == "sum":
            hidden = hidden * torch.bincount(batch, minlength=len(hidden)).to(hidden.dtype).unsqueeze(1)
        logits: Tensor = self.classifier(self.dropout(self.norm(hidden)))
        return logits

    def _flat(self, points: Tensor, distance_scale: Tensor | float) -> Tensor:
        if self.space == "euclidean":
            return points
        return lorentz.log_origin(as_lorentz(points, self.space)) * distance_scale


class NodeHead(nn.Module):
    """A classifier of nodes, and the decoder of the link-prediction term."""

    def __init__(self, classes: ClassHead, links: LinkHead | None) -> None:
        super().__init__()
        self.classes = classes
        self.links = links

    def forward(self, points: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of the classes."""
        logits: Tensor = self.classes(points, distance_scale=distance_scale)
        return logits

    def link_logits(self, points: Tensor, pairs: Tensor, distance_scale: Tensor | float) -> Tensor:
        assert self.links is not None
        logits: Tensor = self.links(points, pairs, distance_scale)
        return logits
