"""Random neighbourhoods of some nodes, hop by hop, out of a CSR matrix whose rows receive.

What is drawn for a node depends on the seed, the hop and the node alone: neither on the batch's other nodes nor on the
number of threads.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.compiled import compiled, run_on_rows
from h2hgcn.splitmix import random_below, random_state

Numbers = NDArray[np.int64]


class Sample(NamedTuple):
    """The drawn part of a matrix. Its nodes come in the order of their hops, the seeds first.

    ``sizes[h]`` nodes lie within ``h`` hops; the first ``sizes[-2]`` have rows: ``crow``, their numbers ``col`` in
    ``nodes``, and which ``entries`` of the whole matrix these are. ``scale`` is what an entry stands for: the number of
    a node's neighbours by the number that was drawn; 1 for its self-loop, which is always there.
    """

    nodes: Numbers
    sizes: list[int]
    crow: NDArray[np.int32]
    col: NDArray[np.int32]
    entries: Numbers
    scale: NDArray[np.float32]


def sample_neighbors(
    crow: NDArray[np.int32],
    col: NDArray[np.int32],
    loops: Numbers,
    seeds: Numbers,
    fanout: Sequence[int],
    seed: int,
) -> Sample:
    """Draws, for each hop, up to ``fanout[hop]`` neighbours of every node that is new, without replacement; a fanout of
    -1 takes all.

    Args:
        crow, col: The whole matrix, each row with its self-loop.
        loops: The entries that are self-loops.
        seeds: Different nodes.
        seed: Below 2⁶³.
    """
    number_of = np.full(len(crow) - 1, -1, np.int32)
    nodes = np.ascontiguousarray(seeds, np.int64)
    number_of[nodes] = np.arange(len(nodes))
    sizes, parts, first = [len(nodes)], [], 0
    for hop, width in enumerate(fanout):
        fresh = nodes[first:]
        counts = crow[fresh + 1].astype(np.int64) - crow[fresh]
        if width >= 0:
            counts = np.minimum(counts, width + 1)  # and the self-loop
        places = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        entries, scale = np.empty(places[-1], np.int64), np.empty(places[-1], np.float32)
        shape = (len(fresh), 1 + len(entries) // max(len(fresh), 1) * 8)
        run_on_rows(_draw, shape, crow, loops, fresh, places, seed, hop, entries, scale)
        local = np.empty(len(entries), np.int32)
        found = _renumber(col, entries, number_of, len(nodes), local)
        parts.append((counts, local, entries, scale))
        first, nodes = len(nodes), np.concatenate([nodes, found])
        sizes.append(len(nodes))
    counts, local, entries, scale = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    pointers = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts).astype(np.int32)])
    return Sample(nodes, sizes, pointers, local, entries, scale)


def restricted(sample: Sample, seeds: Numbers) -> Sample:
    """The part of a sample that some of its seeds, by their numbers there, depend on."""
    rim = len(sample.nodes) - len(sample.crow) + 1
    crow = np.concatenate([sample.crow, np.full(rim, sample.crow[-1])])  # rows of the last hop are never asked for
    loops = crow[:-1].astype(np.int64)  # the first of each row
    part = sample_neighbors(crow, sample.col, loops, seeds, [-1] * (len(sample.sizes) - 1), 0)
    return part._replace(
        nodes=sample.nodes[part.nodes], entries=sample.entries[part.entries], scale=sample.scale[part.entries]
    )


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
