"""What the neighborhoods of two nodes say about a link between them: degrees and shared neighbors.

Distances in an embedding tell well which nodes are close, and less well which of the close ones are linked: there the
old heuristics are hard to beat. A weighted sum of both is better than either (``docs/benchmarks/any_graph.md``).
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from h2hgcn.datasets.pairs import Pairs, contains
from h2hgcn.jit import compiled
from h2hgcn.kernels import run_on_rows
from h2hgcn.tasks.metrics import FEWEST, Scores

Rows = NDArray[np.float64]

_SHARED = 3  # features of a pair: common neighbors, Adamic-Adar, resource allocation
_DEGREE = 2  # features of a node

# The folds of out-of-fold scores, the fewest links that weights are fitted on, and the AUC that a better MRR may cost.
_FOLDS, _FEWEST, _TOLERANCE = 5, 10, 0.002

# Further pairs without an edge that weights are fitted on. All such pairs together count as much as the links, which
# serves the order of all pairs, or for the second piece so many times as much, which serves the top.
NUM_OTHERS = 30_000
_RATIO = 100

# The second piece counts from the likeliest 2 % of the pairs without an edge on, and so many times as much.
_LEVEL, _STEEPNESS = 0.98, 10.0

# Of candidates from two steps away: the neighbors of a node that are looked at, and the highest degree of such a one.
_REACH, HUB = 64, 1000


class Neighborhoods:
    """Degrees and shared neighbors in a graph.

    Neighbors ignore the direction of edges. Degrees count edges from a node for sources, and edges to it for targets.

    Args:
        edges: Pairs ``(k, 2)`` of nodes, each edge of an undirected graph once or twice; loops count for nothing.
        num_nodes: Number of nodes.
        directed: Whether the order of a pair matters.
    """

    def __init__(self, edges: Pairs, num_nodes: int, directed: bool = False) -> None:
        edges = edges[edges[:, 0] != edges[:, 1]]
        self.graph = link_matrix(edges, num_nodes)
        self.weights = neighbor_weights(np.diff(self.graph.indptr).astype(np.float64))
        self.directed = directed
        arcs = link_matrix(edges, num_nodes, directed=True) if directed else self.graph
        self.degrees = np.stack([np.diff(arcs.indptr), np.bincount(arcs.indices, minlength=num_nodes)])
        self._keys = np.repeat(np.arange(num_nodes), self.degrees[0]) * num_nodes + arcs.indices  # sorted
        linked = [degrees[degrees > 0] for degrees in self.degrees]
        self._typical = [_of_degrees(some).mean(0) if len(some) else 0.0 for some in linked]

    def features(self, pairs: Pairs) -> Rows:
        """Rows of numbers that tell of a link, ``(k, 3 + 2)`` or of a directed graph ``(k, 3 + 4)``.

        First ``log(1 + s)`` of the number ``s`` of common neighbors, of Adamic-Adar and of resource allocation. Then
        of a node's degree ``d``: ``log(1 + d)`` and its square; summed over both nodes, or of a directed graph for the
        source and for the target. A degree does not count the link itself. A node without edges counts as the others do
        on average: that it has none often says only which edges were hidden.
        """
        pairs = np.ascontiguousarray(pairs)
        known = self._are_edges(pairs)
        source, target = (self._of_ends(self.degrees[end][pairs[:, end]] - known, end) for end in (0, 1))
        of_nodes = [source, target] if self.directed else [source + target]
        return np.hstack([np.log1p(shared_neighbors(self.graph, self.weights, pairs)), *of_nodes])

    def of_nodes(self, weights: Rows, end: int) -> Rows:
        """What each node adds to links that it has no edge for, as their source (``end`` 0) or target (1), by each row
        of weights ``(p, n)``.
        """
        first = _SHARED + end * _DEGREE * self.directed
        return weights[:, first : first + _DEGREE] @ self._of_ends(self.degrees[end], end).T

    def _of_ends(self, degrees: NDArray[np.integer], end: int) -> Rows:
        return np.where(degrees[:, None] > 0, _of_degrees(degrees), self._typical[end])

    def of_rows(self, weights: Rows, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """What shared neighbors add to links of some nodes with all others, ``(p, nodes, n)`` by row of weights."""
        rows, total = self.graph[nodes], np.zeros((len(weights), len(nodes), self.graph.shape[0]))
        for kind in range(_SHARED):
            counted = (rows * self.weights[:, kind]).tocsr().astype(np.float64) @ self.graph
            total += weights[:, kind, None, None] * np.log1p(counted).toarray()
        return total

    def two_hops(self, nodes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """For each node some that it shares neighbors with, the highest by Adamic-Adar, -1 where there are fewer.

        Neighbors with many others are left out: they say little, and lead to all nodes.
        """
        starts, degrees = self.graph.indptr, np.diff(self.graph.indptr)
        found = np.full((len(nodes), count), -1)
        for row, node in enumerate(nodes):
            near = self.graph.indices[starts[node] : starts[node + 1]]
            near = near[degrees[near] <= HUB]
            near = near[np.argsort(degrees[near], kind="stable")[:_REACH]]
            others = np.concatenate([self.graph.indices[starts[k] : starts[k + 1]] for k in near] or [near])
            others, places = np.unique(others, return_inverse=True)
            scores = np.bincount(places, np.repeat(self.weights[near, 1], degrees[near]), len(others))
            best = others[np.argsort(-scores, kind="stable")[:count]]
            found[row, : len(best)] = best
        return found

    def _are_edges(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Whether each pair is an edge, source first."""
        return contains(self._keys, pairs[:, 0] * len(self.weights) + pairs[:, 1])


