"""Distances in a graph, by breadth-first walks from 64 sources at once (Then et al. 2014), on all threads."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.inspection.simple_graph import SimpleGraph
from h2hgcn.jit import compiled, run_on_rows

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
