"""What stands on an encoder: decoders that follow from its space."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import global_mean_pool

from h2hgcn.datasets import DataError
from h2hgcn.geometry import lorentz
from h2hgcn.geometry.row_pairs import squared_distances_of_rows
from h2hgcn.layers import CentroidDistance, FermiDiracDecoder
from h2hgcn.layers.euclidean_centroids import EuclideanCentroids
from h2hgcn.layers.spaces import Space, as_lorentz, check_space, squared_distance
from h2hgcn.layers.stiefel_parameter import stiefel_parameter
from h2hgcn.tasks.calibration import ClassCalibration, LinkCalibration
from h2hgcn.tasks.feature_terms import FeatureTerms
from h2hgcn.tasks.neighborhoods import Neighborhoods, NeighborhoodTerms
from h2hgcn.tasks.top_links import LinkScores

Classifier = Literal["centroids", "linear"]
Pooling = Literal["mean", "sum"]

# Of links: "auto" is directed where the graph is, else symmetric.
Decoder = Literal["auto", "symmetric", "popularity", "directed"]


def decoder_for(graph: Any, decoder: Decoder) -> Decoder:
    """The decoder itself, "auto" resolved; of a directed graph "popularity" is "directed", which has its terms, too."""
    directed = bool(getattr(graph, "directed", False))
    if decoder == "popularity" and directed:
        return "directed"
    if decoder == "directed" and not directed:
        raise DataError("decoder='directed' needs a directed graph; load it with directed=True (--directed)")
    return ("directed" if directed else "symmetric") if decoder == "auto" else decoder


class LinkHead(nn.Module):
    """Logits of links between points of any space.

    ``"symmetric"``: the Fermi-Dirac decoder ``(r - d(x, y)²)/t`` of the paper.

    ``"popularity"``: adds a learnt linear term of both points as seen from the origin, ``<a, log_o(x)> + <a,
    log_o(y)>``: some nodes have more links than others, near and far.

    ``"directed"``: moves the source by a learnt orthonormal map ``W``, an isometry that fixes the origin, and has a
    term for the source and another for the target: ``(r - d(W x, y)²)/t + <a, log_o(x)> + <b, log_o(y)>``.

    All start out as the first: ``W`` at the identity, ``a`` and ``b`` at 0. With ``neighborhood_terms``, what degrees
    and shared neighbors say is added once training is over (see ``NeighborhoodTerms``). With ``calibrate``, so is what
    makes probabilities of logits (see ``LinkCalibration``).
    """

    def __init__(
        self,
        encoder: Any,
        r: float = 2.0,
        t: float = 1.0,
        learnable: bool = True,
        decoder: Decoder = "symmetric",
        neighborhood_terms: bool = False,
        calibrate: bool = False,
    ) -> None:
        super().__init__()
        self.space = check_space(encoder.space)
        self.directed, self.has_terms = decoder == "directed", decoder in ("popularity", "directed")
        self.decoder = FermiDiracDecoder(r, t, learnable, squared_distance(self.space))
        if self.directed:
            self.source_map = stiefel_parameter(encoder.dim, encoder.dim)
            nn.init.eye_(self.source_map)
        if self.has_terms:
            self.terms = nn.Parameter(torch.zeros(1 + self.directed, encoder.dim))
        self.neighborhood = NeighborhoodTerms(self.directed) if neighborhood_terms else None
        self.calibration = LinkCalibration() if calibrate else None

    @property
    def sees_neighborhoods(self) -> bool:
        """Whether ``logits_in`` a graph are others than those of ``forward``."""
        return self.neighborhood is not None and self.neighborhood.fitted

    @property
    def goes_by_distance(self) -> bool:
        """Whether the nearest node is the likeliest to be linked with."""
        return not self.has_terms and not self.sees_neighborhoods

    @property
    def calibrated(self) -> bool:
        return self.calibration is not None and self.calibration.fitted

    def probabilities(self, logits: Tensor) -> Tensor:
        """What logits of links are worth: the one place where they become probabilities."""
        found: Tensor = logits.sigmoid() if self.calibration is None else self.calibration(logits)
        return found

    def logits_in(
        self, graph: Callable[[], Neighborhoods], points: Tensor, pairs: Tensor, distance_scale: Tensor | float = 1.0
    ) -> Tensor:
        """Logits of ``pairs`` with what their neighborhoods in a graph add, which is not asked for if nothing is."""
        logits: Tensor = self(points, pairs, distance_scale)
        if self.neighborhood is None or not self.neighborhood.fitted:
            return logits
        added: Tensor = self.neighborhood(logits, graph(), pairs)
        return added

    def forward(self, points: Tensor, pairs: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of ``pairs (k, 2)`` of rows of ``points``, source first."""
        if not self.has_terms:
            return self._symmetric(points, pairs, distance_scale)
        if self.directed:
            rows = torch.cat([rotated(points, self.source_map, self.space), points])
            logits = self._symmetric(rows, pairs + pairs.new_tensor([0, len(points)]), distance_scale)
        else:
            logits = self._symmetric(points, pairs, distance_scale)
        source, target = self._terms(points, distance_scale)
        return logits + source.index_select(0, pairs[:, 0]) + target.index_select(0, pairs[:, 1])

    def _symmetric(self, points: Tensor, pairs: Tensor, distance_scale: Tensor | float) -> Tensor:
        if self.space == "euclidean":
            source, target = (points.index_select(0, ends) for ends in pairs.unbind(1))
            logits: Tensor = self.decoder(source, target, distance_scale=distance_scale)
            return logits
        square = squared_distances_of_rows(as_lorentz(points, self.space), pairs)
        return self.decoder.logits(square, distance_scale)

    def _terms(self, points: Tensor, distance_scale: Tensor | float) -> tuple[Tensor, Tensor]:
        """What each point adds to the logits of links that it is the source of, and of those it is the target of."""
        terms = tangents_of(points, self.space, distance_scale) @ self.terms.mT
        return terms[:, 0], terms[:, -1]

    @torch.no_grad()
    def as_search(
        self,
        graph: Callable[[], Neighborhoods],
        points: Tensor,
        incoming: bool,
        distance_scale: Tensor | float = 1.0,
    ) -> "LinkSearch":
        """The links of each node, those from it or the ``incoming`` ones, as a search among all ``points``."""
        scale = distance_scale.item() if isinstance(distance_scale, Tensor) else distance_scale
        slope = scale**2 / self.decoder.t.item()
        queries, terms = points, torch.zeros(len(points), dtype=torch.float64)
        if self.has_terms:
            terms = self._terms(points, distance_scale)[0 if incoming else 1].double().cpu()
        if self.directed:  # d(W x, y) = d(x, W⁻¹ y)
            queries = rotated(points, self.source_map.mT if incoming else self.source_map, self.space)
        if self.neighborhood is None or not self.neighborhood.fitted:
            return LinkSearch(queries, terms, slope)
        neighborhoods, factor = graph(), self.neighborhood.slope.item()
        weights = self.neighborhood.weights.cpu().numpy()
        terms = factor * terms + torch.from_numpy(neighborhoods.of_nodes(weights, 0 if incoming else 1))
        return LinkSearch(
            queries, terms, factor * slope, partial(neighborhoods.of_rows, weights), neighborhoods.two_hops
        )

    def pair_scores(
        self, graph: Callable[[], Neighborhoods], points: Tensor, distance_scale: Tensor | float = 1.0
    ) -> LinkScores:
        """``logits_in`` a graph of all pairs of ``points``, but for a constant."""
        outgoing, incoming = (self.as_search(graph, points, way, distance_scale) for way in (False, True))
        terms = self.neighborhood if self.sees_neighborhoods else None
        return LinkScores(
            incoming.terms.numpy(), outgoing.terms.numpy(), points, outgoing.queries, self.space, outgoing.slope,
            None if terms is None else graph(), None if terms is None else terms.weights.cpu().numpy(),
        )  # fmt: skip