class FixedNeighborhoods(nn.Module):
    """``Neighborhoods.features`` of a graph by PyTorch's operations alone, for programs that are exported.

    For each pair it looks up all neighbors of the node that has fewer, by as many steps of a binary search as the
    other's could need. It takes as much memory for a pair as the second largest degree.
    """

    starts: Tensor
    neighbors: Tensor
    arc_starts: Tensor
    arcs: Tensor
    weights: Tensor
    degrees: Tensor
    typical: Tensor

    def __init__(self, graph: Neighborhoods) -> None:
        super().__init__()
        num_nodes = len(graph.weights)
        arcs = graph._keys % max(num_nodes, 1)
        buffers = {
            "starts": graph.graph.indptr, "neighbors": _not_empty(graph.graph.indices),
            "arc_starts": np.append(0, graph.degrees[0].cumsum()), "arcs": _not_empty(arcs),
            "weights": graph.weights, "degrees": graph.degrees,
            "typical": np.stack([np.broadcast_to(part, _DEGREE) for part in graph._typical]),
        }  # fmt: skip
        for name, values in buffers.items():
            kind = np.float64 if name in ("weights", "typical") else np.int64
            self.register_buffer(name, torch.from_numpy(values.astype(kind)))
        self.directed = graph.directed
        degrees = np.sort(np.diff(graph.graph.indptr))
        self.most = max(int(degrees[-2]) if len(degrees) > 1 else 0, 1)  # neighbors of the node that has fewer
        self.steps = max(int(max(degrees.max(initial=0), graph.degrees.max(initial=0))), 1).bit_length()

    def forward(self, pairs: Tensor) -> Tensor:
        source, target = pairs.unbind(1)
        known = self._are_in_rows(self.arc_starts, self.arcs, source, target.unsqueeze(1)).squeeze(1).long()
        ends = [self._of_ends(self.degrees[end][node] - known, end) for end, node in enumerate((source, target))]
        of_nodes = ends if self.directed else [ends[0] + ends[1]]
        return torch.cat([torch.log1p(self._shared(source, target)), *of_nodes], dim=1)

    def _shared(self, source: Tensor, target: Tensor) -> Tensor:
        degrees = self.starts.diff()
        swap = degrees[source] > degrees[target]
        fewer, others = torch.where(swap, target, source), torch.where(swap, source, target)
        places = self.starts[fewer].unsqueeze(1) + torch.arange(self.most)
        inside = places < self.starts[fewer + 1].unsqueeze(1)
        nodes = self.neighbors[places.clamp_max(len(self.neighbors) - 1)]
        shared = inside & self._are_in_rows(self.starts, self.neighbors, others, nodes)
        return (self.weights[nodes] * shared.unsqueeze(2)).sum(1)

    def _are_in_rows(self, starts: Tensor, columns: Tensor, rows: Tensor, wanted: Tensor) -> Tensor:
        """Whether each of the ``wanted`` columns ``(k, m)`` is in its row, one of ``rows (k,)``."""
        low = starts[rows].unsqueeze(1).expand_as(wanted)
        high = end = starts[rows + 1].unsqueeze(1).expand_as(wanted)
        for _ in range(self.steps):
            middle = (low + high) // 2
            less = (low < high) & (columns[middle.clamp_max(len(columns) - 1)] < wanted)
            low, high = torch.where(less, middle + 1, low), torch.where(less, high, middle)
        return (low < end) & (columns[low.clamp_max(len(columns) - 1)] == wanted)

    def _of_ends(self, degrees: Tensor, end: int) -> Tensor:
        logs = torch.log1p(degrees.to(torch.float64)).unsqueeze(1)
        return torch.where(degrees.unsqueeze(1) > 0, torch.cat([logs, logs.square()], dim=1), self.typical[end])


