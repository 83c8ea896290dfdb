"""Scores that need no training, to be compared with those of a model: of links, and of the classes of nodes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from h2hgcn.datasets import DataError, EdgeSplit
from h2hgcn.datasets.pairs import Pairs
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.tasks.metrics import Metrics, Scores, auc, link_metrics
from h2hgcn.tasks.neighborhoods import Neighborhoods, link_matrix, neighbor_weights, shared_neighbors
from h2hgcn.tasks.top_links import LinkScores, precision_of

PairScores = Callable[[Pairs], Scores]

# Numbers of features that are read at once.
_BLOCK = 1 << 22

# The best single feature is chosen with one AUC a column. Large graphs use part of their validation pairs for it.
_MOST_COLUMNS = 20_000
_COLUMN_NUMBERS = 1 << 24
_FEWEST_PAIRS = 1000

# The columns of ``neighbor_weights`` of baselines that rank pairs by shared neighbors.
_SHARED = {"common neighbors": 0, "Adamic-Adar": 1}

# Truncated SVD: its largest rank, the numbers in its vectors, which bound its memory to about 200 MB, and in the
# vectors of all iterations, which bound its time to some ten seconds. Graphs that leave a rank below 8 are skipped.
_RANK = 64
_VECTOR_NUMBERS = 1 << 23
_ITERATION_NUMBERS = 1 << 31
_LOWEST_RANK = 8

# Zhou et al. leave these open; the values are common on citation graphs.
_STEPS = 50
_ALPHA = 0.9
# Label propagation holds a number for each class and entry of the adjacency: 1 GB.
_MESSAGES = 1 << 28


class Baselines(NamedTuple):
    """The metrics of each baseline by its name, and for those that are missing the reason."""

    metrics: dict[str, Metrics]
    skipped: dict[str, str]


def run_baselines(baselines: dict[str, Callable[[], Metrics]]) -> Baselines:
    """Runs each baseline. One that fails is skipped, whatever the reason: it must not cost anyone a trained model."""
    metrics, skipped = {}, {}
    for name, baseline in baselines.items():
        try:
            metrics[name] = baseline()
        except Exception as error:
            skipped[name] = str(error) or type(error).__name__
    return Baselines(metrics, skipped)


def link_baselines(x: Any, split: EdgeSplit, part: str = "test") -> Baselines:
    """AUC, AP, Hits@K and MRR on a part of a split, without training:

    - ``best single feature``: the difference of one feature, the column with the best AUC on the validation part.
    - ``feature distance`` and ``feature cosine`` of the two nodes' features.
    - ``degree product``, ``common neighbors`` and ``Adamic-Adar`` in the training graph.
    - ``truncated SVD``: the entry of the pair in a low-rank approximation of the training graph's adjacency, of the
      rank (2, 4, ..., 64) with the best AUC on the validation part.

    On the test part, common neighbors and Adamic-Adar also have ``precision@100`` (see ``precision_of``).

    Neighbors and degrees ignore the direction of edges, also in directed graphs.

    Args:
        x: Features, an array or a sparse matrix of SciPy or torch.
        split: Training edges, and the pairs to score.
        part: ``"val"`` or ``"test"``.
    """
    x, graph = as_matrix(x), link_matrix(split.train, split.num_nodes)
    degrees = np.diff(graph.indptr).astype(np.float64)
    weights = neighbor_weights(degrees)
    # what makes a scorer: some look at the validation part first, which may fail and takes time
    scorers: dict[str, Callable[[], PairScores]] = {
        "best single feature": lambda: partial(_by_blocks, _closeness, x[:, [_best_column(x, split)]]),
        "feature distance": lambda: partial(_by_blocks, _closeness, x),
        "feature cosine": lambda: partial(_by_blocks, _cosine, x),
        "degree product": lambda: lambda pairs: degrees[pairs].prod(1),
        "common neighbors": lambda: lambda pairs: shared_neighbors(graph, weights[:, :1], pairs)[:, 0],
        "Adamic-Adar": lambda: lambda pairs: shared_neighbors(graph, weights[:, 1:2], pairs)[:, 0],
        "truncated SVD": lambda: _low_rank(graph, split),
    }
    links, others = getattr(split, part), getattr(split, f"{part}_neg")

    def metrics(name: str, make: Callable[[], PairScores]) -> Metrics:
        score = make()
        found = link_metrics(score(links), score(others))
        if part != "val" and name in _SHARED:
            zeros, neighborhoods = np.zeros(split.num_nodes), Neighborhoods(split.train, split.num_nodes)
            scores = LinkScores(zeros, zeros, graph=neighborhoods, weights=np.eye(3)[_SHARED[name]])
            found |= precision_of(scores, split, part)
        return found

    return run_baselines({name: partial(metrics, name, make) for name, make in scorers.items()})


def propagated_classes(adjacency: Adjacency, labels: Tensor, train: Tensor) -> NDArray[np.int64]:
    """The class that label propagation (Zhou et al. 2004) gives to every node from the training nodes; the most
    frequent one where no label arrives.
    """
    index, weights = adjacency.edges(self_loops=False)
    num_classes = int(labels.max()) + 1
    if index.shape[1] * num_classes > _MESSAGES:
        raise DataError(f"the graph is too large for it, with {index.shape[1]:,} edges and {num_classes:,} classes")
    index, weights = gcn_norm(index, weights.float(), adjacency.num_nodes, add_self_loops=False)  # not done for weights
    ends, known = index.cpu().numpy(), labels[train].cpu().numpy()
    matrix = sp.csr_array((weights.cpu().numpy(), (ends[1], ends[0])), shape=(adjacency.num_nodes,) * 2)
    start = np.zeros((adjacency.num_nodes, num_classes), np.float32)
    start[train.cpu().numpy(), known] = 1
    scores = start
    for _ in range(_STEPS):
        scores = (_ALPHA * (matrix @ scores) + (1 - _ALPHA) * start).clip(0, 1)
    classes: NDArray[np.int64] = scores.argmax(1)
    classes[scores.max(1) == 0] = np.bincount(known).argmax()
    return classes


def as_matrix(x: Any) -> Any:
    """A NumPy array, or a sparse matrix in rows."""
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        if x.layout == torch.strided:
            return x.numpy()
        coo = x.to_sparse_coo().coalesce()
        return sp.csr_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(coo.shape))
    return sp.csr_array(x) if sp.issparse(x) else np.asarray(x)


def _by_blocks(score: Callable[[Any, Any], Scores], x: Any, pairs: Pairs) -> Scores:
    """The score of the rows of each pair, with a bounded number of rows in memory."""
    width = int(np.diff(x.indptr).max(initial=1)) if sp.issparse(x) else x.shape[1]
    size = max(1, _BLOCK // max(width, 1))
    blocks = (pairs[first : first + size] for first in range(0, max(len(pairs), 1), size))
    return np.concatenate([score(*(x[ends].astype(np.float64) for ends in block.T)) for block in blocks])


def _closeness(first: Any, second: Any) -> Scores:
    return -np.sqrt(_row_products(first - second, first - second))


def _cosine(first: Any, second: Any) -> Scores:
    """The cosine of the angle; 0 where a row is 0."""
    lengths = np.sqrt(_row_products(first, first) * _row_products(second, second))
    return _row_products(first, second) / np.where(lengths > 0, lengths, 1)


def _row_products(first: Any, second: Any) -> Scores:
    products = first.multiply(second) if sp.issparse(first) else first * second
    return np.asarray(products.sum(1), np.float64).ravel()


def _best_column(x: Any, split: EdgeSplit) -> int:
    """The column whose differences rank the validation links best."""
    count = x.shape[1]
    if count > _MOST_COLUMNS:
        raise DataError(f"{count:,} features are too many to try one by one")

    def columns(pairs: Pairs) -> Iterator[Scores]:
        ends = pairs[: max(_FEWEST_PAIRS, _COLUMN_NUMBERS // count)].T
        first, second = (x[nodes].astype(np.float64) for nodes in ends)
        differences = -abs(first - second)
        if not sp.issparse(differences):
            return iter(differences.T)
        by_column = differences.tocsc()
        return (by_column[:, [k]].toarray().ravel() for k in range(count))

    return int(np.argmax([auc(*both) for both in zip(columns(split.val), columns(split.val_neg), strict=True)]))


def _low_rank(graph: sp.csr_array, split: EdgeSplit) -> PairScores:
    """The entries of the adjacency's approximation of the rank that is best on the validation part."""
    rank = min(_RANK, split.num_nodes - 1, _VECTOR_NUMBERS // split.num_nodes)
    if rank < min(_LOWEST_RANK, split.num_nodes - 1):
        raise DataError(f"the graph is too large for it, with {split.num_nodes:,} nodes")
    values, vectors = truncated_svd(graph, rank)

    def entries(rank: int, pairs: Pairs) -> Scores:
        def products(first: Any, second: Any) -> Scores:
            return ((first * second) @ values[:rank]).round(12)  # so that what is equal but for rounding is equal

        return _by_blocks(products, vectors[:, :rank], pairs)

    ranks = [k for k in (2 << power for power in range(_RANK.bit_length())) if k <= len(values)] or [len(values)]
    best = max(ranks, key=lambda k: auc(entries(k, split.val), entries(k, split.val_neg)))
    return partial(entries, best)


def truncated_svd(graph: sp.csr_array, rank: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values ``(rank,)`` and vectors ``(n, rank)`` such that ``vectors * values @ vectors.T`` approximates a symmetric
    matrix best, largest absolute value first. Fewer, where the others do not converge in reasonable time.
    """
    num_nodes = graph.shape[0]
    start = np.random.default_rng(0).standard_normal(num_nodes)
    restarts = max(5, _ITERATION_NUMBERS // (num_nodes * rank * rank))
    try:
        values, vectors = eigsh(graph.astype(np.float64), rank, v0=start, maxiter=restarts)
    except ArpackNoConvergence as error:
        values, vectors = error.eigenvalues, error.eigenvectors
        if not len(values):
            raise
    order = np.argsort(-abs(values), kind="stable")
    return values[order], vectors[:, order]
