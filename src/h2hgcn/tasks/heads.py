"""Classifiers on the points of an encoder, and a logistic regression on features."""

import warnings
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, global_mean_pool

from h2hgcn.datasets import DataError
from h2hgcn.geometry import lorentz
from h2hgcn.layers import CentroidDistance
from h2hgcn.layers.decoders import EuclideanCentroids
from h2hgcn.layers.spaces import Space, as_lorentz, check_space
from h2hgcn.tasks.baselines import as_matrix
from h2hgcn.tasks.metrics import ClassCalibration, Scores

Nodes = NDArray[np.int64]

# Penalties of the regression, of which validation nodes choose, and the most products of a step: about a minute.
_CHOICES, _PRODUCTS = (1.0, 10.0), 1 << 28

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
        return self.combined(logits, torch.from_numpy(self._log_chances(x)))

    def combined(self, logits: Tensor, added: Tensor) -> Tensor:
        """Logits with what the features add: the logarithms of their probabilities."""
        added = added.to(logits)
        return self.mix[0] * logits.log_softmax(1) + self.mix[1] * added

    def _log_chances(self, x: Any) -> Scores:
        """What the features alone say."""
        weights, bias = (part.double().cpu().numpy() for part in (self.weights, self.bias))
        return log_softmax(_rows(as_matrix(x), bool(self.unit_rows)) @ weights + bias, axis=1)

    def fit(self, logits: Scores, x: Any, y: Nodes, train: Nodes, val: Nodes) -> bool:
        """Fits the regression on training nodes and its share on validation nodes, whose ``logits`` are given. Leaves
        everything as it is, and returns False, unless that classifies more of these rightly.
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

        parts, mixed = np.stack([log_softmax(logits, 1), self._log_chances(x)]), np.empty(logits.shape)
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

    return minimize(loss, np.array([1.0, 0.5]), method="L-BFGS-B", bounds=[(0, None)] * 2).x


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

    def fitted(choice: float, nodes: Nodes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = _rows(matrix[nodes], unit_rows)
        scaler = StandardScaler(with_mean=not unit_rows, with_std=not unit_rows).fit(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=choice, max_iter=200).fit(scaler.transform(rows), y[nodes])
        coefficients, intercepts = model.coef_, model.intercept_
        if len(model.classes_) == 2:  # for which there is one row
            coefficients = np.vstack([-coefficients, coefficients]) / 2
            intercepts = np.concatenate([-intercepts, intercepts]) / 2
        weights, bias = np.zeros((rows.shape[1], num_classes)), np.full(num_classes, -30.0)
        weights[:, model.classes_], bias[model.classes_] = coefficients.T, intercepts
        if not unit_rows:
            weights = weights / scaler.scale_[:, None]
            bias = bias - scaler.mean_ @ weights
        return weights, bias

    def loss(choice: float) -> float:
        weights, bias = found[choice]
        logs = log_softmax(_rows(matrix[val], unit_rows) @ weights + bias, 1)
        return -float(logs[np.arange(len(val)), y[val]].mean())

    found = {choice: fitted(choice, train) for choice in _CHOICES}
    best = min(_CHOICES, key=loss)
    return *(found[best] if final is None else fitted(best, final)), unit_rows


def regression_classes(x: Any, y: Nodes, train: Nodes, val: Nodes, nodes: Nodes, num_classes: int) -> Nodes:
    """The classes that features alone give to some nodes."""
    found = fit_regression(x, y, train, val, num_classes)
    if found is None:
        raise DataError("the features are too many for it")
    weights, bias, unit_rows = found
    return (_rows(as_matrix(x)[nodes], unit_rows) @ weights + bias).argmax(1)


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
    if decoder == "directed" and not directed:
        raise DataError("decoder='directed' needs a directed graph; load it with directed=True (--directed)")
    if directed and decoder in ("auto", "popularity"):
        return "directed"
    return "symmetric" if decoder == "auto" else decoder


def tangents_of(points: Tensor, space: Space, distance_scale: Tensor | float = 1.0) -> Tensor:
    """Points as tangent vectors at the origin; Euclidean points as they are."""
    if space == "euclidean":
        return points
    return lorentz.log_origin(as_lorentz(points, space)) * distance_scale


class ClassHead(nn.Module):
    """Logits of classes, of nodes or, with ``batch``, of graphs.

    ``"centroids"``: distances to learned centroids into a linear classifier (Dai et al. 2021, section 4.4), averaged
    over each graph. ``"linear"``: the linear classifier alone, on hyperbolic points at the tangent space of the origin,
    after a mean over each graph. None takes centroids for hyperbolic points and the linear classifier for Euclidean
    ones. ``pooling`` is over the nodes of a graph. With ``norm``, what the classifier sees is standardized.
    ``calibrate`` adds a ``ClassCalibration``, which is fitted once training is over.
    """

    calibration: ClassCalibration | None

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
        self.centroids: nn.Module | None = None
        if (classifier or ("linear" if flat else "centroids")) == "centroids":
            self.centroids = (EuclideanCentroids if flat else CentroidDistance)(encoder.dim, num_centroids)
        width = encoder.dim if self.centroids is None else num_centroids
        self.norm = BatchNorm(width, allow_single_element=True) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, num_classes)
        self.calibration = ClassCalibration(num_classes) if calibrate else None

    @property
    def calibrated(self) -> bool:
        return self.calibration is not None and self.calibration.fitted

    def probabilities(self, logits: Tensor) -> Tensor:
        """The probabilities of the classes, calibrated if that was fitted."""
        return logits.softmax(1) if self.calibration is None else self.calibration(logits)

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
        else:
            points = points if self.space == "euclidean" else as_lorentz(points, self.space)
            hidden = self.centroids(points, batch, num_graphs, distance_scale=distance_scale)
        if batch is not None and self.pooling == "sum":
            hidden = hidden * torch.bincount(batch, minlength=len(hidden)).to(hidden.dtype).unsqueeze(1)
        return self.classifier(self.dropout(self.norm(hidden)))
