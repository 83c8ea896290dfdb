"""The shape of a simple graph: components, blocks and bridges, clustering, distances."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csgraph

from h2hgcn.datasets.arrays import edge_ends
from h2hgcn.jit import compiled, run_on_rows


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


def bridge_share(edge_index: Any, num_nodes: int) -> float:
    """The fraction of the edges that are bridges: edges whose removal disconnects their two ends.

    ``edge_index`` is an array or tensor ``(2, edges)``. Direction, repeated edges and self-loops are ignored; a graph
    without edges has the share 0. It takes linear time, about a second for a million edges.
    """
    graph = simple_graph_of(np.asarray(edge_index, np.int64), num_nodes)
    return count_bridges(graph) / graph.num_edges if graph.num_edges else 0.0


def count_bridges(graph: SimpleGraph) -> int:
    """The number of bridges, which are the blocks of two nodes."""
    return int(np.count_nonzero(np.diff(_all_blocks(graph)[1]) == 2))


def blocks(graph: SimpleGraph) -> list[NDArray[np.int32]]:
    """The nodes of every block of four or more nodes, largest block first.

    Smaller blocks are edges and triangles, whose distances have nothing to tell.
    """
    members, bounds = _all_blocks(graph)
    sizes = np.diff(bounds)
    by_size = np.argsort(-sizes, kind="stable")
    return [members[bounds[i] : bounds[i + 1]] for i in by_size[: np.count_nonzero(sizes >= 4)]]


def _all_blocks(graph: SimpleGraph) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The nodes of the blocks one after another, and where each block starts and ends."""
    members = np.empty(2 * graph.num_nodes, np.int32)
    bounds = np.zeros(graph.num_nodes + 1, np.int64)
    count = _find_blocks(graph.starts, graph.neighbors, members, bounds)
    return members, bounds[: count + 1]


def induced(graph: SimpleGraph, nodes: NDArray[np.int32], names: NDArray[np.int32]) -> SimpleGraph:
    """The graph on these nodes, numbered as they are listed; the lists of neighbors are not sorted.

    ``names`` is room for a number for every node of the graph, -1 before and after, so that many blocks share it.
    """
    starts = np.zeros(len(nodes) + 1, np.int64)
    neighbors = np.empty(int((graph.starts[nodes + 1] - graph.starts[nodes]).sum()), np.int32)
    _copy_edges(graph.starts, graph.neighbors, nodes, names, starts, neighbors)
    return SimpleGraph(starts, neighbors[: starts[-1]], 0)


@compiled
def _copy_edges(starts: Any, neighbors: Any, nodes: Any, names: Any, new_starts: Any, new_neighbors: Any) -> None:
    for i in range(len(nodes)):
        names[nodes[i]] = i
    written = 0
    for i in range(len(nodes)):
        for arc in range(starts[nodes[i]], starts[nodes[i] + 1]):
            if names[neighbors[arc]] >= 0:
                new_neighbors[written] = names[neighbors[arc]]
                written += 1
        new_starts[i + 1] = written
    for i in range(len(nodes)):
        names[nodes[i]] = -1


@compiled
def _find_blocks(starts: Any, neighbors: Any, members: Any, bounds: Any) -> int:
    """Walks in depth; a child that reaches nothing above its parent closes a block at the parent."""
    num_nodes = len(starts) - 1
    entered, reach = np.zeros(num_nodes, np.int32), np.zeros(num_nodes, np.int32)
    path, waiting = np.empty(num_nodes, np.int32), np.empty(num_nodes, np.int32)
    arcs = starts[:-1].copy()
    clock = count = written = 0
    for root in range(num_nodes):
        if entered[root]:
            continue
        clock += 1
        entered[root] = reach[root] = clock
        path[0] = root
        depth, waits = 1, 0
        while depth:
            node = path[depth - 1]
            if arcs[node] < starts[node + 1]:
                other = neighbors[arcs[node]]
                arcs[node] += 1
                if not entered[other]:
                    clock += 1
                    entered[other] = reach[other] = clock
                    path[depth] = waiting[waits] = other
                    depth += 1
                    waits += 1
                elif depth == 1 or other != path[depth - 2]:
                    reach[node] = min(reach[node], entered[other])
                continue
            depth -= 1
            if not depth:
                break
            parent = path[depth - 1]
            reach[parent] = min(reach[parent], reach[node])
            if reach[node] < entered[parent]:
                continue
            closing = True
            while closing:
                waits -= 1
                members[written] = waiting[waits]
                written += 1
                closing = waiting[waits] != node
            members[written] = parent
            written += 1
            count += 1
            bounds[count] = written
    return count


