"""Compiled generators of random graphs, as networkx defines them, with random numbers of their own.

A graph depends on nothing but the numbers it is seeded with: neither on the machine, nor on numba's or NumPy's streams,
nor on what was drawn before. Only integers and comparisons decide.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.jit import compiled, random_below, random_uniform

Adjacency = NDArray[np.uint8]


@compiled
def erdos_renyi(num_nodes: int, probability: float, state: Any) -> Adjacency:
    """Every pair is joined with this probability."""
    adjacency = np.zeros((num_nodes, num_nodes), np.uint8)
    for i in range(num_nodes):
        for j in range(i + 1, num_nodes):
            if random_uniform(state) < probability:
                adjacency[i, j] = adjacency[j, i] = 1
    return adjacency


@compiled
def watts_strogatz(num_nodes: int, num_neighbors: int, probability: float, state: Any) -> Adjacency:
    """A ring whose nodes are joined to the ``num_neighbors // 2`` next on each side, some edges rewired at one end.

    As in networkx, an odd number counts as the even one below it; 1 gives a graph without edges.
    """
    adjacency = np.zeros((num_nodes, num_nodes), np.uint8)
    degree = np.full(num_nodes, 2 * (num_neighbors // 2))
    for distance in range(1, num_neighbors // 2 + 1):
        for node in range(num_nodes):
            other = (node + distance) % num_nodes
            adjacency[node, other] = adjacency[other, node] = 1
    for distance in range(1, num_neighbors // 2 + 1):
        for node in range(num_nodes):
            # a node joined to all others has nowhere to rewire to
            if random_uniform(state) >= probability or degree[node] >= num_nodes - 1:
                continue
            new = random_below(num_nodes, state)
            while new == node or adjacency[node, new]:
                new = random_below(num_nodes, state)
            old = (node + distance) % num_nodes
            adjacency[node, old] = adjacency[old, node] = 0
            adjacency[node, new] = adjacency[new, node] = 1
            degree[old] -= 1
            degree[new] += 1
    return adjacency


@compiled
def barabasi_albert(num_nodes: int, num_links: int, state: Any) -> Adjacency:
    """A star of ``num_links + 1`` nodes grows; every new node joins ``num_links`` others, drawn by their degree."""
    adjacency = np.zeros((num_nodes, num_nodes), np.uint8)
    # every node stands here once for each of its edges, so that a uniform draw prefers high degrees
    ends = np.empty(2 * num_links * (num_nodes - num_links), np.int64)
    count = 0
    for leaf in range(1, num_links + 1):
        adjacency[0, leaf] = adjacency[leaf, 0] = 1
        ends[count], ends[count + 1] = 0, leaf
        count += 2
    for node in range(num_links + 1, num_nodes):
        known = count
        while count < known + 2 * num_links:
            target = ends[random_below(known, state)]
            if not adjacency[node, target]:
                adjacency[node, target] = adjacency[target, node] = 1
                ends[count], ends[count + 1] = node, target
                count += 2
    return adjacency


@compiled
def pack_triangle(adjacency: Adjacency) -> NDArray[np.uint8]:
    """The upper triangle, row by row, one bit a pair; the low bits of a byte come first."""
    num_nodes = len(adjacency)
    packed = np.zeros((num_nodes * (num_nodes - 1) // 2 + 7) // 8, np.uint8)
    pair = 0
    for i in range(num_nodes):
        for j in range(i + 1, num_nodes):
            packed[pair >> 3] |= adjacency[i, j] << (pair & 7)
            pair += 1
    return packed


@compiled
def unpack_edges(packed: NDArray[np.uint8], num_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges ``(2, edges)`` in both directions, sorted, and the degrees."""
    # whatever a bit says, something is written: on random bits, half of all branches would be foreseen wrongly
    adjacency = np.zeros((num_nodes, num_nodes), np.uint8)
    pair = 0
    for i in range(num_nodes):
        for j in range(i + 1, num_nodes):
            adjacency[i, j] = adjacency[j, i] = (packed[pair >> 3] >> (pair & 7)) & 1
            pair += 1
    degree = np.empty(num_nodes, np.int64)
    for i in range(num_nodes):
        degree[i] = adjacency[i].sum()
    edges = np.empty((2, degree.sum()), np.int64)
    columns = np.empty(num_nodes + 1, np.int64)
    first = 0
    for i in range(num_nodes):
        count = 0
        for j in range(num_nodes):
            columns[count] = j
            count += adjacency[i, j]
        edges[0, first : first + count] = i
        edges[1, first : first + count] = columns[:count]
        first += count
    return edges, degree
