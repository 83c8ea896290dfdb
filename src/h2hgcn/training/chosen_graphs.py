"""Which graphs a prediction is asked for."""

import operator
from typing import Any

from h2hgcn.datasets.graph_file import is_graph
from h2hgcn.errors import DataError


def chosen_graphs(what: Any, collection: Any) -> list[Any]:
    """``what`` as graphs: one, several, numbers of those in the collection, or all of the collection for None."""
    given = collection if what is None else what
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
    """Graphs of a collection by number; none, if these are no numbers or there is no collection."""
    if collection is None or is_graph(collection):
        return []
    try:
        places = [operator.index(number) for number in numbers]
    except TypeError:
        return []
    for number in places:
        if not 0 <= number < len(collection):
            raise DataError(f"there is no graph {number}; the graphs are numbered from 0 to {len(collection) - 1}")
    return [collection[number] for number in places]
