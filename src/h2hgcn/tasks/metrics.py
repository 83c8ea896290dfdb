"""Metrics, by the names that tables use, and calibration of probabilities."""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from torch import Tensor, nn

from h2hgcn.errors import NonFiniteError

Scores = NDArray[np.floating]
Classes = NDArray[np.int64]
Metrics = dict[str, float]

_LARGEST_MATRIX = 100  # classes of a confusion matrix that is kept


def link_metrics(positive: Scores, negative: Scores, hits_at: tuple[int, ...] = (10, 50)) -> dict[str, float]:
    """ROC AUC, average precision, Hits@K and mean reciprocal rank of links against pairs without one.

    Hits@K is the share of links that score above the K-th best other pair, left out where there are fewer than K; the
    rank of a link is counted among all other pairs, equal scores sharing the mean rank.
    """
    links = np.sort(positive)
    others, above, equal = _compared(links, negative)
    links_from_here = len(links) - np.searchsorted(links, links, side="left")
    metrics = {
        "auc": float(1 - (above + equal / 2).mean() / len(others)),
        "ap": float((links_from_here / (links_from_here + above + equal)).mean()),
    }
    for k in hits_at:
        if k <= len(others):
            metrics[f"hits@{k}"] = float((links > others[-k]).mean())
    metrics["mrr"] = float((1 / (1 + above + equal / 2)).mean())
    return metrics


def auc(positive: Scores, negative: Scores) -> float:
    """The probability that a link scores above another pair, equal scores counting one half."""
    others, above, equal = _compared(positive, negative)
    return float(1 - (above + equal / 2).mean() / len(others))


def _compared(scores: Scores, others: Scores) -> tuple[Scores, NDArray[np.int64], NDArray[np.int64]]:
    """The other scores in order, and for each score how many of them are above it, and how many equal."""
    _check_finite(scores, others)
    ordered = np.sort(others)
    not_above = np.searchsorted(ordered, scores, side="right")
    return ordered, len(ordered) - not_above, not_above - np.searchsorted(ordered, scores, side="left")


def _check_finite(*scores: Scores) -> None:
    if not all(np.isfinite(part).all() for part in scores):
        raise NonFiniteError("the scores hold NaN or infinity")


def class_metrics(truth: Classes, predicted: Classes, num_classes: int) -> dict[str, float]:
    """Accuracy, macro F1, and for two classes the F1 of the second; the F1 of a class that nobody has or gets is 0."""
    confusion, f1 = _confusion(truth, predicted, num_classes)
    metrics = {"accuracy": float(confusion.trace() / confusion.sum()), "macro_f1": float(f1.mean())}
    return metrics | ({"f1": float(f1[1])} if num_classes == 2 else {})


def class_report(truth: Classes, predicted: Classes, num_classes: int) -> dict[str, Any]:
    """``classes``, with precision, recall, F1 and support (true items) of each, and ``confusion``, whose rows are true
    and whose columns are predicted classes; the matrix is left out where it is large.
    """
    confusion, f1 = _confusion(truth, predicted, num_classes)
    support, right = confusion.sum(1), confusion.diagonal()
    precision, recall = right / np.maximum(confusion.sum(0), 1), right / np.maximum(support, 1)
    columns = {"precision": precision, "recall": recall, "f1": f1, "support": support}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    report: dict[str, Any] = {"classes": [dict(zip(columns, row, strict=True)) for row in rows]}
    return report | ({"confusion": confusion.tolist()} if num_classes <= _LARGEST_MATRIX else {})


