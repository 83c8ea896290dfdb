"""Scores of links that nobody has to learn, to stand beside what was learnt."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.datasets import EdgeSplit
from h2hgcn.tasks.metrics import Scores, auc

Pairs = NDArray[np.int64]
PairScores = Callable[[Pairs], Scores]


def trivial_link_scores(x: Any, split: EdgeSplit, part: str = "test") -> dict[str, float]:
    """The ROC AUC on a part of a split of: the best single feature (chosen on the validation part), the feature
    distance, the product of degrees, the number of common neighbours, and Adamic-Adar, all on the training graph.

    ``x`` is an array, or a sparse matrix of SciPy or torch.
    """
    x, graph = _as_matrix(x), _adjacency(split)
    degrees = np.asarray(graph.sum(1)).ravel()
    with np.errstate(divide="ignore"):
        rarity = np.where(degrees > 1, 1 / np.log(degrees), 0.0)
    best = x[:, [_best_feature(x, split)]]
    scores: dict[str, PairScores] = {
        "best single feature": lambda pairs: _closeness(best, pairs),
        "feature distance": lambda pairs: _closeness(x, pairs),
        "degree product": lambda pairs: degrees[pairs[:, 0]] * degrees[pairs[:, 1]],
        "common neighbours": lambda pairs: _shared(graph, graph, pairs),
        "Adamic-Adar": lambda pairs: _shared(graph, sp.csr_array(graph * rarity), pairs),
    }
    positive, negative = getattr(split, part), getattr(split, f"{part}_neg")
    return {name: auc(score(positive), score(negative)) for name, score in scores.items()}


def _as_matrix(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    if x.layout == torch.strided:
        return x.numpy()
    coo = x.to_sparse_coo().coalesce()
    return sp.csr_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(coo.shape))


def _adjacency(split: EdgeSplit) -> sp.csr_array:
    rows, columns = split.train_edge_index().numpy()
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(split.num_nodes, split.num_nodes))


def _best_feature(x: Any, split: EdgeSplit) -> int:
    """The column whose differences rank the validation links best."""
    positive, negative = (_differences(x, pairs) for pairs in (split.val, split.val_neg))
    return int(np.argmax([auc(-abs(a), -abs(b)) for a, b in zip(_columns(positive), _columns(negative), strict=True)]))


def _columns(matrix: Any) -> Any:
    if not sp.issparse(matrix):
        return matrix.T
    by_column = matrix.tocsc()
    return (by_column[:, [k]].toarray().ravel() for k in range(matrix.shape[1]))


def _differences(x: Any, pairs: Pairs) -> Any:
    return x[pairs[:, 0]].astype(np.float64) - x[pairs[:, 1]].astype(np.float64)


def _closeness(x: Any, pairs: Pairs) -> Scores:
    differences = _differences(x, pairs)
    squares = differences.multiply(differences) if sp.issparse(differences) else differences**2
    return -np.sqrt(np.asarray(squares.sum(1)).ravel())


def _shared(graph: sp.csr_array, weighted: sp.csr_array, pairs: Pairs) -> Scores:
    """The sum of a weight over the neighbours that both nodes of a pair have."""
    return np.asarray((graph[pairs[:, 0]] * weighted[pairs[:, 1]]).sum(1)).ravel()