def _not_empty(indices: NDArray[np.integer]) -> NDArray[np.integer]:
    """Columns of a matrix, or of one without entries a number that is in none of its rows."""
    return indices if len(indices) else np.zeros(1, np.int64)


def link_matrix(edges: Pairs, num_nodes: int, directed: bool = False) -> sp.csr_array:
    """Edges ``(k, 2)`` as a matrix with sorted rows of ones; both ways unless ``directed``."""
    if not directed:
        edges = np.concatenate([edges, edges[:, ::-1]])
    graph = sp.csr_array((np.ones(len(edges), np.float32), tuple(edges.T)), shape=(num_nodes, num_nodes))
    graph.sum_duplicates()
    graph.data[:] = 1
    return graph


def neighbor_weights(degrees: NDArray[np.float64]) -> Rows:
    """What a neighbor that two nodes share counts: 1, by Adamic-Adar ``1/log d``, by resource allocation ``1/d``."""
    with np.errstate(divide="ignore"):
        rarity = np.where(degrees > 1, 1 / np.log(degrees), 0.0)
        share = np.where(degrees > 0, 1 / degrees, 0.0)
    return np.column_stack([np.ones_like(degrees), rarity, share])


def _of_degrees(degrees: NDArray[np.integer]) -> Rows:
    return np.column_stack([np.log1p(degrees), np.log1p(degrees) ** 2])


def shared_neighbors(graph: sp.csr_array, weights: NDArray[np.float64], pairs: Pairs) -> Scores:
    """The sum of the weights ``(n, m)`` of the neighbors that both nodes of a pair have, ``(k, m)``."""
    scores = np.zeros((len(pairs), weights.shape[1]))
    width = max(1, graph.nnz // max(graph.shape[0], 1))
    starts, neighbors = graph.indptr.astype(np.int64), graph.indices.astype(np.int32, copy=False)
    weights, pairs = np.ascontiguousarray(weights), np.ascontiguousarray(pairs)
    run_on_rows(_sum_shared, (len(pairs), width), starts, neighbors, weights, pairs, scores)
    return scores


@compiled
def _sum_shared(first: int, last: int, starts: Any, neighbors: Any, weights: Any, pairs: Any, scores: Any) -> None:
    """Looks up each neighbor of the node that has fewer among the other's, which are sorted."""
    for k in range(first, last):
        a, b = pairs[k, 0], pairs[k, 1]
        if starts[a + 1] - starts[a] > starts[b + 1] - starts[b]:
            a, b = b, a
        place, end = starts[b], starts[b + 1]
        for arc in range(starts[a], starts[a + 1]):
            node, high = neighbors[arc], end
            while place < high:
                middle = (place + high) // 2
                if neighbors[middle] < node:
                    place = middle + 1
                else:
                    high = middle
            if place == end:
                break
            if neighbors[place] == node:
                for kind in range(weights.shape[1]):
                    scores[k, kind] += weights[node, kind]


class NeighborhoodTerms(nn.Module):
    """Adds what ``Neighborhoods`` tell to the logits of a decoder: the larger one of two pieces, each of which is
    ``slope · logit + <weights, features> + bias``.

    The weights are those of logistic regressions on validation pairs, which no decoder was trained on; on training
    pairs a decoder is too sure of itself for anything to be added. The first piece orders all pairs. The second is
    larger for the likeliest ones alone, where other weights tell which of them are links. Until they are fitted, logits
    stay as they are.
    """

    slopes: Tensor
    weights: Tensor
    biases: Tensor

    def __init__(self, directed: bool = False) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.ones(2))
        self.register_buffer("weights", torch.zeros(2, _SHARED + _DEGREE * (1 + directed)))
        self.register_buffer("biases", torch.zeros(2))

    @property
    def fitted(self) -> bool:
        return bool(self.weights.any())

    @property
    def pieces(self) -> tuple[NDArray[np.float64], Rows, NDArray[np.float64]]:
        """Slopes ``(2,)``, weights ``(2, n)`` and biases ``(2,)``."""
        slopes, weights, biases = (each.double().cpu().numpy() for each in (self.slopes, self.weights, self.biases))
        return slopes, weights, biases

    def forward(self, logits: Tensor, neighborhoods: Neighborhoods, pairs: Tensor) -> Tensor:
        return self.combined(logits, torch.from_numpy(neighborhoods.features(pairs.cpu().numpy())))

    def combined(self, logits: Tensor, features: Tensor) -> Tensor:
        """Logits of pairs with these features."""
        added = (features @ self.weights.to(features).mT).to(logits)
        return (self.slopes * logits[:, None] + (added + self.biases)).amax(1)

    def fit(self, rows: Rows, labels: NDArray[np.bool_], others: Rows) -> bool:
        """Fits the weights to pairs that are links or not, and to ``others`` that are not.

        A row is the logit of the decoder and then the features of a pair. Leaves everything as it is, and returns
        False, where there are few links, or where the weights would not help pairs that they were not fitted on.
        """
        if min(labels.sum(), (~labels).sum()) < _FEWEST:
            return False
        count = _best_count(rows, labels, others)
        if count == 0:
            return False
        weights, biases = _pieces(rows, labels, others, count)
        self.slopes.copy_(torch.from_numpy(weights[:, 0]))
        self.weights.copy_(torch.from_numpy(weights[:, 1:]))
        self.biases.copy_(torch.from_numpy(biases))
        return True