def _confusion(truth: Classes, predicted: Classes, num_classes: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The confusion matrix and the F1 of each class."""
    counts = np.bincount(truth * num_classes + predicted, minlength=num_classes**2)
    confusion = counts.reshape(num_classes, num_classes)
    return confusion, 2 * confusion.diagonal() / np.maximum(confusion.sum(0) + confusion.sum(1), 1)


def predicted_classes(logits: Tensor) -> Classes:
    """The likeliest class of each row."""
    scores = logits.detach().cpu().numpy()
    _check_finite(scores)
    return scores.argmax(1)


def majority_metrics(train: Classes, truth: Classes, num_classes: int) -> dict[str, float]:
    """The metrics of one who always names the most frequent class of the training part."""
    return class_metrics(truth, np.full_like(truth, np.bincount(train).argmax()), num_classes)


# Fewer validation links, nodes or graphs than this say too little.
FEWEST = 20

# Of links: the pieces of the map, the smallest slope, which keeps it strictly increasing, and the penalties on slopes
# that differ and on steep ones, in units of one validation link.
_PIECES, _SMALLEST, _ROUGHNESS, _STEEPNESS = 6, 1e-3, 1.0, 0.01

# Other pairs are fitted in this many groups of nearly equal logits, the highest ones by themselves.
_GROUPS = 4000

# Of classes: the penalty on temperatures that differ, in units of one validation item, and the widest range of their
# logarithms.
_ALIKE, _WIDEST = 32.0, 3.0

# Of the top class: 15 bins of equal width (Guo et al. 2017). Of links, whose probabilities go over many orders of
# magnitude: 1, 2 and 5 of each of them.
CLASS_BINS = np.linspace(0, 1, 16)
LINK_BINS = np.array([0.0, *(digit * 10.0**power for power in range(-6, 0) for digit in (1, 2, 5)), 1.0])


class LinkCalibration(nn.Module):
    """From logits of links to probabilities: ``sigmoid(f(logit))``, where ``f`` is increasing and piecewise linear.

    It is Platt scaling (a logistic regression on the logit) whose slope may change at quantiles of the links' logits.
    ``f`` is strictly increasing, so that calibration never changes an order, and is linear beyond the logits that it
    was fitted on. Until it is fitted, probabilities are ``sigmoid(logit)``.
    """

    knots: Tensor
    slopes: Tensor
    bias: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("knots", torch.zeros(_PIECES - 1))
        self.register_buffer("slopes", torch.zeros(_PIECES))
        self.register_buffer("bias", torch.zeros(()))

    @property
    def fitted(self) -> bool:
        return bool(self.slopes.any())

    def forward(self, logits: Tensor) -> Tensor:
        """The probabilities of links."""
        return self.fitted_map(logits) if self.fitted else logits.sigmoid()

    def fitted_map(self, logits: Tensor) -> Tensor:
        """The probabilities of links by what was fitted."""
        total, knots = self.bias.to(logits).expand_as(logits), [None, *self.knots.to(logits), None]
        for slope, limits in zip(self.slopes.to(logits), pairwise(knots), strict=True):
            total = total + slope * logits.clamp(*limits)
        return total.sigmoid()

    def fit(self, logits: Scores, labels: NDArray[np.bool_], weights: NDArray[np.float64]) -> bool:
        """Fits the map to pairs that are links or not, by the log loss, each pair counting as much as its weight.

        Leaves everything as it is, and returns False, where there are fewer than ``FEWEST`` links.
        """
        if labels.sum() < FEWEST or labels.all():
            return False
        links, others = logits[labels], np.sort(logits[~labels])[::-1]
        scale = max(float(links.std()), 1e-6)
        knots = np.quantile(links, np.arange(1, _PIECES) / _PIECES)
        unit = weights[labels].mean()  # so that a link counts as one observation, which it is
        starts = np.unique(np.geomspace(1, len(others), min(_GROUPS, len(others))).astype(np.int64)) - 1
        sizes = np.diff(starts, append=len(others))
        x = np.concatenate([links, np.add.reduceat(others, starts) / sizes])
        y = np.arange(len(x)) < len(links)
        w = np.concatenate([weights[labels], sizes * weights[~labels].mean()]) / unit
        pieces = np.column_stack([x.clip(*limits) for limits in pairwise([None, *knots, None])])
        middle = pieces[: len(links)].mean(0)
        rows = np.column_stack([np.ones(len(x)), (pieces - middle) / scale])
        found = _logistic_fit(rows, y, w)
        slopes = found[1:] / scale
        self.knots.copy_(torch.from_numpy(knots))
        self.slopes.copy_(torch.from_numpy(slopes))
        self.bias.fill_(found[0] - slopes @ middle)
        return True


def _logistic_fit(
    rows: NDArray[np.float64], labels: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A bias and positive slopes of a weighted logistic regression, with penalties on rough and on steep slopes."""

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores, slopes = rows @ values, values[1:]
        steps = np.diff(slopes)
        losses = np.logaddexp(0, np.where(labels, -scores, scores))
        penalty = _ROUGHNESS * (steps @ steps) / 2 + _STEEPNESS * (slopes @ slopes) / 2
        gradient = rows.T @ (weights * (expit(scores) - labels))
        gradient[1:] += _STEEPNESS * slopes + _ROUGHNESS * (np.pad(steps, (1, 0)) - np.pad(steps, (0, 1)))
        return float(weights @ losses + penalty), gradient

    rate = weights[labels].sum() / weights.sum()
    start = np.array([np.log(rate / (1 - rate)), *np.ones(rows.shape[1] - 1)])
    bounds = [(None, None), *[(_SMALLEST, None)] * (rows.shape[1] - 1)]
    found: NDArray[np.float64] = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1000, "ftol": 1e-12}
    ).x
    return found


