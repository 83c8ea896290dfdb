"""The undirected graph without loops and repeated edges that a graph's shape is measured on."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csgraph

from h2hgcn.datasets.edge_arrays import edge_ends
from h2hgcn.jit import compiled


class SimpleGraph(NamedTuple):
    """The neighbors of node ``i`` are ``neighbors[starts[i]:starts[i + 1]]``, in increasing order."""

    starts: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    self_loops: int

    @property
    def num_nodes(self) -> int:
        return len(self.starts) - 1

    @property
    def num_edges(self) -> int:
        return len(self.neighbors) // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def edges(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Both ends of every edge, the smaller first."""
        ends = np.repeat(np.arange(self.num_nodes, dtype=np.int32), self.degrees)
        forward = ends < self.neighbors
        return ends[forward], self.neighbors[forward]


class Components(NamedTuple):
    """The component of every node, and the number of nodes of every component."""

    labels: NDArray[np.int32]
    sizes: NDArray[np.int64]

    def largest(self) -> NDArray[np.int64]:
        """The nodes of the largest component, the first of equals."""
        return np.flatnonzero(self.labels == self.sizes.argmax()) if len(self.sizes) else np.empty(0, np.int64)


def simple_graph(graph: Any) -> SimpleGraph:
    """Reads a PyG graph; the direction of its edges is forgotten."""
    if graph.edge_index is None:
        return SimpleGraph(np.zeros((graph.num_nodes or 0) + 1, np.int64), np.empty(0, np.int32), 0)
    return simple_graph_of(edge_ends(graph), int(graph.num_nodes or 0))


def simple_graph_of(ends: NDArray[np.int64], num_nodes: int) -> SimpleGraph:
    """The graph of edges ``(2, edges)``, whose nodes must exist."""
    source, target = ends
    looped = source == target
    self_loops = len(np.unique(source[looped]))
    starts, neighbors = _both_ways(_distinct_pairs(source[~looped], target[~looped], num_nodes), num_nodes)
    return SimpleGraph(starts, neighbors, self_loops)


def connected_components(graph: SimpleGraph) -> Components:
    if not graph.num_nodes:  # SciPy has no graphs without nodes
        return Components(np.empty(0, np.int32), np.empty(0, np.int64))
    arcs = np.ones(len(graph.neighbors), np.int8)
    matrix = sp.csr_array((arcs, graph.neighbors, graph.starts), shape=(graph.num_nodes, graph.num_nodes))
    count, labels = csgraph.connected_components(matrix, directed=False)
    return Components(labels, np.bincount(labels, minlength=count))


def _distinct_pairs(source: NDArray[np.int64], target: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Every pair once, as smaller · num_nodes + larger, sorted."""
    pairs = np.minimum(source, target)
    pairs *= num_nodes
    pairs += np.maximum(source, target)
    pairs.sort()
    return pairs[np.diff(pairs, prepend=-1) != 0]


def _both_ways(pairs: NDArray[np.int64], num_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    smaller, larger = np.divmod(pairs, max(num_nodes, 1))
    degrees = np.bincount(smaller, minlength=num_nodes) + np.bincount(larger, minlength=num_nodes)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees)])
    neighbors = np.empty(2 * len(pairs), np.int32)
    _fill_neighbors(smaller, larger, starts[:-1].copy(), neighbors)
    return starts, neighbors


@compiled
def _fill_neighbors(smaller: Any, larger: Any, free: Any, neighbors: Any) -> None:
    # the pairs are sorted, so smaller neighbors first and larger ones after leaves every list sorted
    for i in range(len(smaller)):
        neighbors[free[larger[i]]] = smaller[i]
        free[larger[i]] += 1
    for i in range(len(smaller)):
        neighbors[free[smaller[i]]] = larger[i]
        free[smaller[i]] += 1
