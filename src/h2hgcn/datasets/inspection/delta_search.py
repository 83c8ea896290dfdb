"""The largest δ of a graph, searched block by block.

Written for twice δ, which is whole. With ``xy + vw`` the largest of the three sums of four nodes, three facts narrow
the search (Cohen, Coudert and Lancin 2015; Borassi, Coudert, Crescenzi and Marino 2015); each follows from the triangle
inequality:

- the largest δ of a graph is the largest of its blocks' (their δ is 0 below four nodes, and at most a quarter of the
  number of nodes),
- some best four nodes are two far-apart pairs: no neighbor of one node of the pair is farther from the other,
- ``2δ ≤ xy``, ``2δ ≤ 2·xv``, ``4δ ≤ xy + 2·vw - xv - yv`` and ``2δ ≤ xy + vw - xv - yw``, however the four are named.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.inspection.blocks import blocks, induced
from h2hgcn.datasets.inspection.distances import walk
from h2hgcn.datasets.inspection.simple_graph import SimpleGraph
from h2hgcn.jit import compiled

# Distances and pairs of a block take up to 30 bytes for every two of its nodes: 0.5 GB here.
LARGEST_BLOCK = 4_000


class Search(NamedTuple):
    """The largest 2δ seen, and whether nothing larger is left."""

    twice_delta: int
    finished: bool


def search_delta(graph: SimpleGraph, at_least: int = 0, budget: int = 1_000_000_000) -> Search:
    """Searches all blocks for a 2δ above ``at_least``, a value known to occur, looking at about ``budget`` numbers."""
    best = at_least
    names = np.full(graph.num_nodes, -1, np.int32)
    for nodes in blocks(graph):
        if len(nodes) // 2 <= best:
            break
        block = induced(graph, nodes, names)
        if block.num_edges == len(nodes) * (len(nodes) - 1) // 2:
            continue
        budget -= len(nodes) * (len(nodes) + 4 * block.num_edges)
        if len(nodes) > LARGEST_BLOCK or budget < 0:
            return Search(best, False)
        best, budget = _search_block(block, best, budget)
        if budget < 0:
            return Search(best, False)
    return Search(best, True)


def _search_block(block: SimpleGraph, best: int, budget: int) -> tuple[int, int]:
    size = block.num_nodes
    distances, _ = walk(block, np.arange(size), size)
    pairs = _far_apart_pairs(block, distances, best)
    room = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(pairs.ravel(), minlength=size))])
    best = _try_middles(distances, pairs, best)
    best, budget = _search_pairs(distances, pairs, room, best, budget)
    return int(best), int(budget)


def _far_apart_pairs(block: SimpleGraph, distances: NDArray[np.int32], best: int) -> NDArray[np.int32]:
    """The far-apart pairs more than ``best`` apart, ``(pairs, 2)``, by decreasing distance."""
    far = np.empty(distances.shape, np.bool_)
    _mark_farthest(block.starts, block.neighbors, distances, far)
    far &= far.T
    far &= distances > best
    first, second = np.nonzero(np.triu(far))
    by_distance = np.argsort(-distances[first, second], kind="stable")
    return np.stack([first[by_distance], second[by_distance]], axis=1).astype(np.int32)


@compiled
def _mark_farthest(starts: Any, neighbors: Any, distances: Any, far: Any) -> None:
    for source in range(len(distances)):
        row = distances[source]
        for node in range(len(row)):
            far[source, node] = True
            for arc in range(starts[node], starts[node + 1]):
                if row[neighbors[arc]] > row[node]:
                    far[source, node] = False
                    break


@compiled
def _search_pairs(distances: Any, pairs: Any, room: Any, best: int, budget: int) -> Any:
    """Tries every pair with the pairs before it, which are kept as lists of partners, ``room`` for each node."""
    size = len(distances)
    partners, lengths = np.empty((2, room[-1]), np.int32)
    ends = room[:-1].copy()
    farthest_partner = np.zeros(size, np.int32)
    useful = np.zeros(size, np.bool_)
    for i in range(len(pairs)):
        x, y = pairs[i]
        from_x, from_y = distances[x], distances[y]
        apart = from_x[y]
        if apart <= best or budget < 0:
            break
        _mark_useful(from_x, from_y, farthest_partner, apart, best, useful)
        budget -= size
        for v in range(size):
            if not useful[v] or ends[v] == room[v]:
                continue
            by_both = (2 * best - apart + from_x[v] + from_y[v]) // 2
            by_farther = best + best // 2 + 1 - apart + max(from_x[v], from_y[v])
            too_near = max(by_both, by_farther)
            for k in range(room[v], ends[v]):
                budget -= 1
                if lengths[k] <= too_near:  # and so is the rest, as partners come by decreasing distance
                    break
                w = partners[k]
                if useful[w]:
                    across = max(from_x[v] + from_y[w], from_x[w] + from_y[v])
                    best = max(best, apart + lengths[k] - across)
        # the larger node of a pair lists the smaller, so that each pair is tried once
        partners[ends[y]], lengths[ends[y]] = x, apart
        ends[y] += 1
        farthest_partner[x], farthest_partner[y] = max(farthest_partner[x], apart), max(farthest_partner[y], apart)
    return best, budget


@compiled
def _mark_useful(from_x: Any, from_y: Any, farthest_partner: Any, apart: int, best: int, useful: Any) -> None:
    """Whether a node can stand in a quadruple better than the best; without branches, for the processor's sake."""
    least_sum, least_far = np.int32(2 * best - apart), np.int32(best + best // 2 + 1 - apart)
    for v in range(len(useful)):
        near, far = min(from_x[v], from_y[v]), max(from_x[v], from_y[v])
        enough = 2 * near > best
        enough &= 2 * farthest_partner[v] - near - far > least_sum
        enough &= farthest_partner[v] - far > least_far  # the partner is more than best/2 from x and y
        useful[v] = enough


@compiled
def _try_middles(distances: Any, pairs: Any, best: int) -> int:
    """A first guess from below: of some pairs, the nodes halfway, of which the best two are likely far apart."""
    size = len(distances)
    middles = np.empty(64, np.int64)
    step = max(len(pairs) // 20_000, 1)
    for i in range(0, len(pairs), step):
        from_x, from_y = distances[pairs[i, 0]], distances[pairs[i, 1]]
        apart = from_x[pairs[i, 1]]
        found = 0
        for k in range(size):
            # begin elsewhere for every pair, or the first nodes alone would be tried
            v = (k + i) % size
            if abs(from_x[v] - from_y[v]) <= 1 and from_x[v] + from_y[v] <= apart + 1:
                middles[found] = v
                found += 1
                if found == len(middles):
                    break
        for v in middles[:found]:
            for w in middles[:found]:
                across = max(from_x[v] + from_y[w], from_x[w] + from_y[v])
                best = max(best, apart + distances[v, w] - across)
    return best