class ClassCalibration(nn.Module):
    """From logits of classes to probabilities: ``softmax(logits / temperature)`` (Guo et al. 2017), with a temperature
    for each class that is the likeliest, which stays so. Until they are fitted, temperatures are 1.
    """

    temperatures: Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("temperatures", torch.ones(num_classes))

    @property
    def fitted(self) -> bool:
        return bool((self.temperatures != 1).any())

    def forward(self, logits: Tensor) -> Tensor:
        """The probabilities of the classes."""
        return (logits / self.temperatures[logits.argmax(1)].unsqueeze(1)).softmax(1)

    def fit(self, logits: Scores, y: Classes) -> bool:
        """Fits the temperatures by the log loss. Leaves them as they are, and returns False, where there are fewer
        than ``FEWEST`` rows.
        """
        if len(y) < FEWEST:
            return False
        likeliest, rows = logits.argmax(1), np.arange(len(y))

        def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            factors = np.exp(values[0] + values[1:][likeliest])[:, None]
            logs = log_softmax(logits * factors, 1)
            # one of a common temperature also decides where all rows are right
            prior = values[0] ** 2 / 2 + _ALIKE * (values[1:] @ values[1:]) / 2
            slopes = factors[:, 0] * ((np.exp(logs) * logits).sum(1) - logits[rows, y])
            of_classes: NDArray[np.float64] = np.bincount(likeliest, slopes, logits.shape[1])  # type: ignore[assignment]
            gradient = np.concatenate([[slopes.sum() + values[0]], of_classes + _ALIKE * values[1:]])
            return float(prior - logs[rows, y].sum()), gradient

        start = np.zeros(1 + logits.shape[1])
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(-_WIDEST, _WIDEST)] * len(start)).x
        self.temperatures.copy_(torch.from_numpy(np.exp(-found[0] - found[1:])))
        return True


Bins = list[dict[str, float]]


def reliability(
    probabilities: Scores, came_true: NDArray[np.bool_], weights: NDArray[np.float64] | None, edges: Scores
) -> Bins:
    """For each bin of probabilities that holds some: how many (``count``), their mean (``predicted``), and the
    fraction of them that came true (``actual``), each prediction counting as much as its weight.
    """
    weights = np.ones(len(probabilities)) if weights is None else weights
    place = np.searchsorted(edges[1:-1], probabilities, side="left")  # a bin holds its upper edge
    count, predicted, actual = (
        np.bincount(place, weights * values, len(edges) - 1) for values in (1.0, probabilities, came_true)
    )
    return [
        {"count": float(count[k]), "predicted": float(predicted[k] / count[k]), "actual": float(actual[k] / count[k])}
        for k in np.flatnonzero(count)
    ]


def class_reliability(probabilities: Tensor, y: Classes) -> Bins:
    """The bins of the likeliest classes, which come true where they are the classes ``y``."""
    sure, classes = probabilities.double().cpu().max(1)
    return reliability(sure.numpy(), classes.numpy() == y, None, CLASS_BINS)


def calibration_error(bins: Bins) -> float:
    """The expected calibration error (ECE): the mean distance of prediction and reality over bins, by their counts."""
    total = sum(one["count"] for one in bins)
    return sum(one["count"] * abs(one["predicted"] - one["actual"]) for one in bins) / total


def likeliest(probabilities: Scores, weights: NDArray[np.float64], count: float) -> NDArray[np.int64]:
    """The places of the highest probabilities whose weights add up to a count, and of those equal to the lowest."""
    order = np.argsort(-probabilities, kind="stable")
    last = min(int(np.searchsorted(np.cumsum(weights[order]), count)), len(order) - 1)
    return np.flatnonzero(probabilities >= probabilities[order[last]])
