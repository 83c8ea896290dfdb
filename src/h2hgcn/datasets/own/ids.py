"""Node ids as they are kept everywhere: 64-bit integers if all of them are such, else texts."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from h2hgcn.datasets.arrays import to_numpy
from h2hgcn.datasets.own.tables import Ids
from h2hgcn.errors import DataError

# A declared size beyond both is a damaged header, not a graph: every node takes memory, with edges or without.
_MANY_NODES = 10_000_000
_MOST_NODES_PER_EDGE = 100


def ids_of_array(array: Ids, origin: str) -> Ids:
    """The ids of an array; integers beyond 64 bits with a sign become texts, as those of a file do."""
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        return array.astype(np.str_)
    if array.dtype.kind not in "iuU":
        raise DataError(f"{origin} are of type {array.dtype}; node ids are integers or text")
    return array if array.dtype.kind == "U" else array.astype(np.int64)


def given_ids(values: Any, count: int, origin: str) -> Ids:
    """Ids that were given for the nodes 0, 1, 2, ..., one each."""
    ids = ids_of_array(to_numpy(values), origin)
    if ids.shape != (count,):
        raise DataError(f"{origin} have shape {ids.shape}, but there are {count} nodes; give one id each")
    return ids


def ids_of_objects(nodes: Sequence[Any], origin: str) -> Ids:
    """The ids of a graph's nodes, which may be objects of any kind with distinct names."""
    if are_integers({type(node) for node in nodes}):
        return ids_of_integers(nodes)
    texts = [str(node) for node in nodes]
    if len(set(texts)) < len(texts):
        raise DataError(f"{origin}: several nodes have the same name when written as text; rename them")
    return np.asarray(texts, dtype=np.str_)


def are_integers(kinds: set[type]) -> bool:
    return bool not in kinds and all(issubclass(kind, Integral) for kind in kinds)


def ids_of_integers(nodes: Sequence[Any]) -> Ids:
    numbers = [int(node) for node in nodes]
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array([str(number) for number in numbers], dtype=np.str_)


def integers_in(texts: Ids) -> Ids | None:
    """The integers that the texts stand for, if all say nothing else: ``007`` and ``²`` are no such."""
    try:
        numbers = np.array([int(text) for text in texts.tolist()], dtype=np.int64)
    except (ValueError, OverflowError):
        return None
    return numbers if np.array_equal(numbers.astype(np.str_), texts) else None


def numbered_ids(count: int, num_edges: int, origin: str) -> Ids:
    """The ids 0, 1, 2, ... of nodes that have none."""
    if count > max(_MANY_NODES, _MOST_NODES_PER_EDGE * num_edges):
        raise DataError(
            f"{origin} is said to have {count} nodes, but has {num_edges} edges; fix the size, or leave out the nodes "
            "without edges"
        )
    return np.arange(count)
