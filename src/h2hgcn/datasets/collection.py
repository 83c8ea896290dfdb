"""Collections of labeled graphs: flat arrays, or a list of graphs in memory."""

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, Dataset

from h2hgcn.errors import DataError


class GraphCollection(Dataset):  # type: ignore[misc]
    """Many graphs with a class each; the base of collections that say in ``get`` how graph ``i`` is made.

    Indexing, slicing, ``shuffle`` and ``DataLoader`` are PyTorch Geometric's. A selection keeps ``num_classes`` and
    ``num_node_features`` of the whole, so that a model fits every part of a split.

    Args:
        name: What the collection is called.
        y: The class of every graph, ``(graphs)``, counted from 0.
        num_node_features: The number of columns of every graph's ``x``.
    """

    def __init__(self, name: str, y: Tensor, num_node_features: int) -> None:
        super().__init__()
        if y.dim() != 1 or y.is_floating_point() or not len(y) or int(y.min()) < 0:
            raise DataError(f"{name}: y must be one class a graph, counted from 0, but is {y.dtype} {tuple(y.shape)}")
        self.name = name
        self._labels = y.long()
        self._num_node_features = num_node_features

    @property
    def y(self) -> Tensor:
        """The classes of the graphs of this selection, in its order."""
        return self._labels if self._indices is None else self._labels[list(self._indices)]

    @property
    def num_classes(self) -> int:
        """The number of classes of the whole collection."""
        return int(self._labels.max()) + 1

    @property
    def num_node_features(self) -> int:
        """The number of features a node."""
        return self._num_node_features

    def checksum(self) -> str | None:
        """A hash of the whole collection's graphs, where there is a quicker way to it than through all of them."""
        return None

    def len(self) -> int:
        """The number of graphs of the whole collection; PyTorch Geometric's hook beneath ``len()``."""
        return len(self._labels)


class FlatCollection(GraphCollection):
    """Graphs one after the other in shared arrays, as readers of files with many graphs find them.

    Graph ``i`` has the nodes ``node_pointers[i]`` to ``node_pointers[i + 1]`` and likewise its edges, whose nodes are
    counted from 0 within their graph. The arrays may be of small types, such as ``uint8`` for one-hot features; a graph
    gets ``float32`` features and ``int64`` edges.
    """

    def __init__(
        self, name: str, x: Tensor, edge_index: Tensor, node_pointers: Tensor, edge_pointers: Tensor, y: Tensor
    ) -> None:
        super().__init__(name, y, num_node_features=x.shape[1])
        self._x, self._edge_index = x, edge_index
        self._node_pointers, self._edge_pointers = node_pointers, edge_pointers

    def checksum(self) -> str:
        digest = hashlib.sha256()
        for array in (self._x, self._edge_index, self._node_pointers, self._edge_pointers):
            digest.update(array.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def get(self, idx: int) -> Data:
        """Graph ``idx`` of the whole collection."""
        first_node, last_node = self._node_pointers[idx : idx + 2].tolist()
        first_edge, last_edge = self._edge_pointers[idx : idx + 2].tolist()
        return Data(
            x=self._x[first_node:last_node].float(),
            edge_index=self._edge_index[:, first_edge:last_edge].long().contiguous(),
            y=self._labels[idx : idx + 1],
        )


@dataclass(eq=False, repr=False)
class GraphList(Sequence[Data]):
    """A list of graphs, each with its class as ``y``; without classes, ``y`` is None and they can only be predicted.

    A selection (``graphs[10:20]``) keeps ``num_classes`` and the names of the whole.
    """

    graphs: list[Data]  # with the same columns of features
    name: str | None = None  # what the collection is called
    graph_ids: Any = None  # the names of the graphs, an array; without them, graphs are known by number
    label_names: list[Any] | None = None  # the names of the classes, in the order of their numbers
    feature_names: list[str] | None = None  # the names of the columns of x
    notes: list[str] = field(default_factory=list)  # what was left out, made up or assumed when they were read
    labeled: InitVar[bool] = True  # whether the graphs have classes
    y: Tensor | None = field(init=False, default=None)
    num_classes: int = field(init=False, default=0)

    def __post_init__(self, labeled: bool) -> None:
        self.graph_ids = None if self.graph_ids is None else np.asarray(self.graph_ids, dtype=np.str_)
        if labeled:
            self.y = torch.tensor([_class_of(graph, self._called(k)) for k, graph in enumerate(self.graphs)])
            self.num_classes = int(self.y.max()) + 1
        self.num_node_features = int(self.graphs[0].num_node_features)
        for number, graph in enumerate(self.graphs):
            if graph.num_node_features != self.num_node_features:
                raise DataError(
                    f"{self._called(number)} has {graph.num_node_features} features a node, {self._called(0)} has "
                    f"{self.num_node_features}; give all graphs the same columns"
                )

    def __getitem__(self, number: int | slice) -> Any:
        if not isinstance(number, slice):
            return self.graphs[number]
        chosen = self.graphs[number]
        if not chosen:
            raise DataError(f"there is no graph in [{number.start}:{number.stop}] of {len(self)}")
        part = copy.copy(self)
        part.graphs = chosen
        rows = list(range(len(self))[number])
        part.graph_ids = None if self.graph_ids is None else self.graph_ids[rows]
        part.y = None if self.y is None else self.y[rows]
        return part

    def __len__(self) -> int:
        return len(self.graphs)

    def _called(self, number: int) -> str:
        return f"graph {number}" if self.graph_ids is None else f"the graph {self.graph_ids[number]}"


def as_collection(data: Any) -> Any:
    """A list or tuple of graphs, or a PyG dataset without a ``y`` of its own, as a collection; others as they are.

    Graphs on another device are copied to the CPU, where data are checked and split.
    """
    if isinstance(data, Dataset) and getattr(data, "y", None) is None and len(data) > 1:
        return GraphList([data[k] for k in range(len(data))], name=getattr(data, "name", None))
    if isinstance(data, list | tuple) and data and all(isinstance(graph, Data) for graph in data):
        return GraphList([as_collection(graph) for graph in data])
    if isinstance(data, Data) and any(isinstance(x, torch.Tensor) and not x.is_cpu for _, x in data):
        return copy.copy(data).cpu()
    return data


def _class_of(graph: Data, what: str) -> int:
    y = graph.y
    given = y.reshape(-1).tolist() if isinstance(y, torch.Tensor) else [y]
    if len(given) != 1 or not isinstance(given[0], int | float) or given[0] % 1 != 0 or given[0] < 0:
        raise DataError(f"{what} has y={y!r}; give each graph one class, counted from 0, as its y")
    return int(given[0])
