"""Graphs of a collection that is too large to be prepared whole, kept as patterns."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.patterns import Pattern, PatternAdjacency, joined_patterns, pattern_of

# Bytes of the graphs that are kept.
_ROOM = 1 << 31


class _Graph(NamedTuple):
    x: Tensor
    pattern: Pattern

    @property
    def num_bytes(self) -> int:
        return stored(self.x).nbytes + self.pattern.num_bytes


class PatternStore:
    """Graphs by their numbers, kept when they are first asked for, as long as there is room.

    Args:
        essence: Gives what a batch needs of a graph.
    """

    def __init__(self, essence: Callable[[int], Data]) -> None:
        self.essence = essence
        self._graphs: dict[int, _Graph | None] = {}
        self._room = _ROOM

    def take(self, numbers: Sequence[int]) -> tuple[Tensor, PatternAdjacency, Tensor] | None:
        """Features, adjacency and the graph of each node, of some graphs side by side; None if one of them has weights
        or directions.
        """
        graphs = []
        for number in numbers:
            graph = self._graph(number)
            if graph is None:
                return None
            graphs.append(graph)
        return torch.cat([graph.x for graph in graphs]), *joined_patterns([graph.pattern for graph in graphs])

    def _graph(self, number: int) -> _Graph | None:
        if number in self._graphs:
            return self._graphs[number]
        essence = self.essence(number)
        pattern = pattern_of(prepare_adjacency(essence.edge_index, essence.edge_weight, essence.num_nodes))
        graph = None if pattern is None else _Graph(essence.x, pattern)
        num_bytes = 0 if graph is None else graph.num_bytes
        if self._room >= num_bytes:
            self._room -= num_bytes
            self._graphs[number] = graph
        return graph


def stored(x: Tensor) -> Tensor:
    """The numbers that a tensor holds; of a sparse one, those that are not 0."""
    return x._values() if x.is_sparse else x.flatten()