def out_of_fold(rows: Rows, labels: NDArray[np.bool_], others: Rows) -> Scores:
    """The logits of pairs that ``NeighborhoodTerms`` were fitted on, each by weights that were fitted without it."""
    return _in_folds(rows, labels, others, _best_count(rows, labels, others))[0]


def _best_count(rows: Rows, labels: NDArray[np.bool_], others: Rows) -> int:
    """The number of pieces of the best MRR among those whose AUC is as good as any, out of fold; 0 is the decoder
    alone. Pieces by which a higher logit speaks against a link are none, and so is the second one, whose logits are no
    probabilities, where there are too few links for a calibration.
    """
    possible = (1, 2) if labels.sum() >= FEWEST else (1,)
    counts = [count for count in possible if (_pieces(rows, labels, others, count)[0][:, 0] > 0).all()]
    found = {count: _in_folds(rows, labels, others, count)[1] for count in (0, *counts)}
    best = max((1 - above).mean() for above in found.values())
    as_good = [count for count, above in found.items() if (1 - above).mean() >= best - _TOLERANCE]
    return max(as_good, key=lambda count: (1 / (1 + labels.sum() * found[count])).mean())


def _in_folds(rows: Rows, labels: NDArray[np.bool_], others: Rows, count: int) -> tuple[Scores, Scores]:
    """Scores of pairs by weights that were fitted without them; and for each link the share of pairs that are not
    links above it, by the same weights.
    """
    from sklearn.model_selection import StratifiedKFold  # scikit-learn takes a while to import, and serves this alone

    scores, above = np.empty(len(rows)), np.empty(len(rows))
    for train, test in StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(rows, labels):
        weights, biases = _pieces(rows[train], labels[train], others, count)
        scores[test], of_others = ((some @ weights.T + biases).max(1) for some in (rows[test], others))
        ordered = np.sort(np.concatenate([scores[test][~labels[test]], of_others]))
        places = sum(np.searchsorted(ordered, scores[test], side) for side in ("left", "right")) / 2
        above[test] = 1 - places / len(ordered)
    return scores, above[labels]


def _pieces(rows: Rows, labels: NDArray[np.bool_], others: Rows, count: int) -> tuple[Rows, Scores]:
    """Weights ``(2, m)`` and biases ``(2,)``: twice the decoder alone, twice the first piece, or both."""
    weights, biases = np.zeros((2, rows.shape[1])), np.zeros(2)
    weights[:, 0] = 1
    if count:
        weights[:], biases[:] = _regression(rows, labels, others, 1)
    if count == 2:
        of_top, bias = _regression(rows, labels, others, _RATIO)
        level = np.quantile(np.concatenate([rows[~labels], others]) @ of_top + bias, _LEVEL)
        weights[1] += _STEEPNESS * of_top
        biases[1] += _STEEPNESS * (bias - level)
    return weights, biases


def _regression(rows: Rows, labels: NDArray[np.bool_], others: Rows, ratio: int) -> tuple[Scores, float]:
    """Weights and bias, fitted with pairs that are not links counting ``ratio`` times as much as links."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    labels = np.concatenate([labels, np.zeros(len(others), dtype=bool)])
    counts = np.where(labels, 1.0, ratio * labels.sum() / (~labels).sum())
    scale = StandardScaler()
    model = LogisticRegression(max_iter=1000).fit(scale.fit_transform(np.concatenate([rows, others])), labels, counts)
    weights = model.coef_[0] / scale.scale_
    return weights, float(model.intercept_[0] - weights @ scale.mean_)
