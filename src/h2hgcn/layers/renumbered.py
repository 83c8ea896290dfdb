"""A large graph with its nodes in another order, so that neighbours lie close together in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.compiled import compiled, run_on_rows
from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.sparse import transpose_pattern

# Nodes from which on points are in no cache, so that it matters where they lie.
SCATTERED = 1 << 18


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class RenumberedAdjacency(Adjacency):
    """Row ``k`` is that of ``nodes[k]``, a node of the graph as it was given, whose row is ``places[node]``."""

    nodes: Tensor
    places: Tensor

    def to(self, device: torch.device | str) -> Adjacency:
        if torch.device(device) == self.device:
            return self
        return RenumberedAdjacency(
            self.crow.to(device), self.col.to(device), self.weights.to(device),
            self.transpose_crow.to(device), self.transpose_col.to(device), self.transpose_order.to(device),
            nodes=self.nodes, places=self.places,
        )  # fmt: skip


def renumbered(adjacency: Adjacency, like: RenumberedAdjacency | None = None) -> RenumberedAdjacency:
    """An adjacency on the CPU in an order that brings neighbours together (Cuthill and McKee 1969), or in that of
    another graph of the same nodes.
    """
    nodes = _close_order(adjacency) if like is None else like.nodes
    places = torch.empty_like(nodes)
    places[nodes] = torch.arange(len(nodes))
    crow = torch.cat([adjacency.crow[:1], adjacency.crow.diff()[nodes].cumsum(0)]).int()
    col, weights = torch.empty_like(adjacency.col), torch.empty_like(adjacency.weights)
    arrays = (adjacency.crow, adjacency.col, adjacency.weights, nodes, places, crow, col, weights)
    width = 1 + len(col) // max(len(nodes), 1) * 8
    run_on_rows(_move_rows, (len(nodes), width), *(array.numpy() for array in arrays))
    return RenumberedAdjacency(crow, col, weights, *transpose_pattern(crow, col), nodes=nodes, places=places)


def _close_order(adjacency: Adjacency) -> Tensor:
    """Node after node, the neighbours that were not seen yet, those of low degree first; from a node of low degree in
    each component.

    SciPy's ``reverse_cuthill_mckee`` sorts the neighbours of a node in quadratic time, which takes minutes for a hub.
    """
    degrees = adjacency.crow.diff() + adjacency.transpose_crow.diff()
    starts = degrees.argsort(stable=True)
    order = np.empty(adjacency.num_nodes, np.int64)
    _walk(
        adjacency.crow.numpy(), adjacency.col.numpy(),
        adjacency.transpose_crow.numpy(), adjacency.transpose_col.numpy(), degrees.numpy(), starts.numpy(), order,
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
