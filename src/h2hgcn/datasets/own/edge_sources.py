"""The edges of a person's graph, out of the files and objects they come in."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.parsers import expat

import networkx as nx
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, Dataset
from torch_geometric.data.data import BaseData

from h2hgcn.datasets.own.edge_arrays import edges_from_arrays
from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.edge_objects import edges_from_matrix, edges_from_networkx, edges_from_pyg
from h2hgcn.datasets.own.edge_pairs import edges_from_pairs
from h2hgcn.datasets.own.edge_tables import EDGE_COLUMN_NAMES, edges_from_table
from h2hgcn.datasets.own.edge_weights import real_weights
from h2hgcn.datasets.own.frames import edge_frame, is_frame
from h2hgcn.datasets.own.ids import integers_in
from h2hgcn.datasets.own.tables import check_is_file, read_table
from h2hgcn.errors import DataError


def read_edges_from(source: Any, weights: Any, columns: tuple[str, str] | None, header: bool | None) -> EdgeList:
    """The edges of a file or of an object in memory, with the weights that were asked for."""
    if weights is not None and not isinstance(weights, str | bool):
        edges = _edges_of(source, False, columns, header)
        edges.weights = real_weights(weights, edges.origin)
        return edges
    edges = _edges_of(source, weights, columns, header)
    if weights and edges.weights is None and len(edges.source):
        named = f" called {weights!r}" if isinstance(weights, str) else ""
        raise DataError(f"{edges.origin}: there are no weights{named}; leave them out, or pass them as weights=[...]")
    return edges


def _edges_of(
    source: Any, weights: str | bool | None, columns: tuple[str, str] | None, header: bool | None
) -> EdgeList:
    if isinstance(source, str | Path):
        return _from_file(Path(source).expanduser(), weights, columns, header)
    if is_frame(source) and header is None:
        return edges_from_table(edge_frame(source, columns), weights, columns)
    if columns is not None or header is not None:
        raise DataError("columns is for tables and DataFrames, header for delimited files")
    if isinstance(source, nx.Graph):
        return edges_from_networkx(source, weights, "the networkx graph")
    if sp.issparse(source):
        return edges_from_matrix(source, weights, "the SciPy matrix")
    if isinstance(source, Data):
        return edges_from_pyg(source, weights)
    if isinstance(source, BaseData | Dataset):
        raise DataError(
            f"edges come from one graph with one kind of nodes, not from a {type(source).__name__}; pass dataset[0], "
            "or graph.to_homogeneous()"
        )
    if not hasattr(source, "__iter__"):
        raise DataError(f"edges come from a file or a graph, not from a {type(source).__name__}")
    if isinstance(source, torch.Tensor) and source.layout != torch.strided:
        raise DataError("the edges are a sparse tensor; pass a SciPy matrix, or its edge_index")
    return edges_from_pairs(source, with_weights=weights is not False)


def _from_file(
    path: Path, weights: str | bool | None, columns: tuple[str, str] | None, header: bool | None
) -> EdgeList:
    check_is_file(path)
    names = [suffix.lower() for suffix in path.suffixes]
    kind = next((suffix for suffix in reversed(names) if suffix != ".gz"), "")
    readers: dict[str, Callable[[Path, str | bool | None], EdgeList]] = {
        ".npz": edges_from_arrays,
        ".npy": edges_from_arrays,
        ".graphml": _from_xml,
        ".gexf": _from_xml,
        ".mtx": _from_market,
    }
    if kind in readers:
        if columns is not None or header is not None:
            raise DataError(f"{path}: columns and header are for delimited and Parquet files, not for {kind}")
        return readers[kind](path, weights)
    # columns may also be named by number, which tells nothing of a header
    names_of_headers = EDGE_COLUMN_NAMES | {n.strip().lower() for n in columns or () if not n.strip().isdecimal()}
    return edges_from_table(read_table(path, header, names_of_headers), weights, columns, header)


def _from_xml(path: Path, weights: str | bool | None) -> EdgeList:
    read = nx.read_graphml if ".graphml" in [suffix.lower() for suffix in path.suffixes] else nx.read_gexf
    try:
        count = _count_graphs(path)
        graph = read(path)
    except Exception as error:  # networkx lets through whatever its XML reader raises
        raise DataError(f"{path} cannot be read as a graph ({error}); write it again") from error
    if count > 1:
        raise DataError(f"{path} holds {count} graphs, but one is read; put each into a file of its own")
    edges = edges_from_networkx(graph, weights, str(path))
    integers = integers_in(edges.ids) if edges.ids.dtype.kind == "U" else None
    if integers is not None:
        edges.ids = integers
        by_text = edges.attributes
        assert by_text is not None
        edges.attributes = lambda name: {int(node): value for node, value in by_text(name).items()}
    return edges


def _count_graphs(path: Path) -> int:
    """How many graphs there are, nested ones included: networkx reads the first and passes over the others."""
    count = 0

    def count_graph(tag: str, _: Any) -> None:
        nonlocal count
        count += tag.rpartition(":")[2] == "graph"

    parser = expat.ParserCreate()
    parser.StartElementHandler = count_graph
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        parser.ParseFile(file)
    return count


def _from_market(path: Path, weights: str | bool | None) -> EdgeList:
    try:
        matrix = scipy.io.mmread(path, spmatrix=False)
    except Exception as error:  # a header that is not true ends in all kinds of errors, MemoryError among them
        raise DataError(f"{path} is not a whole MatrixMarket file ({error}); write it again") from error
    return edges_from_matrix(sp.coo_array(matrix), weights, str(path))
