"""Edges as pairs of nodes in memory: lists, arrays and tensors."""

from typing import Any

import numpy as np

from h2hgcn.datasets.arrays import to_numpy
from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.edge_weights import real_weights
from h2hgcn.datasets.own.ids import are_integers, ids_of_array, ids_of_integers
from h2hgcn.datasets.own.tables import Ids
from h2hgcn.errors import DataError


def edges_from_pairs(pairs: Any, origin: str = "the edges", with_weights: bool = True) -> EdgeList:
    """Edges of an array or tensor, or of a list of pairs, or of triples with a weight at the end.

    An array of integers with two rows is an ``edge_index``, as in PyG; any other holds a pair in every row. Every item
    of a list is an edge.
    """
    if not hasattr(pairs, "shape"):
        return _from_list(list(pairs), origin, with_weights)
    array = to_numpy(pairs)
    edges = edges_from_array(array, origin, square_is_index=array.dtype.kind in "iu")
    if array.shape == (2, 2) and array.dtype.kind in "iu" and not np.array_equal(array, array.T):
        edges.notes.append(
            "two rows of two integers are taken for an edge_index, with an edge in every column; pass a list of pairs "
            "if an edge is in every row"
        )
    return edges


def edges_from_array(array: Any, origin: str, square_is_index: bool) -> EdgeList:
    """Edges of an array ``(2, k)`` or ``(k, 2)``; one that is both is as ``square_is_index`` says."""
    if array.ndim != 2 or 2 not in array.shape:
        raise DataError(
            f"{origin} have shape {array.shape}; pass an edge_index (2 × k), or pairs of nodes (k × 2), and weights "
            "apart from them"
        )
    is_index = array.shape[0] == 2 and (array.shape[1] != 2 or square_is_index)
    return _encoded(ids_of_array(array.T if is_index else array, origin), origin, "column" if is_index else "row")


def _from_list(pairs: list[Any], origin: str, with_weights: bool) -> EdgeList:
    lengths = {len(pair) if isinstance(pair, tuple | list) else 0 for pair in pairs}
    if not lengths <= {2} and not lengths <= {3}:
        raise DataError(
            f"{origin} must all be pairs of nodes, or all be triples of two nodes and a weight; an edge_index (2 × k) "
            "goes in as a tensor or an array"
        )
    nodes = [node for pair in pairs for node in pair[:2]]
    edges = _encoded(_ids_of_list(nodes, origin).reshape(-1, 2), origin, "row")
    if with_weights and lengths == {3}:
        edges.weights = real_weights([pair[2] for pair in pairs], origin)
    if _may_be_edge_index(pairs):
        edges.notes.append(
            f"the two lists are taken for two edges, {pairs[0]} and {pairs[1]}; an edge_index (2 × k) goes in as a "
            "tensor or an array"
        )
    return edges


def _ids_of_list(nodes: list[Any], origin: str) -> Ids:
    kinds = {type(node) for node in nodes}
    if are_integers(kinds):
        return ids_of_integers(nodes)
    if kinds <= {str, np.str_}:
        return np.array(nodes, dtype=np.str_)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise DataError(f"{origin} name nodes by {names}; use integers alone, or texts alone")


def _may_be_edge_index(pairs: list[Any]) -> bool:
    """Two lists of as many integers; tuples are edges without a doubt."""
    if len(pairs) != 2 or not all(isinstance(pair, list) for pair in pairs):
        return False
    is_same_graph = len(pairs[0]) == 2 and pairs[0][1] == pairs[1][0]
    return not is_same_graph and are_integers({type(value) for pair in pairs for value in pair})


def _encoded(pairs: Ids, origin: str, line: str) -> EdgeList:
    ids, codes = np.unique(pairs, return_inverse=True)
    codes = codes.reshape(pairs.shape)
    return EdgeList(ids, codes[:, 0], codes[:, 1], lambda row: f"{origin}, {line} {row}", origin)
