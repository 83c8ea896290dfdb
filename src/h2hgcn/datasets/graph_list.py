"""Graphs in memory as a collection."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data, Dataset

from h2hgcn.errors import DataError


class GraphList(Sequence[Data]):
    """A list of graphs, each with its class as ``y``.

    A selection (``graphs[10:20]``) keeps ``num_classes`` and the names of the whole.

    Args:
        graphs: Graphs with the same columns of features.
        name: What the collection is called.
        graph_ids: The names of the graphs; without them, graphs are known by number.
        label_names: The names of the classes, in the order of their numbers.
        feature_names: The names of the columns of ``x``.
        notes: What was left out, made up or assumed when the graphs were read.
        labeled: Whether the graphs have classes; if not, ``y`` is None and they can only be predicted.
    """

    def __init__(
        self,
        graphs: Sequence[Data],
        *,
        name: str | None = None,
        graph_ids: Sequence[str] | None = None,
        label_names: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        notes: Sequence[str] = (),
        labeled: bool = True,
    ) -> None:
        self._graphs = list(graphs)
        self.name = name
        self.graph_ids: NDArray[Any] | None = None if graph_ids is None else np.asarray(graph_ids, dtype=np.str_)
        self.label_names = None if label_names is None else list(label_names)
        self.feature_names = None if feature_names is None else list(feature_names)
        self.notes = list(notes)
        self.y: torch.Tensor | None = None
        self.num_classes = 0
        if labeled:
            self.y = torch.tensor([_class_of(graph, self._called(k)) for k, graph in enumerate(self._graphs)])
            self.num_classes = int(self.y.max()) + 1
        self.num_node_features = int(self._graphs[0].num_node_features)
        for number, graph in enumerate(self._graphs):
            if graph.num_node_features != self.num_node_features:
                raise DataError(
                    f"{self._called(number)} has {graph.num_node_features} features a node (x), {self._called(0)} has "
                    f"{self.num_node_features}; give all graphs the same columns"
                )

    @overload
    def __getitem__(self, number: int) -> Data: ...
    @overload
    def __getitem__(self, number: slice) -> "GraphList": ...
    def __getitem__(self, number: int | slice) -> "Data | GraphList":
        if not isinstance(number, slice):
            return self._graphs[number]
        chosen = self._graphs[number]
        if not chosen:
            raise DataError(f"there is no graph in [{number.start}:{number.stop}] of {len(self)}")
        part = GraphList(
            chosen,
            name=self.name,
            graph_ids=None if self.graph_ids is None else self.graph_ids[number].tolist(),
            label_names=self.label_names,
            feature_names=self.feature_names,
            notes=self.notes,
            labeled=self.y is not None,
        )
        part.num_classes = self.num_classes
        return part

    def __len__(self) -> int:
        return len(self._graphs)

    def _called(self, number: int) -> str:
        return f"graph {number}" if self.graph_ids is None else f"the graph {self.graph_ids[number]}"


def as_collection(data: Any) -> Any:
    """A list or tuple of graphs, or a PyG dataset without a ``y`` of its own, as a collection; others as they are."""
    if isinstance(data, Dataset) and getattr(data, "y", None) is None and len(data) > 1:
        return GraphList([data[k] for k in range(len(data))], name=getattr(data, "name", None))
    graphs = isinstance(data, list | tuple) and bool(data) and all(isinstance(graph, Data) for graph in data)
    return GraphList(data) if graphs else data


def _class_of(graph: Data, what: str) -> int:
    y = graph.y
    given = y.reshape(-1).tolist() if isinstance(y, torch.Tensor) else [y]
    if len(given) != 1 or not isinstance(given[0], int | float) or given[0] % 1 != 0 or given[0] < 0:
        raise DataError(f"{what} has y={y!r}; give each graph one class, counted from 0, as its y")
    return int(given[0])
