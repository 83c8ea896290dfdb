"""How good scores are, by names that tables use.

They are worked out by counting, in a few array operations: a general library's checks of its input take longer than an
epoch on a small graph does.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

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
    _check_finite(positive, negative)
    links, others = np.sort(positive), np.sort(negative)
    above, equal = _above_and_equal(others, links)
    links_from_here = len(links) - np.searchsorted(links, links, side="left")
    metrics = {
        "auc": _auc(above, equal, len(others)),
        "ap": float((links_from_here / (links_from_here + above + equal)).mean()),
    }
    for k in hits_at:
        if k <= len(others):
            metrics[f"hits@{k}"] = float((links > others[-k]).mean())
    metrics["mrr"] = float((1 / (1 + above + equal / 2)).mean())
    return metrics


def auc(positive: Scores, negative: Scores) -> float:
    """The probability that a link scores above another pair, equal scores counting one half."""
    _check_finite(positive, negative)
    others = np.sort(negative)
    return _auc(*_above_and_equal(others, positive), len(others))


def class_metrics(truth: Classes, predicted: Classes, num_classes: int) -> dict[str, float]:
    """Accuracy, macro F1, and for two classes the F1 of the second; the F1 of a class that nobody has or gets is 0."""
    confusion = _confusion(truth, predicted, num_classes)
    f1 = _f1(confusion)
    metrics = {"accuracy": float(confusion.trace() / confusion.sum()), "macro_f1": float(f1.mean())}
    return metrics | ({"f1": float(f1[1])} if num_classes == 2 else {})


def class_report(truth: Classes, predicted: Classes, num_classes: int) -> dict[str, Any]:
    """``classes``, with precision, recall, F1 and support (true items) of each, and ``confusion``, whose rows are true
    and whose columns are predicted classes; the matrix is left out where it is large.
    """
    confusion = _confusion(truth, predicted, num_classes)
    support, right = confusion.sum(1), confusion.diagonal()
    columns = {
        "precision": right / np.maximum(confusion.sum(0), 1),
        "recall": right / np.maximum(support, 1),
        "f1": _f1(confusion),
        "support": support,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    report: dict[str, Any] = {"classes": [dict(zip(columns, row, strict=True)) for row in rows]}
    return report | ({"confusion": confusion.tolist()} if num_classes <= _LARGEST_MATRIX else {})


def _confusion(truth: Classes, predicted: Classes, num_classes: int) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = np.bincount(truth * num_classes + predicted, minlength=num_classes**2)
    return counts.reshape(num_classes, num_classes)


def _f1(confusion: NDArray[np.int64]) -> NDArray[np.float64]:
    f1: NDArray[np.float64] = 2 * confusion.diagonal() / np.maximum(confusion.sum(0) + confusion.sum(1), 1)
    return f1


def predicted_classes(logits: Tensor) -> Classes:
    """The likeliest class of each row."""
    scores = logits.detach().cpu().numpy()
    _check_finite(scores)
    return scores.argmax(1)


def majority_metrics(train: Classes, truth: Classes, num_classes: int) -> dict[str, float]:
    """The metrics of one who always names the most frequent class of the training part."""
    return class_metrics(truth, np.full_like(truth, np.bincount(train).argmax()), num_classes)


def _above_and_equal(ordered: Scores, scores: Scores) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each score, how many of the ordered ones are above it, and how many are equal."""
    not_above = np.searchsorted(ordered, scores, side="right")
    return len(ordered) - not_above, not_above - np.searchsorted(ordered, scores, side="left")


def _auc(above: NDArray[np.int64], equal: NDArray[np.int64], count: int) -> float:
    return float(1 - (above + equal / 2).mean() / count)


def _check_finite(*scores: Scores) -> None:
    if not all(np.isfinite(part).all() for part in scores):
        raise NonFiniteError("the scores hold NaN or infinity")
