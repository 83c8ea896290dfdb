"""Random neighborhoods of some nodes, hop by hop, out of a CSR matrix whose rows receive.

Every hop has a sample of its own, for all nodes so far: that of hop ``h`` serves the layer that has ``h`` layers after
it. What is drawn for a node depends on the seed, the hop and the node alone, so the points of a node are the same in
every batch of that seed, whatever the batch's other nodes and the number of threads."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.jit import compiled, random_below, random_state
from h2hgcn.kernels import run_on_rows

Numbers = NDArray[np.int64]


class Block(NamedTuple):
    """What is drawn at a hop: rows of a matrix, ``crow`` and ``col`` in the numbers of the sample, and which
    ``entries`` of the whole matrix these are, the self-loop first. ``scale`` is what an entry stands for: the number of
    a node's neighbors by the number that was drawn; 1 for the self-loop, which is always there.
    """

    crow: NDArray[np.int32]
    col: NDArray[np.int32]
    entries: Numbers
    scale: NDArray[np.float32]


class Sample(NamedTuple):
    """The drawn part of a matrix. Its nodes come in the order of their hops, the seeds first: ``sizes[h]`` lie within
    ``h`` hops, and these have the rows of ``blocks[h]`` (those that are new at that hop, if each is drawn once).
    """

    nodes: Numbers
    sizes: list[int]
    blocks: list[Block]


def sample_neighbors(
    crow: NDArray[np.int32], col: NDArray[np.int32], loops: Numbers, seeds: Numbers, fanout: Sequence[int], seed: int,
    once: bool = False,
) -> Sample:  # fmt: skip
    """Draws, for each hop, up to ``fanout[hop]`` neighbors of every node so far, without replacement; a fanout of -1
    takes all.

    Args:
        crow, col: The whole matrix, each row with its self-loop.
        loops: The entries that are self-loops.
        seeds: Different nodes.
        seed: Below 2⁶³.
        once: Whether a node is drawn for only at the hop that reaches it, for all layers.
    """
    number_of = np.full(len(crow) - 1, -1, np.int32)
    nodes = np.ascontiguousarray(seeds, np.int64)
    number_of[nodes] = np.arange(len(nodes))
    sizes, blocks = [len(nodes)], []
    for hop, width in enumerate(fanout):
        rows = nodes[sizes[-2] :] if once and hop else nodes
        counts = crow[rows + 1] - crow[rows]
        if width >= 0:
            counts = np.minimum(counts, min(width, len(col)) + 1)  # and the self-loop
        pointers = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
        entries, scale = np.empty(pointers[-1], np.int64), np.empty(pointers[-1], np.float32)
        shape = (len(rows), 1 + len(entries) // max(len(rows), 1) * 8)
        run_on_rows(_draw, shape, crow, loops, rows, pointers, seed, hop, entries, scale)
        local = np.empty(len(entries), np.int32)
        found = _renumber(col, entries, number_of, len(nodes), local)
        blocks.append(Block(pointers, local, entries, scale))
        nodes = np.concatenate([nodes, found])
        sizes.append(len(nodes))
    return Sample(nodes, sizes, blocks)


@compiled
def _draw(
    first: int, last: int, crow: Any, loops: Any, nodes: Any, places: Any, seed: int, hop: int, entries: Any, scale: Any
) -> None:
    for row in range(first, last):
        node, place = nodes[row], places[row]
        start, degree, count = crow[node], crow[node + 1] - crow[node] - 1, places[row + 1] - place - 1
        loop = loops[node]
        entries[place], scale[place] = loop, 1.0
        chosen = entries[place + 1 : places[row + 1]]
        scale[place + 1 : places[row + 1]] = np.float32(degree / max(count, 1))
        if count == degree:
            for k in range(count):
                chosen[k] = start + k
        else:
            _choose(degree, start, chosen, random_state(seed, hop, node))
        for k in range(count):  # the self-loop is not among those to draw
            if chosen[k] >= loop:
                chosen[k] += 1


@compiled
def _choose(degree: int, start: int, chosen: Any, state: Any) -> None:
    """A subset of ``degree`` entries, each of its size equally likely: Floyd's algorithm (Bentley and Floyd 1987)."""
    count = len(chosen)
    for k in range(count):
        top = degree - count + k
        pick = start + random_below(top + 1, state)
        for earlier in range(k):
            if chosen[earlier] == pick:
                pick = start + top
                break
        chosen[k] = pick


@compiled
def _renumber(col: Any, entries: Any, number_of: Any, known: int, local: Any) -> Any:
    """Numbers nodes in the order in which they turn up; returns those that are new."""
    found = np.empty(len(entries), np.int64)
    count = 0
    for k in range(len(entries)):
        node = col[entries[k]]
        if number_of[node] < 0:
            number_of[node] = known + count
            found[count] = node
            count += 1
        local[k] = number_of[node]
    return found[:count].copy()
