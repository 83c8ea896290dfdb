"""The blocks of a graph: its largest parts that no single node can cut (Hopcroft and Tarjan 1973)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.inspection.simple_graph import SimpleGraph, simple_graph_of
from h2hgcn.jit import compiled


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
