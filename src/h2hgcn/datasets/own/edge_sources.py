"""The edges of a person's graph, out of the files and objects they come in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import scipy.io
import scipy.sparse as sp

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.edge_objects import (
    edges_from_matrix,
    edges_from_networkx,
    edges_from_pairs,
    edges_from_pyg,
    real_weights,
)
from h2hgcn.datasets.own.edge_tables import EDGE_COLUMN_NAMES, edges_from_table
from h2hgcn.datasets.own.tables import Ids, check_is_file, read_table
from h2hgcn.errors import DataError


def read_edges_from(
    source: Any, weights: str | bool | None, columns: tuple[str, str] | None, header: bool | None
) -> EdgeList:
    """The edges of a file or of an object in memory."""
    if weights is not None and not isinstance(weights, str | bool):
        edges = read_edges_from(source, False, columns, header)
        edges.weights = real_weights(weights, edges.origin)
        return edges
    if isinstance(source, str | Path):
        return _from_file(Path(source).expanduser(), weights, columns, header)
    if columns is not None or header is not None:
        raise DataError("columns and header are for delimited and Parquet files")
    if isinstance(source, nx.Graph):
        return edges_from_networkx(source, weights, "the networkx graph")
    if sp.issparse(source):
        return edges_from_matrix(source, weights, "the SciPy matrix")
    if hasattr(source, "edge_index"):
        return edges_from_pyg(source, weights)
    if not hasattr(source, "__iter__"):
        raise DataError(f"edges come from a file or a graph, not from a {type(source).__name__}")
    return edges_from_pairs(source, with_weights=weights is not False)


def _from_file(
    path: Path, weights: str | bool | None, columns: tuple[str, str] | None, header: bool | None
) -> EdgeList:
    check_is_file(path)
    names = [suffix.lower() for suffix in path.suffixes]
    kind = next((suffix for suffix in reversed(names) if suffix != ".gz"), "")
    readers: dict[str, Callable[[Path, str | bool | None], EdgeList]] = {
        ".npz": _from_npz,
        ".npy": lambda path, _: edges_from_pairs(load_arrays(path), str(path)),
        ".graphml": _from_xml,
        ".gexf": _from_xml,
        ".mtx": _from_market,
    }
    if kind in readers:
        if columns is not None or header is not None:
            raise DataError(f"{path}: columns and header are for delimited and Parquet files, not for {kind}")
        return readers[kind](path, weights)
    return edges_from_table(read_table(path, header, EDGE_COLUMN_NAMES), weights, columns, header)


def _from_npz(path: Path, weights: str | bool | None) -> EdgeList:
    arrays = load_arrays(path)
    if {"indptr", "indices", "data", "shape"} <= set(arrays):
        return edges_from_matrix(sp.load_npz(path), weights, str(path))
    name = next((name for name in ("edges", "edge_index") if name in arrays), None)
    if name is None:
        raise DataError(f"{path} holds the arrays {', '.join(arrays)}; edges are looked for in 'edges' or 'edge_index'")
    edges = edges_from_pairs(arrays[name].T if name == "edge_index" else arrays[name], f"{path}, {name}")
    key = (
        weights
        if isinstance(weights, str)
        else next((k for k in ("edge_weight", "weights", "weight") if k in arrays), None)
    )
    if weights is not False and key is not None:
        if key not in arrays:
            raise DataError(f"{path} has no array {key!r}; it holds {', '.join(arrays)}")
        edges.weights = arrays[key].astype(np.float64)
    ids = next((arrays[k] for k in ("node_ids", "ids") if k in arrays), None)
    edges.features = next((arrays[k] for k in ("x", "features", "feats") if k in arrays), None)
    edges.labels = next((arrays[k] for k in ("y", "labels") if k in arrays), None)
    rows = next((len(part) for part in (ids, edges.features, edges.labels) if part is not None), None)
    return edges if rows is None else _numbered(edges, rows, ids)


def _numbered(edges: EdgeList, size: int, ids: Ids | None) -> EdgeList:
    """Edges whose ends are the numbers of rows."""
    if edges.ids.dtype.kind != "i":
        raise DataError(f"{edges.origin}: the ends must be the numbers of rows, 0 to {size - 1}")
    outside = edges.ids[(edges.ids < 0) | (edges.ids >= size)]
    if len(outside):
        raise DataError(
            f"{edges.origin}: an edge names node {outside[0]}, but there are {size} rows of nodes; fix the edge"
        )
    edges.source, edges.target = edges.ids[edges.source], edges.ids[edges.target]
    edges.ids, edges.all_nodes = np.arange(size) if ids is None else ids, True
    return edges


def _from_xml(path: Path, weights: str | bool | None) -> EdgeList:
    read = nx.read_graphml if ".graphml" in [suffix.lower() for suffix in path.suffixes] else nx.read_gexf
    try:
        graph = read(path)
    except Exception as error:  # networkx lets through whatever its XML reader raises
        raise DataError(f"{path} cannot be read as a graph ({error}); write it again") from error
    edges = edges_from_networkx(graph, weights, str(path))
    if edges.ids.dtype.kind == "U" and all(node.isdigit() and str(int(node)) == node for node in edges.ids):
        edges.ids = edges.ids.astype(np.int64)
        by_text = edges.attributes
        assert by_text is not None
        edges.attributes = lambda name: {int(node): value for node, value in by_text(name).items()}
    return edges


def _from_market(path: Path, weights: str | bool | None) -> EdgeList:
    try:
        matrix = scipy.io.mmread(path, spmatrix=False)
    except (ValueError, TypeError, OverflowError, OSError, EOFError) as error:
        raise DataError(f"{path} is not a whole MatrixMarket file ({error}); write it again") from error
    return edges_from_matrix(sp.coo_array(matrix), weights, str(path))
