"""Batches of graphs, as block-diagonal graphs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.blocks import BlockDiagonal

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
    """Batches out of a collection. A collection that is not too large is prepared once, and batches only copy."""

    def __init__(self, graphs: Any, y: Tensor) -> None:
        self.graphs = graphs
        self.y = y
        self._whole: tuple[Tensor, BlockDiagonal] | None = None
        self._asked = 0

    def of(self, chosen: Any) -> GraphBatch:
        """The graphs of these numbers."""
        numbers = torch.as_tensor(chosen)
        self._asked += len(numbers)
        if self._whole is None and len(self.graphs) < self._asked:  # when most would have been prepared once
            self._whole = self._prepare()
        if self._whole is None:
            return batch_of([self.graphs[int(k)] for k in numbers], self.y[numbers])
        x, blocks = self._whole
        adjacency, nodes, graph_of_node = blocks.take(numbers)
        return GraphBatch(x[nodes], adjacency, graph_of_node, self.y[numbers])

    def _prepare(self) -> tuple[Tensor, BlockDiagonal] | None:
        graphs = [essence(self.graphs[k]) for k in range(len(self.graphs))]
        if sum(graph.x.numel() + graph.edge_index.numel() for graph in graphs) > _PREPARED_WHOLE:
            self._asked = -(1 << 62)
            return None
        batch = Batch.from_data_list(graphs)
        adjacency = prepare_adjacency(batch.edge_index, getattr(batch, "edge_weight", None), batch.num_nodes)
        return batch.x, BlockDiagonal(adjacency, batch.ptr)


def batch_of(graphs: Sequence[Any], y: Tensor | None = None) -> GraphBatch:
    """Some graphs as one block-diagonal graph."""
    batch = Batch.from_data_list([essence(graph) for graph in graphs])
    adjacency = prepare_adjacency(batch.edge_index, getattr(batch, "edge_weight", None), batch.num_nodes)
    return GraphBatch(batch.x, adjacency, batch.batch, torch.zeros(len(graphs), dtype=torch.long) if y is None else y)


def essence(graph: Any) -> Data:
    """What a batch needs of a graph: attributes that only some graphs have could not be joined."""
    return Data(x=graph.x, edge_index=graph.edge_index, edge_weight=getattr(graph, "edge_weight", None))
