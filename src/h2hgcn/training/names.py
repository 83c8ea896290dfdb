"""Nodes and graphs by the ids that they came with."""

import operator
import re
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import to_numpy, unknown_nodes
from h2hgcn.datasets.on_disk import is_graph
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


def chosen_graphs(what: Any, collection: Any) -> list[Any]:
    """``what`` as graphs: one, several, numbers or names of those in the collection, or all of it for None."""
    given = collection if what is None else [what] if isinstance(what, str) else what
    if given is None:
        raise DataError("the run does not hold its graphs; pass some: run.predict(graphs)")
    several = hasattr(given, "__len__") and not is_graph(given)
    chosen: list[Any] = [given[k] for k in range(len(given))] if several else [given]
    if several and chosen and not any(map(is_graph, chosen)):
        chosen = _numbered(collection, chosen)
    if not chosen or not all(map(is_graph, chosen)):
        raise DataError("pass a graph, a list of graphs or of their numbers, or a collection: PyG's Data")
    return chosen


def _numbered(collection: Any, numbers: list[Any]) -> list[Any]:
    """Graphs of a collection by number or name; none, if these are neither or there is no collection."""
    if collection is None or is_graph(collection):
        return []
    if all(isinstance(name, str) for name in numbers) and getattr(collection, "graph_ids", None) is not None:
        numbers = _places(numbers, collection.graph_ids.tolist())
    try:
        places = [operator.index(number) for number in numbers]
    except TypeError:
        return []
    for number in places:
        if not 0 <= number < len(collection):
            raise DataError(f"there is no graph {number}; the graphs are numbered from 0 to {len(collection) - 1}")
    return [collection[number] for number in places]


def _places(names: list[str], known: list[str]) -> list[int]:
    place = {name: number for number, name in enumerate(known)}
    for name in names:
        if name not in place:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"names go from {known[0]} to {known[-1]}"
            raise DataError(f"there is no graph {name!r}; {hint}")
    return [place[name] for name in names]
