"""Collections of labelled graphs, held in flat arrays and made into ``Data`` when one is asked for."""

import hashlib

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

    Graph ``i`` has the nodes ``node_pointers[i]`` to ``node_pointers[i + 1]`` and likewise its edges. The arrays may be
    of small types, such as ``uint8`` for one-hot features; a graph gets ``float32`` features and ``int64`` edges.

    Args:
        name: What the collection is called.
        x: Features of all nodes, ``(nodes, features)``.
        edge_index: All edges, ``(2, edges)``, both directions, nodes counted from 0 within their graph.
        node_pointers: Where each graph's nodes begin, and the number of nodes at last, ``(graphs + 1)``.
        edge_pointers: The same of the edges.
        y: The class of every graph, ``(graphs)``, counted from 0.
    """

    def __init__(
        self, name: str, x: Tensor, edge_index: Tensor, node_pointers: Tensor, edge_pointers: Tensor, y: Tensor
    ) -> None:
        super().__init__(name, y, num_node_features=x.shape[1])
        _check_pointers(f"{name}: node_pointers", node_pointers, len(y), len(x))
        _check_pointers(f"{name}: edge_pointers", edge_pointers, len(y), edge_index.shape[1])
        _check_edges(name, edge_index, node_pointers.diff(), edge_pointers.diff())
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


def _check_pointers(what: str, pointers: Tensor, graphs: int, total: int) -> None:
    if pointers.shape != (graphs + 1,):
        raise DataError(f"{what} must be {graphs + 1} numbers for {graphs} graphs, but has {tuple(pointers.shape)}")
    if int(pointers[0]) != 0 or int(pointers[-1]) != total or bool((pointers.diff() < 0).any()):
        raise DataError(f"{what} must rise from 0 to {total}, but goes from {int(pointers[0])} to {int(pointers[-1])}")


def _check_edges(name: str, edge_index: Tensor, nodes: Tensor, edges: Tensor) -> None:
    graphs = torch.repeat_interleave(torch.arange(len(edges)), edges)
    outside = (edge_index < 0) | (edge_index >= nodes[graphs])
    if bool(outside.any()):
        end, edge = outside.nonzero()[0].tolist()
        graph = int(graphs[edge])
        raise DataError(
            f"{name}: an edge of graph {graph} names node {int(edge_index[end, edge])}, but the graph has "
            f"{int(nodes[graph])} nodes; count nodes from 0 within their graph"
        )