class LinkSearch(NamedTuple):
    """The logit of a link between node ``i`` and another ``j`` is ``terms[j] - slope · d(queries[i], points[j])²``,
    plus ``of_rows([i])[0, j]`` if that is there, and a number that all links of ``i`` share. ``d`` is the distance at
    curvature -1. ``two_hops`` gives others that a node shares neighbors with.
    """

    queries: Tensor
    terms: Tensor
    slope: float
    of_rows: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None = None
    two_hops: Callable[[NDArray[np.int64], int], NDArray[np.int64]] | None = None


def rotated(points: Tensor, matrix: Tensor, space: Space) -> Tensor:
    """Points of a space after an orthonormal map that fixes the origin."""
    if space != "lorentz":
        return points @ matrix.mT
    return torch.cat([points[:, :1], points[:, 1:] @ matrix.mT], dim=1)


def tangents_of(points: Tensor, space: Space, distance_scale: Tensor | float = 1.0) -> Tensor:
    """Points as tangent vectors at the origin; Euclidean points as they are."""
    if space == "euclidean":
        return points
    return lorentz.log_origin(as_lorentz(points, space)) * distance_scale


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
    ones. ``pooling`` is over the nodes of a graph. With ``norm``, what the classifier sees is standardised. With
    ``calibrate``, what makes probabilities of logits is fitted once training is over (see ``ClassCalibration``).
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
        calibrate: bool = False,
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
        self.calibration = ClassCalibration(num_classes) if calibrate else None

    @property
    def calibrated(self) -> bool:
        return self.calibration is not None and self.calibration.fitted

    def probabilities(self, logits: Tensor) -> Tensor:
        """What logits of classes are worth: the one place where they become probabilities."""
        found: Tensor = logits.softmax(1) if self.calibration is None else self.calibration(logits)
        return found

    def forward(
        self,
        points: Tensor,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        distance_scale: Tensor | float = 1.0,
    ) -> Tensor:
        if self.centroids is None:
            hidden = tangents_of(points, self.space, distance_scale)
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


class NodeHead(nn.Module):
    """A classifier of nodes, the decoder of the link-prediction term, and what features add once training is over."""

    def __init__(self, classes: ClassHead, links: LinkHead | None, features: FeatureTerms | None = None) -> None:
        super().__init__()
        self.classes = classes
        self.links = links
        self.features = features

    def forward(self, points: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of the classes."""
        logits: Tensor = self.classes(points, distance_scale=distance_scale)
        return logits

    def logits_with(self, x: Callable[[], Any], points: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of the classes with what the nodes' features add, which are not asked for if that is nothing."""
        logits: Tensor = self(points, distance_scale)
        if self.features is None or not self.features.fitted:
            return logits
        added: Tensor = self.features(logits, x())
        return added

    @property
    def calibrated(self) -> bool:
        return self.classes.calibrated

    def probabilities(self, logits: Tensor) -> Tensor:
        """What logits of classes are worth."""
        return self.classes.probabilities(logits)

    def link_logits(self, points: Tensor, pairs: Tensor, distance_scale: Tensor | float) -> Tensor:
        assert self.links is not None
        logits: Tensor = self.links(points, pairs, distance_scale)
        return logits
