"""Scores of links that nobody has to learn, to stand beside what was learnt."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from h2hgcn.datasets import EdgeSplit
from h2hgcn.tasks.metrics import Scores, link_metrics

Pairs = NDArray[np.int64]


def trivial_link_scores(x: NDArray[np.floating], split: EdgeSplit, part: str = "test") -> dict[str, float]:
    """The ROC AUC on a part of a split of: the best single feature (chosen on the validation part), the feature
    distance, the product of degrees, the number of common neighbours, and Adamic-Adar, all on the training graph.
    """
    positive, negative = getattr(split, part), getattr(split, f"{part}_neg")

    def auc(scores: Any) -> float:
        return link_metrics(scores(positive), scores(negative))["auc"]

    graph = _adjacency(split)
    degrees = np.asarray(graph.sum(1)).ravel()
    with np.errstate(divide="ignore"):
        rarity = np.where(degrees > 1, 1 / np.log(degrees), 0.0)
    return {
        "best single feature": auc(_closeness(x[:, [_best_feature(x, split)]])),
        "feature distance": auc(_closeness(x)),
        "degree product": auc(lambda pairs: degrees[pairs[:, 0]] * degrees[pairs[:, 1]]),
        "common neighbours": auc(lambda pairs: _shared(graph, graph, pairs)),
        "Adamic-Adar": auc(lambda pairs: _shared(graph, sp.csr_array(graph * rarity), pairs)),
    }


def _adjacency(split: EdgeSplit) -> sp.csr_array:
    rows, columns = split.train_edge_index().numpy()
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(split.num_nodes, split.num_nodes))


def _best_feature(x: NDArray[np.floating], split: EdgeSplit) -> int:
    """The column whose differences rank the validation links best."""
    scores = [
        link_metrics(closeness(split.val), closeness(split.val_neg))["auc"]
        for closeness in (_closeness(x[:, [column]]) for column in range(x.shape[1]))
    ]
    return int(np.argmax(scores))


def _closeness(x: NDArray[np.floating]) -> Any:
    return lambda pairs: -np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)


def _shared(graph: sp.csr_array, weighted: sp.csr_array, pairs: Pairs) -> Scores:
    """The sum of a weight over the neighbours that both nodes of a pair have."""
    return np.asarray((graph[pairs[:, 0]] * weighted[pairs[:, 1]]).sum(1)).ravel()
