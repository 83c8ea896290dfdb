"""Heads of encoders: decoders that follow from the space, and a logistic regression on features."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import global_mean_pool

from h2hgcn.datasets import DataError
from h2hgcn.geometry import lorentz
from h2hgcn.kernels.distances import squared_distances_of_rows
from h2hgcn.layers import CentroidDistance, FermiDiracDecoder
from h2hgcn.layers.decoders import EuclideanCentroids
from h2hgcn.layers.h2h_conv import stiefel_parameter
from h2hgcn.layers.spaces import Space, as_lorentz, check_space, squared_distance
from h2hgcn.tasks.baselines import as_matrix
from h2hgcn.tasks.metrics import ClassCalibration, LinkCalibration, Scores
from h2hgcn.tasks.neighborhoods import Neighborhoods, NeighborhoodTerms
from h2hgcn.tasks.top_links import LinkScores

Nodes = NDArray[np.int64]

# Of the regression: the penalties that validation nodes choose from, and the products of a step that it is tried with
# at most: about a minute.
_CHOICES = (1.0, 10.0)
_PRODUCTS = 1 << 28

# Features of which more are 0 count as words: rows of length 1. Others are standardized.
_MOSTLY = 0.8

_FOLDS = 5  # of out-of-fold logits


class FeatureTerms(nn.Module):
    """Adds a logistic regression on features to the logits of classes: ``slope · log p(network) + share · log
    p(features)``. Until it is fitted, logits stay as they are.
    """

    weights: Tensor
    bias: Tensor
    mix: Tensor
    unit_rows: Tensor

    def __init__(self, in_features: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("weights", torch.zeros(in_features, num_classes))
        self.register_buffer("bias", torch.zeros(num_classes))
        self.register_buffer("mix", torch.tensor([1.0, 0.0]))
        self.register_buffer("unit_rows", torch.tensor(False))

    @property
    def fitted(self) -> bool:
        return bool(self.mix[1])

    def forward(self, logits: Tensor, x: Any) -> Tensor:
        """``x`` are the features of the same nodes, as they are given."""
        rows = _rows(as_matrix(x), bool(self.unit_rows))
        of_features = rows @ self.weights.double().cpu().numpy() + self.bias.double().cpu().numpy()
        added = torch.from_numpy(log_softmax(of_features, axis=1)).to(logits)
        return self.mix[0] * logits.log_softmax(1) + self.mix[1] * added

    def fit(self, logits: Scores, x: Any, y: Nodes, train: Nodes, val: Nodes) -> bool:
        """Fits the regression on training nodes and its share on validation nodes, whose ``logits`` are given. Leaves
        everything as it is, and says so by False, where more of these would not be classified rightly.
        """
        found = fit_regression(x, y, train, val, logits.shape[1])
        if found is None:
            return False
        weights, bias, unit_rows = found
        parts = np.stack([log_softmax(logits, 1), log_softmax(_rows(as_matrix(x)[val], unit_rows) @ weights + bias, 1)])
        mix = _fitted_mix(parts, y[val])
        before, after = ((scores.argmax(1) == y[val]).sum() for scores in (logits, np.tensordot(mix, parts, 1)))
        if after <= before:
            return False
        for buffer, value in ((self.weights, weights), (self.bias, bias), (self.mix, mix)):
            buffer.copy_(torch.from_numpy(value))
        self.unit_rows.fill_(unit_rows)
        return True

    def out_of_fold(self, logits: Scores, x: Any, y: Nodes) -> Scores:
        """The logits of nodes that the share was fitted on, each by one that was fitted without it."""
        from sklearn.model_selection import KFold

        rows = _rows(as_matrix(x), bool(self.unit_rows))
        of_features = rows @ self.weights.double().cpu().numpy() + self.bias.double().cpu().numpy()
        parts, mixed = np.stack([log_softmax(logits, 1), log_softmax(of_features, 1)]), np.empty(logits.shape)
        for others, fold in KFold(min(_FOLDS, len(y)), shuffle=True, random_state=0).split(y):
            mixed[fold] = np.tensordot(_fitted_mix(parts[:, others], y[others]), parts[:, fold], 1)
        return mixed

    def refit(self, x: Any, y: Nodes, train: Nodes, val: Nodes, final: Nodes) -> None:
        """Fits the regression again on ``final`` nodes; its penalty and its share stay what validation nodes chose."""
        found = fit_regression(x, y, train, val, self.weights.shape[1], final)
        assert found is not None  # or it would not have been fitted
        self.weights.copy_(torch.from_numpy(found[0]))
        self.bias.copy_(torch.from_numpy(found[1]))


def _fitted_mix(parts: NDArray[np.float64], y: Nodes) -> NDArray[np.float64]:
    """The factors of the network and of the features ``(2, nodes, classes)`` that have the lowest log loss."""

    def loss(mix: NDArray[np.float64]) -> float:
        return -float(log_softmax(np.tensordot(mix, parts, 1), 1)[np.arange(len(y)), y].mean())

    found: NDArray[np.float64] = minimize(loss, np.array([1.0, 0.5]), method="L-BFGS-B", bounds=[(0, None)] * 2).x
    return found


def fit_regression(
    x: Any, y: Nodes, train: Nodes, val: Nodes, num_classes: int, final: Nodes | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool] | None:
    """Weights ``(features, classes)`` and bias of a logistic regression on training nodes, with the penalty that is
    best on validation nodes, and whether rows are to have length 1; None where it would take too long. With ``final``
    nodes, the weights are those of a regression on these, with that penalty.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression  # takes a while, and serves this alone
    from sklearn.preprocessing import StandardScaler

    matrix = as_matrix(x)
    size = matrix.nnz if sp.issparse(matrix) else matrix.size
    if size * num_classes > _PRODUCTS:
        return None
    unit_rows = sp.issparse(matrix) or float((matrix[train] == 0).mean()) > _MOSTLY
    others = _rows(matrix[val], unit_rows)

    def fitted(choice: float, nodes: Nodes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = _rows(matrix[nodes], unit_rows)
        scaler = StandardScaler(with_mean=not unit_rows, with_std=not unit_rows).fit(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=choice, max_iter=200).fit(scaler.transform(rows), y[nodes])
        weights, bias = _for_all_classes(model, num_classes)
        if not unit_rows:
            weights = weights / scaler.scale_[:, None]
            bias = bias - scaler.mean_ @ weights
        return weights, bias

    def loss(weights: NDArray[np.float64], bias: NDArray[np.float64]) -> float:
        return -float(log_softmax(others @ weights + bias, 1)[np.arange(len(val)), y[val]].mean())

    found = {choice: fitted(choice, train) for choice in _CHOICES}
    best = min(_CHOICES, key=lambda choice: loss(*found[choice]))
    return *(found[best] if final is None else fitted(best, final)), unit_rows


def regression_classes(x: Any, y: Nodes, train: Nodes, val: Nodes, nodes: Nodes, num_classes: int) -> Nodes:
    """The classes that features alone give to some nodes."""
    found = fit_regression(x, y, train, val, num_classes)
    if found is None:
        raise DataError("the features are too many for it")
    weights, bias, unit_rows = found
    classes: Nodes = (_rows(as_matrix(x)[nodes], unit_rows) @ weights + bias).argmax(1)
    return classes


def _for_all_classes(model: Any, num_classes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of two classes there is one row of weights; classes without a training node get none at all."""
    rows, bias = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        rows, bias = np.vstack([-rows, rows]) / 2, np.concatenate([-bias, bias]) / 2
    weights, biases = np.zeros((rows.shape[1], num_classes)), np.full(num_classes, -30.0)
    weights[:, model.classes_], biases[model.classes_] = rows.T, bias
    return weights, biases


def _rows(matrix: Any, unit_rows: bool) -> Any:
    """Rows in double precision, of length 1 if that is wanted."""
    from sklearn.preprocessing import normalize

    return normalize(matrix.astype(np.float64)) if unit_rows else matrix.astype(np.float64)


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
        points = points if self.space == "lorentz" else as_lorentz(points, self.space)
        square = squared_distances_of_rows(points, pairs)
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
