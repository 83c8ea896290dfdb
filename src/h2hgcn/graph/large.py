"""Graphs that are large: nodes reordered for locality, and many graphs as the blocks of one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from h2hgcn.graph.adjacency import Adjacency, inverse_order
from h2hgcn.jit import compiled
from h2hgcn.kernels.csr import sorted_entries

# Nodes from which on points are in no cache, so that it matters where they lie.
SCATTERED = 1 << 18


def reordered(adjacency: Adjacency, like: Adjacency | None = None) -> Adjacency:
    """An adjacency on the CPU in an order that brings neighbors together (Cuthill and McKee 1969), or in that of
    another graph of the same nodes.
    """
    nodes = _close_order(adjacency) if like is None else like.nodes
    assert nodes is not None
    places = inverse_order(nodes)
    entries = sorted_entries(places[adjacency.receivers], places[adjacency.col], adjacency.weights, adjacency.num_nodes)
    return Adjacency(*entries, nodes=nodes)


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


class GraphRows(NamedTuple):
    """The rows of one graph, self-loops included: their lengths and columns, and weights unless all are 1."""

    lengths: Tensor
    col: Tensor
    weights: Tensor | None

    @classmethod
    def of(cls, graph: Adjacency) -> "GraphRows":
        return cls(graph.crow.diff(), graph.col, None if graph.unweighted else graph.weights)

    @property
    def num_bytes(self) -> int:
        return sum(part.nbytes for part in self if part is not None)


def block_diagonal(graphs: Sequence[GraphRows]) -> tuple[Adjacency, Tensor]:
    """Graphs side by side, and the graph of each node."""
    num_nodes = torch.tensor([len(graph.lengths) for graph in graphs])
    num_entries = torch.tensor([len(graph.col) for graph in graphs])
    crow = F.pad(torch.cat([graph.lengths for graph in graphs]).cumsum(0, dtype=torch.int32), (1, 0))
    first_node = (num_nodes.cumsum(0) - num_nodes).int()
    col = torch.cat([graph.col for graph in graphs]) + first_node.repeat_interleave(num_entries)
    weights = None
    if any(graph.weights is not None for graph in graphs):
        ones = torch.ones(int(num_entries.max()), dtype=torch.float64)
        weights = torch.cat([ones[: len(rows.col)] if rows.weights is None else rows.weights for rows in graphs])
    return Adjacency(crow, col, weights), torch.arange(len(graphs)).repeat_interleave(num_nodes)
