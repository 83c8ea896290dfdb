"""A large graph with its nodes in another order, so that neighbours lie close together in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import reverse_cuthill_mckee
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
    size = adjacency.num_nodes
    entries = np.ones(len(adjacency.col), np.int8)
    pattern = sp.csr_array((entries, adjacency.col.numpy(), adjacency.crow.numpy()), shape=(size, size))
    order = reverse_cuthill_mckee(pattern, symmetric_mode=bool((adjacency.crow == adjacency.transpose_crow).all()))
    return torch.from_numpy(order.astype(np.int64))


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
