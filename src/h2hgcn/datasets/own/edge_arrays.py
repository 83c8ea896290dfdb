"""Edges out of NumPy's files, and what is kept beside them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.matrices import holds_matrix, load_matrix
from h2hgcn.datasets.own.edge_list import MASKS, EdgeList
from h2hgcn.datasets.own.edge_objects import edges_from_matrix, take_masks
from h2hgcn.datasets.own.edge_pairs import edges_from_array, edges_from_pairs
from h2hgcn.datasets.own.edge_weights import real_weights
from h2hgcn.datasets.own.ids import given_ids
from h2hgcn.errors import DataError

_EDGES = ("edges", "edge_index")
_WEIGHTS = ("edge_weight", "weights", "weight")
_IDS = ("node_ids", "ids")
_FEATURES = ("x", "features", "feats")
_LABELS = ("y", "labels")


def edges_from_arrays(path: Path, weights: str | bool | None) -> EdgeList:
    """The edges of a .npy or .npz file, whichever of the two it is."""
    arrays = load_arrays(path)
    if isinstance(arrays, np.ndarray):
        return edges_from_pairs(arrays, str(path))
    if holds_matrix(arrays):
        return edges_from_matrix(load_matrix(path), weights, str(path))
    name = _first(arrays, _EDGES)
    if name is None:
        held = f"the arrays {', '.join(arrays)}" if arrays else "no arrays"
        raise DataError(f"{path} holds {held}; edges are looked for in 'edges' or 'edge_index'")
    edges = edges_from_array(arrays[name], f"{path}, {name}", square_is_index=name == "edge_index")
    key = weights if isinstance(weights, str) else _first(arrays, _WEIGHTS)
    if weights is not False and key is not None:
        if key not in arrays:
            raise DataError(f"{path} has no array {key!r}; it holds {', '.join(arrays)}")
        edges.weights = real_weights(arrays[key], f"{path}, {key}")
    names = [_first(arrays, names) for names in (_IDS, _FEATURES, _LABELS)]
    ids, edges.features, edges.labels = (None if name is None else arrays[name] for name in names)
    rows = next((name for name in names if name is not None), None)
    if rows is not None:
        _number(edges, _length(arrays[rows], f"{path}, {rows}"))
        take_masks(arrays.get, edges)
    if ids is not None:
        edges.ids = given_ids(ids, len(edges.ids), f"{path}, {names[0]}")
    unused = set(arrays) - {name, key, *names, *(MASKS if edges.all_nodes else ())}
    if unused:
        edges.notes.append(f"not used: {', '.join(sorted(unused))}")
    edges.origin = str(path)
    return edges


def _first(arrays: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in arrays), None)


def _length(array: Any, origin: str) -> int:
    if array.ndim == 0:
        raise DataError(f"{origin} is a single value; it takes one row a node")
    return len(array)


def _number(edges: EdgeList, size: int) -> None:
    """Takes the ends of edges for the numbers of rows."""
    if edges.ids.dtype.kind != "i":
        raise DataError(f"{edges.origin}: the ends must be the numbers of rows, 0 to {size - 1}")
    outside = edges.ids[(edges.ids < 0) | (edges.ids >= size)]
    if len(outside):
        raise DataError(
            f"{edges.origin}: an edge names node {outside[0]}, but there are {size} rows of nodes; fix the edge"
        )
    edges.source, edges.target = edges.ids[edges.source], edges.ids[edges.target]
    edges.ids, edges.all_nodes = np.arange(size), True