# Pairs of neighbors looked at when triangles are counted, at a few nanoseconds each.
COUNTING_BUDGET = 1_000_000_000
# Pairs of neighbors drawn otherwise; the standard error is then at most 0.001.
SAMPLES = 250_000


@dataclass(frozen=True)
class Clustering:
    """The mean over nodes (0 for less than two neighbors), and the share of all pairs of neighbors that are joined."""

    average: float | None
    average_error: float | None
    transitivity: float | None
    transitivity_error: float | None
    sampled: bool


def measure_clustering(graph: SimpleGraph, *, seed: int = 0, effort: float = 1.0) -> Clustering:
    if not graph.num_nodes:
        return Clustering(None, None, None, None, False)
    degrees = graph.degrees
    wedges = degrees * (degrees - 1) / 2
    if not wedges.any():
        return Clustering(0.0, 0.0, 0.0, 0.0, False)
    # a node's rank by degree; edges point to the higher rank, so that hubs have few to point at
    ranks = np.empty(graph.num_nodes, np.int32)
    ranks[np.argsort(degrees, kind="stable")] = np.arange(graph.num_nodes, dtype=np.int32)
    if _pairs_to_check(graph.starts, graph.neighbors, ranks) > effort * COUNTING_BUDGET:
        return _sampled(graph, wedges, np.random.default_rng(seed))
    triangles = np.zeros(graph.num_nodes, np.int64)
    _count_triangles(graph.starts, graph.neighbors, ranks, triangles)
    average = float((triangles / np.maximum(wedges, 1)).mean())
    return Clustering(average, 0.0, float(triangles.sum() / wedges.sum()), 0.0, False)


def _sampled(graph: SimpleGraph, wedges: NDArray[np.float64], random: np.random.Generator) -> Clustering:
    """Draws two neighbors of random nodes (Schank and Wagner 2005)."""
    centers = np.flatnonzero(wedges)
    uniform = random.choice(centers, SAMPLES)
    by_wedges = np.searchsorted(wedges.cumsum(), random.random(SAMPLES) * wedges.sum(), side="right")
    average, average_error = _share_joined(graph, uniform, random)
    transitivity, transitivity_error = _share_joined(graph, by_wedges, random)
    part = len(centers) / graph.num_nodes
    return Clustering(part * average, part * average_error, transitivity, transitivity_error, True)


def _share_joined(graph: SimpleGraph, centers: NDArray[Any], random: np.random.Generator) -> tuple[float, float]:
    degrees = graph.starts[centers + 1] - graph.starts[centers]
    first = random.integers(degrees)
    second = (first + random.integers(1, degrees)) % degrees
    ends = [graph.neighbors[graph.starts[centers] + offset] for offset in (first, second)]
    share = float(_count_joined(graph.starts, graph.neighbors, *ends)) / len(centers)
    return share, math.sqrt(share * (1 - share) / len(centers))


@compiled
def _pairs_to_check(starts: Any, neighbors: Any, ranks: Any) -> float:
    upward = np.zeros(len(ranks), np.int64)
    for node in range(len(ranks)):
        for arc in range(starts[node], starts[node + 1]):
            upward[node] += ranks[neighbors[arc]] > ranks[node]
    pairs = 0.0
    for node in range(len(ranks)):
        for arc in range(starts[node], starts[node + 1]):
            if ranks[neighbors[arc]] > ranks[node]:
                pairs += upward[neighbors[arc]]
    return pairs


