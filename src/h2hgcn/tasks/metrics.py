"""How good scores are, by names that tables use.

Written out, since they are taken after every epoch: scikit-learn checks its arguments for longer than a small graph
takes to be encoded.
"""

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]
Classes = NDArray[np.int64]


def link_metrics(positive: Scores, negative: Scores, hits_at: tuple[int, ...] = (10, 50)) -> dict[str, float]:
    """ROC AUC, average precision, Hits@K and mean reciprocal rank of links against pairs without one.

    Hits@K is the share of links that score above the K-th best other pair (all of them, if there are fewer than K);
    the rank of a link is counted among all other pairs, equal scores sharing the mean rank.
    """
    if not (np.isfinite(positive).all() and np.isfinite(negative).all()):
        raise ValueError("scores hold NaN or infinity, which have no rank; the weights of the model went bad")
    links, others = np.sort(positive), np.sort(negative)
    above, not_below = (len(others) - np.searchsorted(others, links, side=side) for side in ("right", "left"))
    rank = (above + not_below) / 2
    found = len(links) - np.searchsorted(links, links, side="left")
    metrics = {
        "auc": float(1 - rank.mean() / len(others)),
        # precision at the score of each link: recall rises by one link's share there
        "ap": float((found / (found + not_below)).mean()),
    }
    for k in hits_at:
        metrics[f"hits@{k}"] = float((links > others[-k]).mean()) if k <= len(others) else 1.0
    metrics["mrr"] = float((1 / (1 + rank)).mean())
    return metrics


def class_metrics(truth: Classes, predicted: Classes, num_classes: int) -> dict[str, float]:
    """Accuracy, macro F1, and for two classes the F1 of the second."""
    hits, given, named = (
        np.bincount(classes, minlength=num_classes)[:num_classes]
        for classes in (truth[truth == predicted], truth, predicted)
    )
    f1 = 2 * hits / np.maximum(given + named, 1)
    metrics = {"accuracy": float((truth == predicted).mean()), "macro_f1": float(f1.mean())}
    if num_classes == 2:
        metrics["f1"] = float(f1[1])
    return metrics


def majority_metrics(train: Classes, truth: Classes, num_classes: int) -> dict[str, float]:
    """The metrics of one who always names the most frequent class of the training part."""
    return class_metrics(truth, np.full_like(truth, np.bincount(train).argmax()), num_classes)
