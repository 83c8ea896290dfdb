"""Batches of graphs, as block-diagonal graphs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.blocks import BlockDiagonal
from h2hgcn.tasks.edges import check_edges, edge_weight_of
from h2hgcn.tasks.features import as_floats, check_features
from h2hgcn.tasks.pattern_store import PatternStore, stored

# Numbers (features and edges) of a collection up to which it is prepared whole: about 1 GB.
_PREPARED_WHOLE = 1 << 27


class GraphBatch(NamedTuple):
    """Some graphs as one block-diagonal graph."""

    x: Any
    adjacency: Adjacency
    graph_of_node: Tensor
    y: Tensor

    def to(self, device: torch.device | str) -> "GraphBatch":
        moved: Any = [part.to(device) for part in self]
        return GraphBatch(*moved)


class GraphBatches:
    """Batches out of a collection. One that is not too large is prepared whole, and batches only copy; of a larger one,
    graphs are kept as patterns where that is all there is to them.
    """

    def __init__(self, graphs: Any, y: Tensor) -> None:
        self.graphs = graphs
        self.y = y
        self._whole: tuple[Tensor, BlockDiagonal] | None = None
        self._patterns: PatternStore | None = None

    def of(self, chosen: Any) -> GraphBatch:
        """The graphs of these numbers."""
        numbers = torch.as_tensor(chosen)
        if self._whole is None and self._patterns is None:
            self._prepare()
        if self._whole is not None:
            x, blocks = self._whole
            adjacency, nodes, graph_of_node = blocks.take(numbers)
            return GraphBatch(x.index_select(0, nodes), adjacency, graph_of_node, self.y[numbers])
        assert self._patterns is not None
        kept = self._patterns.take(numbers.tolist())
        if kept is None:
            return batch_of([self.essence(int(k)) for k in numbers], self.y[numbers])
        return GraphBatch(*kept, self.y[numbers])

    def essence(self, number: int) -> Data:
        """What a batch needs of a graph."""
        return essence(self.graphs[number], f"graph {number}")

    def _prepare(self) -> None:
        graphs: list[Data] = []
        numbers = 0
        for k in range(len(self.graphs)):
            graphs.append(self.essence(k))
            numbers += len(stored(graphs[-1].x)) + graphs[-1].edge_index.numel()
            if numbers > _PREPARED_WHOLE:
                self._patterns = PatternStore(self.essence)
                return
        batch = _joined(graphs)
        self._whole = batch.x, BlockDiagonal(_adjacency(batch), batch.ptr)


def batch_of(essences: Sequence[Data], y: Tensor | None = None) -> GraphBatch:
    """Some graphs as one block-diagonal graph."""
    batch = _joined(essences)
    y = torch.zeros(len(essences), dtype=torch.long) if y is None else y
    return GraphBatch(batch.x, _adjacency(batch), batch.batch, y)


def essence(graph: Any, what: str) -> Data:
    """What a batch needs of a graph, checked."""
    check_features(graph, what)
    check_edges(graph, what)
    return Data(x=as_floats(graph.x), edge_index=graph.edge_index, edge_weight=edge_weight_of(graph))


def _joined(essences: Sequence[Data]) -> Batch:
    """As one graph; PyG joins only what all have, so where some have weights, the others' are 1."""
    if any(graph.edge_weight is not None for graph in essences):
        essences = [
            graph if graph.edge_weight is not None else Data(graph.x, graph.edge_index, edge_weight=_ones(graph))
            for graph in essences
        ]
    return Batch.from_data_list(list(essences))


def _ones(graph: Data) -> Tensor:
    return torch.ones(graph.edge_index.shape[1])


def _adjacency(batch: Any) -> Adjacency:
    return prepare_adjacency(batch.edge_index, batch.edge_weight, batch.num_nodes)
