"""How good scores are, by names that tables use."""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

Scores = NDArray[np.floating]
Classes = NDArray[np.int64]


def link_metrics(positive: Scores, negative: Scores, hits_at: tuple[int, ...] = (10, 50)) -> dict[str, float]:
    """ROC AUC, average precision, Hits@K and mean reciprocal rank of links against pairs without one.

    Hits@K is the share of links that score above the K-th best other pair (all of them, if there are fewer than K);
    the rank of a link is counted among all other pairs, equal scores sharing the mean rank.
    """
    truth = np.concatenate([np.ones(len(positive)), np.zeros(len(negative))])
    scores = np.concatenate([positive, negative])
    metrics = {"auc": float(roc_auc_score(truth, scores)), "ap": float(average_precision_score(truth, scores))}
    ordered = np.sort(negative)
    for k in hits_at:
        metrics[f"hits@{k}"] = float((positive > ordered[-k]).mean()) if k <= len(ordered) else 1.0
    above = len(ordered) - np.searchsorted(ordered, positive, side="right")
    equal = np.searchsorted(ordered, positive, side="right") - np.searchsorted(ordered, positive, side="left")
    metrics["mrr"] = float((1 / (1 + above + equal / 2)).mean())
    return metrics


def class_metrics(truth: Classes, predicted: Classes, num_classes: int) -> dict[str, float]:
    """Accuracy, macro F1, and for two classes the F1 of the second."""
    metrics = {
        "accuracy": float(accuracy_score(truth, predicted)),
        "macro_f1": float(
            f1_score(truth, predicted, labels=np.arange(num_classes), average="macro", zero_division=0.0)
        ),
    }
    if num_classes == 2:
        metrics["f1"] = float(f1_score(truth, predicted, labels=[1], average="macro", zero_division=0.0))
    return metrics


def majority_metrics(train: Classes, truth: Classes, num_classes: int) -> dict[str, float]:
    """The metrics of one who always names the most frequent class of the training part."""
    return class_metrics(truth, np.full_like(truth, np.bincount(train).argmax()), num_classes)
