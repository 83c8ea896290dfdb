"""Nodes by the ids that their graph came with."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import to_numpy
from h2hgcn.datasets.own.ids import unknown_nodes
from h2hgcn.errors import DataError

# Not all that Python reads as an integer, such as 03 or 1_0: ids in files are found by what is written, too.
_INTEGER = re.compile("0|-?[1-9][0-9]*")


class NodeNames:
    """The ids of a graph's nodes, or their numbers, if it has none."""

    def __init__(self, graph: Any) -> None:
        given = getattr(graph, "node_ids", None)
        self.ids: NDArray[Any] = np.arange(graph.num_nodes) if given is None else _checked_ids(given, graph.num_nodes)
        self._order = np.argsort(self.ids, kind="stable")
        ordered = self.ids[self._order]
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            raise DataError(f"node_ids names {twice[0]} more than once; give each node an id of its own")

    def numbers(self, ids: Any) -> NDArray[np.int64]:
        """The numbers of nodes that are named by id."""
        try:
            wanted = np.asarray(ids)
        except ValueError:
            raise DataError("the nodes are lists of different lengths; give one id after the other, or pairs") from None
        if not wanted.size:
            return np.zeros(wanted.shape, dtype=np.int64)
        if self.ids.dtype.kind == "U":
            wanted = wanted.astype(np.str_)
        if not len(self.ids):
            raise DataError("the graph has no nodes")
        if self.ids.dtype.kind != "U" and wanted.dtype.kind not in "iu":
            given = wanted.ravel().tolist()
            integers = [_as_integer(one) for one in given]
            strange = [one for one, integer in zip(given, integers, strict=True) if integer is None]
            if strange:
                raise DataError(unknown_nodes(strange, self.ids))
            wanted = np.array(integers).reshape(wanted.shape)
        ordered = self.ids[self._order]
        places = np.searchsorted(ordered, wanted.ravel()).clip(max=len(ordered) - 1)
        unknown = ordered[places] != wanted.ravel()
        if unknown.any():
            raise DataError(unknown_nodes(wanted.ravel()[unknown].tolist(), self.ids))
        return self._order[places].reshape(wanted.shape)

    def known(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of nodes that are named by id, -1 for those that are not in the graph."""
        own, order = self.ids, self._order
        if own.dtype.kind != ids.dtype.kind and "U" in (own.dtype.kind, ids.dtype.kind):
            own, ids = own.astype(np.str_), ids.astype(np.str_)
            order = np.argsort(own, kind="stable")
        places = np.searchsorted(own[order], ids).clip(max=len(own) - 1)
        return np.where(own[order][places] == ids, order[places], -1)


def _checked_ids(given: Any, num_nodes: int) -> NDArray[Any]:
    try:
        ids = to_numpy(given)
    except ValueError:
        raise DataError("node_ids are lists of different lengths; give each node one id") from None
    if ids.shape != (num_nodes,) or ids.dtype.kind not in "iuU":
        raise DataError(
            f"node_ids are {ids.dtype} of shape {ids.shape}; give each of the {num_nodes} nodes an integer or a text"
        )
    return ids


def _as_integer(given: Any) -> np.int64 | None:
    """An id as it was given: texts are read, as a command line has nothing else, if an integer is written so."""
    try:
        if type(given) is int or (isinstance(given, str) and _INTEGER.fullmatch(given)):
            return np.int64(given)
    except OverflowError:
        pass
    return None
