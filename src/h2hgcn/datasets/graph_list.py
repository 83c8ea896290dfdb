"""A plain list of graphs as a collection."""

from collections.abc import Sequence
from typing import Any, overload

import torch
from torch_geometric.data import Data

from h2hgcn.errors import DataError


class GraphList(Sequence[Data]):
    """Graphs that somebody has in memory, each with its class as ``y``."""

    def __init__(self, graphs: Sequence[Data]) -> None:
        self._graphs = list(graphs)
        self.y = torch.tensor([_class_of(graph, number) for number, graph in enumerate(self._graphs)])
        self.num_classes = int(self.y.max()) + 1
        self.num_node_features = int(self._graphs[0].num_node_features)
        for number, graph in enumerate(self._graphs):
            if graph.num_node_features != self.num_node_features:
                raise DataError(
                    f"graph {number} has {graph.num_node_features} features a node (x), graph 0 has "
                    f"{self.num_node_features}; give all graphs the same columns"
                )

    @overload
    def __getitem__(self, number: int) -> Data: ...
    @overload
    def __getitem__(self, number: slice) -> "GraphList": ...
    def __getitem__(self, number: int | slice) -> "Data | GraphList":
        return GraphList(self._graphs[number]) if isinstance(number, slice) else self._graphs[number]

    def __len__(self) -> int:
        return len(self._graphs)


def as_collection(data: Any) -> Any:
    """A list or tuple of graphs as a collection; whatever else comes, as it is."""
    graphs = isinstance(data, list | tuple) and bool(data) and all(isinstance(graph, Data) for graph in data)
    return GraphList(data) if graphs else data


def _class_of(graph: Data, number: int) -> int:
    y = graph.y
    given = y.reshape(-1).tolist() if isinstance(y, torch.Tensor) else [y]
    if len(given) != 1 or not isinstance(given[0], int | float) or given[0] % 1 != 0 or given[0] < 0:
        raise DataError(f"graph {number} has y={y!r}; give each graph one class, counted from 0, as its y")
    return int(given[0])
