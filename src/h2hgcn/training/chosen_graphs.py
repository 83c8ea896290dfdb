"""Which graphs a prediction is asked for."""

import operator
from difflib import get_close_matches
from typing import Any

from h2hgcn.datasets.graph_file import is_graph
from h2hgcn.errors import DataError


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