@compiled
def _count_triangles(starts: Any, neighbors: Any, ranks: Any, triangles: Any) -> None:
    upward = np.empty(len(neighbors) // 2, np.int32)
    bounds = np.zeros(len(starts), np.int64)
    for node in range(len(ranks)):
        bounds[node + 1] = bounds[node]
        for arc in range(starts[node], starts[node + 1]):
            if ranks[neighbors[arc]] > ranks[node]:
                upward[bounds[node + 1]] = neighbors[arc]
                bounds[node + 1] += 1
    marked_by = np.full(len(ranks), -1, np.int32)
    for low in range(len(ranks)):
        for arc in range(bounds[low], bounds[low + 1]):
            marked_by[upward[arc]] = low
        for arc in range(bounds[low], bounds[low + 1]):
            middle = upward[arc]
            for top in upward[bounds[middle] : bounds[middle + 1]]:
                if marked_by[top] == low:
                    triangles[low] += 1
                    triangles[middle] += 1
                    triangles[top] += 1


@compiled
def _count_joined(starts: Any, neighbors: Any, first: Any, second: Any) -> int:
    joined = 0
    for i in range(len(first)):
        low, end = starts[first[i]], starts[first[i] + 1]
        position = low + np.searchsorted(neighbors[low:end], second[i])
        joined += position < end and neighbors[position] == second[i]
    return joined


# One bit of a word for every source.
_WORD = 64


class Walks(NamedTuple):
    """Distances between the first sources, ``(kept, kept)``, and the eccentricities of all sources."""

    distances: NDArray[np.int32]
    eccentricities: NDArray[np.int32]


def walk(graph: SimpleGraph, sources: NDArray[np.int64], kept: int) -> Walks:
    """Walks from every source; the sources are different nodes, and the kept ones are of one component."""
    walks = Walks(np.zeros((kept, kept), np.int32), np.zeros(len(sources), np.int32))
    columns = np.full(graph.num_nodes, -1, np.int32)
    columns[sources[:kept]] = np.arange(kept)
    shape = (-(-len(sources) // _WORD), _WORD * graph.num_nodes)
    run_on_rows(_walk_words, shape, graph.starts, graph.neighbors, sources, columns, *walks)
    return walks


def double_sweep(graph: SimpleGraph, sources: int | NDArray[np.int64]) -> int:
    """The largest eccentricity of a node farthest from a source: a lower bound on the diameter, exact in a tree.

    The sources lie in different components.
    """
    return int(_double_sweep(graph.starts, graph.neighbors, np.atleast_1d(np.asarray(sources, np.int64))))


@compiled
def _double_sweep(starts: Any, neighbors: Any, sources: Any) -> int:
    there, back = np.full((2, len(starts) - 1), -1, np.int32)
    queue = np.empty(len(starts) - 1, np.int32)
    longest = 0
    for source in sources:
        farthest = _farthest(starts, neighbors, source, there, queue)
        longest = max(longest, back[_farthest(starts, neighbors, farthest, back, queue)])
    return longest


@compiled
def _farthest(starts: Any, neighbors: Any, source: int, distances: Any, queue: Any) -> int:
    """A node farthest from the source; writes all distances of its component, which are -1 before."""
    distances[source] = 0
    queue[0] = source
    read, written = 0, 1
    while read < written:
        node = queue[read]
        read += 1
        for arc in range(starts[node], starts[node + 1]):
            other = neighbors[arc]
            if distances[other] < 0:
                distances[other] = distances[node] + 1
                queue[written] = other
                written += 1
    return queue[written - 1]


@compiled
def _walk_words(
    first: int, last: int, starts: Any, neighbors: Any, sources: Any, columns: Any, distances: Any, eccentricities: Any
) -> None:
    num_nodes = len(starts) - 1
    seen, here, there = np.zeros((3, num_nodes), np.uint64)
    front, ahead = np.empty((2, num_nodes), np.int32)
    for word in range(first, last):
        offset = word * 64
        size = min(64, len(sources) - offset)
        seen[:] = 0
        for bit in range(size):
            front[bit] = sources[offset + bit]
            here[front[bit]] = seen[front[bit]] = np.uint64(1) << np.uint64(bit)
        steps = 0
        while size:
            steps += 1
            size = _step(starts, neighbors, seen, here, there, front, ahead, size)
            arrived = np.uint64(0)
            for i in range(size):
                node = ahead[i]
                seen[node] |= there[node]
                arrived |= there[node]
                if columns[node] >= 0:
                    _write(distances, offset, columns[node], there[node], steps)
            for bit in range(min(64, len(sources) - offset)):
                if arrived >> np.uint64(bit) & np.uint64(1):
                    eccentricities[offset + bit] = steps
            here, there = there, here
            front, ahead = ahead, front


@compiled
def _step(
    starts: Any, neighbors: Any, seen: Any, here: Any, there: Any, front: Any, ahead: Any, size: int
) -> int:  # fmt: skip
    """Moves every source's front, the bits of ``here``, on to neighbors it has not seen; counts the nodes reached."""
    reached = 0
    for i in range(size):
        node = front[i]
        bits = here[node]
        here[node] = 0
        for arc in range(starts[node], starts[node + 1]):
            other = neighbors[arc]
            new = bits & ~seen[other]
            if new:
                if not there[other]:
                    ahead[reached] = other
                    reached += 1
                there[other] |= new
    return reached


@compiled
def _write(distances: Any, offset: int, column: int, bits: Any, steps: int) -> None:
    for bit in range(min(64, len(distances) - offset)):
        if bits >> np.uint64(bit) & np.uint64(1):
            distances[offset + bit, column] = steps
