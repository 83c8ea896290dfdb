"""The shape of a simple graph: components, bridges, distances, Gromov δ-hyperbolicity; closures of hierarchies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse import csgraph
from torch import Tensor

from h2hgcn.datasets.arrays import edge_ends
from h2hgcn.errors import DataError
from h2hgcn.jit import compiled
from h2hgcn.kernels import run_on_rows


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
    loops = source == target
    source, target = source[~loops], target[~loops]
    index = np.concatenate([source, target]), np.concatenate([target, source])
    matrix = sp.csr_array((np.ones(len(index[0]), np.int8), index), shape=(num_nodes, num_nodes))  # each entry once
    matrix.sort_indices()
    self_loops = len(np.unique(ends[0, loops]))
    return SimpleGraph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), self_loops)


def connected_components(graph: SimpleGraph) -> Components:
    if not graph.num_nodes:  # SciPy has no graphs without nodes
        return Components(np.empty(0, np.int32), np.empty(0, np.int64))
    arcs = np.ones(len(graph.neighbors), np.int8)
    matrix = sp.csr_array((arcs, graph.neighbors, graph.starts), shape=(graph.num_nodes, graph.num_nodes))
    count, labels = csgraph.connected_components(matrix, directed=False)
    return Components(labels, np.bincount(labels, minlength=count))


def bridge_share(edge_index: Any, num_nodes: int) -> float:
    """The fraction of the edges that are bridges: edges whose removal disconnects their two ends.

    ``edge_index`` is an array or tensor ``(2, edges)``. Direction, repeated edges and self-loops are ignored; a graph
    without edges has the share 0. It takes linear time, about a second for a million edges.
    """
    graph = simple_graph_of(np.asarray(edge_index, np.int64), num_nodes)
    return count_bridges(graph) / graph.num_edges if graph.num_edges else 0.0


def count_bridges(graph: SimpleGraph) -> int:
    return int(_count_bridges(graph.starts, graph.neighbors))


@compiled
def _count_bridges(starts: Any, neighbors: Any) -> int:
    """Walks in depth; a child that reaches nothing above itself hangs on a bridge (Tarjan 1974)."""
    num_nodes = len(starts) - 1
    entered, reach = np.zeros(num_nodes, np.int32), np.zeros(num_nodes, np.int32)
    path = np.empty(num_nodes, np.int32)
    arcs = starts[:-1].copy()
    clock = bridges = 0
    for root in range(num_nodes):
        if entered[root]:
            continue
        clock += 1
        entered[root] = reach[root] = clock
        path[0] = root
        depth = 1
        while depth:
            node = path[depth - 1]
            if arcs[node] < starts[node + 1]:
                other = neighbors[arcs[node]]
                arcs[node] += 1
                if not entered[other]:
                    clock += 1
                    entered[other] = reach[other] = clock
                    path[depth] = other
                    depth += 1
                elif depth == 1 or other != path[depth - 2]:
                    reach[node] = min(reach[node], entered[other])
                continue
            depth -= 1
            if depth:
                parent = path[depth - 1]
                reach[parent] = min(reach[parent], reach[node])
                bridges += reach[node] == entered[node]
    return bridges


class Walks(NamedTuple):
    """Distances between the first sources, ``(kept, kept)``, and the eccentricities of all sources."""

    distances: NDArray[np.int32]
    eccentricities: NDArray[np.int32]


def walk(graph: SimpleGraph, sources: NDArray[np.int64], kept: int) -> Walks:
    """Walks from every source; the sources are different nodes, and the kept ones are of one component.

    64 walks are made at once, one in each bit of a word: about ten times as fast as one after the other.
    """
    walks = Walks(np.zeros((kept, kept), np.int32), np.zeros(len(sources), np.int32))
    columns = np.full(graph.num_nodes, -1, np.int32)
    columns[sources[:kept]] = np.arange(kept)
    shape = (-(-len(sources) // 64), 64 * graph.num_nodes)
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
    seen, here, there = np.zeros((3, len(starts) - 1), np.uint64)
    front, ahead = np.empty((2, len(starts) - 1), np.int32)
    one = np.uint64(1)
    for offset in range(64 * first, min(64 * last, len(sources)), 64):
        count = min(64, len(sources) - offset)
        seen[:] = 0
        for bit in range(count):
            front[bit] = sources[offset + bit]
            here[front[bit]] = seen[front[bit]] = one << np.uint64(bit)
        size, steps = count, 0
        while size:
            steps += 1
            size = _step(starts, neighbors, seen, here, there, front, ahead, size)
            arrived = np.uint64(0)
            for i in range(size):
                node = ahead[i]
                seen[node] |= there[node]
                arrived |= there[node]
                if columns[node] >= 0:
                    for bit in range(min(count, len(distances) - offset)):
                        if there[node] >> np.uint64(bit) & one:
                            distances[offset + bit, columns[node]] = steps
            for bit in range(count):
                if arrived >> np.uint64(bit) & one:
                    eccentricities[offset + bit] = steps
            here, there = there, here
            front, ahead = ahead, front


@compiled
def _step(starts: Any, neighbors: Any, seen: Any, here: Any, there: Any, front: Any, ahead: Any, size: int) -> int:
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


MOST_QUADRUPLES = 1_000_000


class DeltaSpread(NamedTuple):
    """Of many quadruples: the mean δ with its standard error, and how many have δ = 0, ½, 1, …"""

    mean: float | None
    error: float | None
    histogram: tuple[int, ...]
    quadruples: int
    every_one: bool


def spread_of_delta(distances: NDArray[np.int32], population: int, random: np.random.Generator) -> DeltaSpread:
    """The spread over quadruples of the sampled nodes whose distances ``(k, k)`` are given, of ``population`` nodes.

    Quadruples that share a node are not independent, so the error is the jackknife's, which leaves out one node at a
    time (Arvesen 1969); where all nodes were taken, only the drawing of quadruples is left of it.
    """
    sampled = len(distances)
    if sampled < 4:
        return DeltaSpread(None, None, (), 0, sampled == population)
    every_one = math.comb(sampled, 4) <= MOST_QUADRUPLES
    if every_one:
        nodes = np.fromiter(chain.from_iterable(combinations(range(sampled), 4)), np.int32).reshape(-1, 4)
    else:
        nodes = random.integers(sampled, size=(MOST_QUADRUPLES, 4), dtype=np.int32)
        ordered = np.sort(nodes, axis=1)
        nodes = nodes[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]  # a few repeat a node
    twice = twice_delta_of(distances, nodes)
    variance = 0.0 if every_one else float(twice.var()) / len(twice)
    if sampled < population:
        variance += (1 - sampled / population) * _jackknife_variance(twice, nodes, sampled)
    exhaustive = every_one and sampled == population
    histogram = tuple(np.bincount(twice).tolist())
    return DeltaSpread(float(twice.mean()) / 2, math.sqrt(variance) / 2, histogram, len(twice), exhaustive)


@compiled
def twice_delta_of(distances: Any, nodes: Any) -> Any:
    """The difference of the two largest of the three sums, for each row of four nodes."""
    twice = np.empty(len(nodes), np.int32)
    for i in range(len(nodes)):
        a, b, c, d = nodes[i]
        one = distances[a, b] + distances[c, d]
        two = distances[a, c] + distances[b, d]
        three = distances[a, d] + distances[b, c]
        twice[i] = 2 * max(one, two, three) + min(one, two, three) - (one + two + three)
    return twice


def _jackknife_variance(values: NDArray[np.int32], nodes: NDArray[np.int32], count: int) -> float:
    sums, sizes = np.zeros(count), np.zeros(count)
    for column in nodes.T:
        sums += np.bincount(column, values, count)
        sizes += np.bincount(column, minlength=count)
    if sizes.max() == len(values):  # four nodes only: nothing is left without one
        return 0.0
    without = (values.sum() - sums) / (len(values) - sizes)
    return float((count - 1) * without.var())


# A traversal touches every node and edge of its component, at a few nanoseconds each: some five seconds on one core.
TRAVERSAL_BUDGET = 1_000_000_000
# All quadruples of 64 nodes are 635,376, enough to see rare ones; more nodes are taken where they cost little.
FEWEST_SOURCES, MOST_SOURCES = 64, 1_000


@dataclass(frozen=True)
class Hyperbolicity:
    """δ over four nodes of the largest component, all of them or a sample, and the diameter of the whole graph.

    ``histogram[i]`` counts the quadruples with δ = i/2. Unless ``exact``, ``delta`` is the largest seen, a lower bound.

    ``relative`` is 2δ over the diameter, at most 1. ``relative_mean`` and ``relative_spread`` are twice the mean δ over
    the mean and over the standard deviation of the distances.
    """

    delta: float
    exact: bool
    mean: float | None
    mean_error: float | None
    histogram: tuple[int, ...]
    quadruples: int
    sampled_nodes: int
    diameter: int
    diameter_exact: bool
    mean_distance: float | None
    distance_deviation: float | None
    relative: float | None
    relative_mean: float | None
    relative_spread: float | None


def measure_hyperbolicity(
    graph: SimpleGraph, components: Components | None = None, *, seed: int = 0, effort: float = 1.0
) -> Hyperbolicity:
    """δ and distances of nodes as many as the budget allows, which ``effort`` stretches."""
    components = components or connected_components(graph)
    is_forest = graph.num_edges == graph.num_nodes - len(components.sizes)
    random = np.random.default_rng(seed)
    nodes = random.permutation(components.largest())
    budget = effort * TRAVERSAL_BUDGET
    affordable = budget / max(len(nodes) + 2 * graph.num_edges, 1)
    if affordable < len(nodes):  # not all, which would tell the diameter; no more than quadruples are drawn from
        nodes = nodes[: max(FEWEST_SOURCES, min(int(affordable), MOST_SOURCES))]
    population = int(components.sizes.max(initial=0))
    distances, eccentricities = walk(graph, nodes, min(len(nodes), MOST_SOURCES))
    spread = spread_of_delta(distances, population, random)
    twice_delta = max(len(spread.histogram) - 1, 0)
    longest = max(int(eccentricities.max(initial=0)), twice_delta)
    diameter, diameter_exact = _diameter(graph, components, longest, is_forest, len(nodes) == population, budget)
    between = distances[np.triu_indices(len(distances), 1)]
    mean_distance, deviation = (float(between.mean()), float(between.std())) if len(between) else (None, None)

    def twice_over(delta: float | None, scale: float | None) -> float | None:
        return None if delta is None or not scale else 2 * delta / scale

    return Hyperbolicity(
        delta=twice_delta / 2,
        exact=spread.every_one or is_forest,
        mean=spread.mean,
        mean_error=spread.error,
        histogram=spread.histogram,
        quadruples=spread.quadruples,
        sampled_nodes=len(distances),
        diameter=diameter,
        diameter_exact=diameter_exact,
        mean_distance=mean_distance,
        distance_deviation=deviation,
        relative=twice_over(twice_delta / 2, diameter),
        relative_mean=twice_over(spread.mean, mean_distance),
        relative_spread=twice_over(spread.mean, deviation),
    )


def _diameter(
    graph: SimpleGraph, components: Components, longest: int, is_forest: bool, largest_is_exact: bool, budget: float
) -> tuple[int, bool]:
    """The longest distance within any component, and whether it is exact; ``longest`` is known of the largest one."""
    firsts = np.unique(components.labels, return_index=True)[1]
    seen = max(longest, double_sweep(graph, firsts))
    if is_forest:  # where sweeps are exact
        return seen, True
    could_be_longer = components.sizes > seen + 1
    could_be_longer[components.sizes.argmax()] = False
    nodes = np.flatnonzero(could_be_longer[components.labels])
    if len(nodes) * (len(nodes) + 2 * graph.num_edges) > budget:
        return seen, False
    return max(seen, int(walk(graph, nodes, 0).eccentricities.max(initial=0))), largest_is_exact


# Links of a closure that fit in a few GB of memory together with what is computed from them.
_MOST_LINKS = 1 << 26

# Nodes of a cycle that a message names.
_NAMED_IN_CYCLE = 8


def transitive_closure(edge_index: Tensor, num_nodes: int, names: Sequence[Any] | None = None) -> Tensor:
    """All links ``(2, k)`` from a node to a node that can be reached from it, sorted by source and target.

    Raises a ``DataError`` that names one cycle, by ``names`` of nodes or by numbers, if there is any. Self-loops are
    dropped.
    """
    rows, columns = edge_index.numpy()
    kept = rows != columns
    size = (num_nodes, num_nodes)
    edges = sp.csr_array((np.ones(int(kept.sum()), dtype=np.int8), (rows[kept], columns[kept])), shape=size)
    edges.data[:] = 1  # repeated edges were added up
    if csgraph.connected_components(edges, connection="strong")[0] < num_nodes:
        raise DataError(
            f"the graph has a cycle, so it has no transitive closure: {_one_cycle(edges, names)}; remove an edge of "
            "it, or leave out --closure"
        )
    closure = paths = edges
    while paths.nnz:
        paths = paths @ edges  # walks that are one edge longer
        paths.data[:] = 1
        closure = closure + paths
        closure.data[:] = 1
        if closure.nnz > _MOST_LINKS:
            raise DataError(
                f"the transitive closure has more than {_MOST_LINKS:,} links; leave out --closure, or embed a part of "
                "the hierarchy"
            )
    closure.sort_indices()
    links = closure.tocoo()
    return torch.from_numpy(np.stack([links.row, links.col]).astype(np.int64))


def _one_cycle(edges: sp.csr_array, names: Sequence[Any] | None) -> str:
    import networkx  # takes a while, and serves this alone

    cycle = networkx.find_cycle(networkx.DiGraph(zip(*edges.nonzero(), strict=True)))
    shown = [str(node if names is None else names[node]) for node, _ in [*cycle, cycle[0]]]
    if len(shown) > _NAMED_IN_CYCLE + 1:
        shown[_NAMED_IN_CYCLE:-1] = ["..."]
    return " -> ".join(shown)


def random_taxonomy(num_nodes: int, seed: int = 0) -> NDArray[np.int64]:
    """Edges ``(num_nodes - 1, 2)`` from child to parent of a ragged random tree, whose root is node 0.

    Nodes arrive one after the other and choose a parent in proportion to a random appetite for children, which is
    log-normal, and to ``1 / (1 + depth)``: a few nodes have many children, most have none, and depths vary.
    """
    if num_nodes < 1:
        raise DataError(f"num_nodes={num_nodes}: a taxonomy has at least one node")
    random = np.random.default_rng(seed)
    appetite = random.lognormal(sigma=2.0, size=num_nodes)
    parents = np.zeros(num_nodes, dtype=np.int64)
    depth = np.zeros(num_nodes)
    weight = np.zeros(num_nodes)
    weight[0] = appetite[0]
    for node in range(1, num_nodes):
        total = np.cumsum(weight[:node])
        parent = min(int(np.searchsorted(total, random.random() * total[-1], side="right")), node - 1)
        parents[node], depth[node] = parent, depth[parent] + 1
        weight[node] = appetite[node] / (1 + depth[node])
    return np.stack([np.arange(1, num_nodes), parents[1:]], axis=1)
