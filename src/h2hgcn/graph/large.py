"""Graphs that are large: nodes reordered for locality, compact patterns, and blocks of many graphs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.graph.adjacency import Adjacency, Transpose
from h2hgcn.jit import compiled
from h2hgcn.kernels import run_on_rows

# Nodes from which on points are in no cache, so that it matters where they lie.
SCATTERED = 1 << 18


def reordered(adjacency: Adjacency, like: Adjacency | None = None) -> Adjacency:
    """An adjacency on the CPU in an order that brings neighbors together (Cuthill and McKee 1969), or in that of
    another graph of the same nodes.
    """
    nodes = _close_order(adjacency) if like is None else like.nodes
    assert nodes is not None
    moved = Adjacency(
        torch.cat([adjacency.crow[:1], adjacency.crow.diff()[nodes].cumsum(0)]).int(),
        torch.empty_like(adjacency.col), torch.empty_like(adjacency.weights), nodes=nodes,
    )  # fmt: skip
    old, new = ((graph.crow, graph.col, graph.weights) for graph in (adjacency, moved))
    parts = (*old, nodes, moved.places, *new)
    width = 1 + len(moved.col) // max(len(nodes), 1) * 8
    run_on_rows(_move_rows, (len(nodes), width), *(part.numpy() for part in parts))
    return moved


def _close_order(adjacency: Adjacency) -> Tensor:
    """Node after node, the neighbors that were not seen yet, those of low degree first; from a node of low degree in
    each component.

    SciPy's ``reverse_cuthill_mckee`` sorts the neighbors of a node in quadratic time, which takes minutes for a hub.
    """
    transpose = adjacency.transpose
    degrees = adjacency.crow.diff() + transpose.crow.diff()
    starts = degrees.argsort(stable=True)
    order = np.empty(adjacency.num_nodes, np.int64)
    _walk(
        adjacency.crow.numpy(), adjacency.col.numpy(), transpose.crow.numpy(), transpose.col.numpy(),
        degrees.numpy(), starts.numpy(), order,
    )  # fmt: skip
    return torch.from_numpy(order)


@compiled
def _walk(crow: Any, col: Any, other_crow: Any, other_col: Any, degrees: Any, starts: Any, order: Any) -> None:
    seen = np.zeros(len(order), np.bool_)
    done, count = 0, 0
    for start in starts:
        if seen[start]:
            continue
        seen[start], order[count], count = True, start, count + 1
        while done < count:
            node, first, done = order[done], count, done + 1
            for neighbor in col[crow[node] : crow[node + 1]]:
                if not seen[neighbor]:
                    seen[neighbor], order[count], count = True, neighbor, count + 1
            for neighbor in other_col[other_crow[node] : other_crow[node + 1]]:
                if not seen[neighbor]:
                    seen[neighbor], order[count], count = True, neighbor, count + 1
            if count > first + 1:
                new = order[first:count].copy()
                order[first:count] = new[np.argsort(degrees[new], kind="mergesort")]


@compiled
def _move_rows(
    first: int, last: int, old_crow: Any, old_col: Any, old_weights: Any, nodes: Any, places: Any,
    crow: Any, col: Any, weights: Any,
) -> None:  # fmt: skip
    for row in range(first, last):
        start, end = old_crow[nodes[row]], old_crow[nodes[row] + 1]
        moved = places[old_col[start:end]]
        order = np.argsort(moved)
        for k in range(end - start):
            col[crow[row] + k] = moved[order[k]]
            weights[crow[row] + k] = old_weights[start + order[k]]


class Pattern(NamedTuple):
    """The row pointers and columns of one graph, self-loops included, the columns in as few bytes as they need."""

    crow: NDArray[np.int32]
    col: NDArray[np.integer[Any]]

    @property
    def num_bytes(self) -> int:
        return self.crow.nbytes + self.col.nbytes


def pattern_of(adjacency: Adjacency) -> Pattern | None:
    """The pattern of a graph on the CPU that is undirected and has no weights; None of others."""
    transpose = adjacency.transpose
    undirected = adjacency.crow.equal(transpose.crow) and adjacency.col.equal(transpose.col)
    if not undirected or not adjacency.unweighted:
        return None
    narrow = np.uint16 if adjacency.num_nodes <= 1 << 16 else np.int32
    return Pattern(adjacency.crow.numpy(), adjacency.col.numpy().astype(narrow))


def joined_patterns(patterns: Sequence[Pattern]) -> tuple[Adjacency, Tensor]:
    """Graphs side by side, and the graph of each node."""
    sizes = np.array([len(pattern.crow) - 1 for pattern in patterns])
    lengths = np.array([len(pattern.col) for pattern in patterns])
    crow, col = np.zeros(sizes.sum() + 1, np.int32), np.empty(lengths.sum(), np.int32)
    node = entry = 0
    for pattern, size, length in zip(patterns, sizes, lengths, strict=True):
        np.add(pattern.crow[1:], entry, out=crow[node + 1 : node + size + 1], casting="unsafe")
        np.add(pattern.col, node, out=col[entry : entry + length], casting="unsafe")
        node, entry = node + size, entry + length
    graph_of_node = torch.arange(len(patterns)).repeat_interleave(torch.from_numpy(sizes))
    return Adjacency(torch.from_numpy(crow), torch.from_numpy(col), undirected=True), graph_of_node


class BlockDiagonal:
    """Graphs side by side: the nodes of graph ``k`` are the rows ``bounds[k]`` to ``bounds[k + 1]``."""

    def __init__(self, adjacency: Adjacency, bounds: Tensor) -> None:
        self.adjacency = adjacency
        self.bounds = bounds
        self.lengths = adjacency.crow.diff()
        self.transpose_lengths = adjacency.transpose.crow.diff()

    def take(self, graphs: Tensor) -> tuple[Adjacency, Tensor, Tensor]:
        """The adjacency of some graphs, in this order; the rows of their nodes; and the graph of each node."""
        whole = self.adjacency
        first, last = self.bounds[graphs], self.bounds[graphs + 1]
        counts = last - first
        nodes, shift = _ranges(first, counts)
        # a block has as many entries as its transpose, so both begin at the same place
        first_entry = whole.crow[first].long()
        entry_counts = whole.crow[last].long() - first_entry
        entries, entry_shift = _ranges(first_entry, entry_counts)
        node_shift = shift.repeat_interleave(entry_counts).int()
        transpose = Transpose(
            _pointers(self.transpose_lengths[nodes]), whole.transpose.col[entries] + node_shift,
            whole.transpose.order[entries] + entry_shift.repeat_interleave(entry_counts).int(),
        )  # fmt: skip
        adjacency = Adjacency(
            _pointers(self.lengths[nodes]), whole.col[entries] + node_shift, whole.weights[entries], transpose
        )
        return adjacency, nodes, torch.arange(len(graphs)).repeat_interleave(counts)


def _ranges(first: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of all ranges, one after the other, and how far each range moves by that."""
    shift = counts.cumsum(0) - counts - first
    return torch.arange(int(counts.sum())) - shift.repeat_interleave(counts), shift


def _pointers(lengths: Tensor) -> Tensor:
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0, dtype=lengths.dtype)])
