"""Nodes and graphs by the ids that they came with."""

import operator
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import to_numpy, unknown_nodes
from h2hgcn.datasets.on_disk import is_graph
from h2hgcn.errors import DataError
from h2hgcn.tasks.checks import check_same_columns

# Not all that Python reads as an integer, such as 03 or 1_0: ids in files are found by what is written, too.
_INTEGER = re.compile("0|-?[1-9][0-9]*")


class NodeNames:
    """The ids of a graph's nodes, or their numbers, if it has none."""

    def __init__(self, graph: Any) -> None:
        given, count = getattr(graph, "node_ids", None), graph.num_nodes
        try:
            self.ids: NDArray[Any] = np.arange(count) if given is None else to_numpy(given)
        except ValueError:
            raise DataError("node_ids are lists of different lengths; give each node one id") from None
        if self.ids.shape != (count,) or self.ids.dtype.kind not in "iuU":
            raise DataError(
                f"node_ids are {self.ids.dtype} of shape {self.ids.shape}; give each of the {count} nodes an integer "
                "or a text"
            )
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
        if not len(self.ids):
            raise DataError("the graph has no nodes")
        if self.ids.dtype.kind == "U":
            wanted = wanted.astype(np.str_)
        elif wanted.dtype.kind not in "iu":
            given = wanted.ravel().tolist()
            integers = [_as_integer(one) for one in given]
            strange = [one for one, integer in zip(given, integers, strict=True) if integer is None]
            if strange:
                raise DataError(unknown_nodes(strange, self.ids))
            wanted = np.array(integers).reshape(wanted.shape)
        found = self.known(wanted.ravel())
        if (found < 0).any():
            raise DataError(unknown_nodes(wanted.ravel()[found < 0].tolist(), self.ids))
        return found.reshape(wanted.shape)

    def known(self, ids: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of nodes that are named by id, -1 for those that are not in the graph."""
        own, order = self.ids, self._order
        if own.dtype.kind != ids.dtype.kind and "U" in (own.dtype.kind, ids.dtype.kind):
            own, ids = own.astype(np.str_), ids.astype(np.str_)
            order = np.argsort(own, kind="stable")
        ordered = own[order]
        places = np.searchsorted(ordered, ids).clip(max=len(own) - 1)
        return np.where(ordered[places] == ids, order[places], -1)


def _as_integer(given: Any) -> np.int64 | None:
    """An id as it was given: texts are read, as a command line has nothing else, if an integer is written so."""
    try:
        if type(given) is int or (isinstance(given, str) and _INTEGER.fullmatch(given)):
            return np.int64(given)
    except OverflowError:
        pass
    return None


def ids_of(data: Any) -> NDArray[Any]:
    """The ids of a graph's nodes, or the names of the graphs of a collection; numbers, if they have none."""
    if is_graph(data):
        return NodeNames(data).ids
    names = getattr(data, "graph_ids", None)
    return np.arange(len(data)) if names is None else names


def chosen_graphs(what: Any, collection: Any, columns: list[str] | None) -> list[Any]:
    """``what`` as graphs: one, several, numbers or names of those in the collection, or all of it for None. Features
    that have names have to be the ``columns``.
    """
    given = collection if what is None else [what] if isinstance(what, str) else what
    if given is None:
        raise DataError("the run does not hold its graphs; pass some: run.predict(graphs)")
    several = hasattr(given, "__len__") and not is_graph(given)
    chosen: list[Any] = [given[k] for k in range(len(given))] if several else [given]
    if several and chosen and not any(map(is_graph, chosen)):
        chosen = _graphs_named(chosen, collection)
    if not chosen or not all(map(is_graph, chosen)):
        raise DataError("pass a graph, a list of graphs or of their numbers, or a collection: PyG's Data")
    for one in (what, collection, *chosen):
        check_same_columns(columns, one)
    return chosen


def _graphs_named(names: list[Any], collection: Any) -> list[Any]:
    """Graphs of a collection by number or name; none, if these are neither or there is no collection."""
    if collection is None or is_graph(collection):
        return []
    known = getattr(collection, "graph_ids", None)
    if known is not None and all(isinstance(name, str) for name in names):
        place = {name: number for number, name in enumerate(known.tolist())}
        unknown = [name for name in names if name not in place]
        if unknown:
            raise DataError(unknown_nodes(unknown, known, "graph"))
        names = [place[name] for name in names]
    try:
        numbers = [operator.index(name) for name in names]
    except TypeError:
        return []
    for number in numbers:
        if not 0 <= number < len(collection):
            raise DataError(f"there is no graph {number}; the graphs are numbered from 0 to {len(collection) - 1}")
    return [collection[number] for number in numbers]
