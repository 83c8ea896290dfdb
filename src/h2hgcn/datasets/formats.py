"""Graphs in files that are not tables: NumPy and SciPy arrays, GraphML, GEXF and MatrixMarket."""

import re
from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import MASKS, given_ids, ids_of_objects, integers_in, load_arrays
from h2hgcn.datasets.edges import (
    EdgeList,
    edges_from_array,
    edges_from_matrix,
    edges_from_networkx,
    edges_from_pairs,
    real_weights,
    take_masks,
)
from h2hgcn.datasets.table_files import BLOCK_BYTES, check_limit, file_kind, read_chunks, text_blocks
from h2hgcn.errors import DataError

# Every node takes memory, with edges or without, so that a file may not claim more than both of these.
_MANY_NODES, _MOST_NODES_PER_EDGE = 1_000_000, 100

# The arrays of an NPZ file, by their names.
_NAMES = {
    "edges": ("edges", "edge_index"), "weights": ("edge_weight", "weights", "weight"), "ids": ("node_ids", "ids"),
    "features": ("x", "features", "feats"), "labels": ("y", "labels"),
}  # fmt: skip


def edges_from_arrays(path: Path, weights: str | bool | None) -> EdgeList:
    """The edges of a .npy or .npz file, whichever of the two it is."""
    arrays = load_arrays(path)
    if isinstance(arrays, np.ndarray):
        return edges_from_pairs(arrays, str(path))
    if sp.issparse(arrays):
        return _edges_from_claimed(arrays, weights, path)
    found = {part: next((name for name in names if name in arrays), None) for part, names in _NAMES.items()}
    name = found.pop("edges")
    if name is None:
        held = f"the arrays {', '.join(arrays)}" if arrays else "no arrays"
        raise DataError(f"{path} holds {held}; edges are looked for in 'edges' or 'edge_index'")
    edges = edges_from_array(arrays[name], f"{path}, {name}", square_is_index=name == "edge_index")
    found_weights = found.pop("weights")
    key = weights if isinstance(weights, str) else found_weights
    if weights is not False and key is not None:
        if key not in arrays:
            raise DataError(f"{path} has no array {key!r}; it holds {', '.join(arrays)}")
        edges.weights = real_weights(arrays[key], len(edges.source), f"{path}, {key}")
    rows = next((name for name in found.values() if name is not None), None)
    if rows is not None:
        if arrays[rows].ndim == 0:
            raise DataError(f"{path}, {rows} is a single value; it takes one row a node")
        _number(edges, len(arrays[rows]))
        take_masks(arrays.get, edges)
    ids, edges.features, edges.labels = (None if name is None else arrays[name] for name in found.values())
    if ids is not None:
        edges.ids = given_ids(ids, len(edges.ids), f"{path}, {found['ids']}")
    unused = set(arrays) - {name, key, *found.values(), *(MASKS if edges.all_nodes else ())}
    if unused:
        edges.notes.append(f"not used: {', '.join(sorted(unused))}")
    edges.origin = str(path)
    return edges


def _number(edges: EdgeList, size: int) -> None:
    """Takes the ends of edges for the numbers of rows."""
    if edges.ids.dtype.kind != "i":
        raise DataError(f"{edges.origin}: the ends must be the numbers of rows, 0 to {size - 1}")
    outside = edges.ids[(edges.ids < 0) | (edges.ids >= size)]
    if len(outside):
        raise DataError(f"{edges.origin}: an edge names node {outside[0]}, but there are {size} rows of nodes")
    edges.source, edges.target = edges.ids[edges.source], edges.ids[edges.target]
    edges.ids, edges.all_nodes = np.arange(size), True


def _edges_from_claimed(matrix: Any, weights: str | bool | None, path: Path) -> EdgeList:
    """The edges of a file's matrix, whose size may be a mere claim."""
    limit = max(_MANY_NODES, _MOST_NODES_PER_EDGE * matrix.nnz)
    check_limit(max(matrix.shape), limit, f"{path} claims too many nodes for {matrix.nnz} edges")
    return edges_from_matrix(matrix, weights, str(path))


def edges_from_xml(path: Path, weights: str | bool | None) -> EdgeList:
    """The edges of a GraphML or GEXF file."""
    content = b"".join(read_chunks(path, BLOCK_BYTES))
    try:
        _check_xml(path, content)
        graph = (nx.read_graphml if file_kind(path) == ".graphml" else nx.read_gexf)(BytesIO(content))
    except DataError:
        raise
    except Exception as error:  # networkx lets through whatever its XML reader raises
        raise DataError(f"{path} cannot be read as a graph ({error}); write it again") from error
    integers = integers_in(ids_of_objects(list(graph), str(path)))
    if integers is not None:
        graph = nx.relabel_nodes(graph, dict(zip(graph, integers.tolist(), strict=True)))
    return edges_from_networkx(graph, weights, str(path))


def _check_xml(path: Path, content: bytes) -> None:
    """Raises at what networkx passes over: several graphs, repeated nodes, and edges of nodes that are not there."""
    nodes, ends, graphs = set[str](), list[str](), 0
    own = ""
    for _, element in ElementTree.iterparse(BytesIO(content), ["start"]):
        space, _, name = element.tag.rpartition("}")
        own = own or space
        wrong = None
        if space != own:  # extensions of the program that wrote the file
            continue
        if name == "graph":
            graphs += 1
            if element.get("edgedefault") not in (None, "directed", "undirected"):
                wrong = f"edgedefault={element.get('edgedefault')!r} is neither directed nor undirected"
        elif name == "node":
            node = element.get("id")
            if node is None or node in nodes:
                wrong = "a node has no id" if node is None else f"the node {node!r} comes twice"
            nodes.add(node or "")
        elif name == "edge":
            wrong = next((f"an edge has no {end}" for end in ("source", "target") if element.get(end) is None), None)
            ends += [element.get("source", ""), element.get("target", "")]
        if wrong is not None:
            raise DataError(f"{path}: {wrong}; write the file again")
    if graphs > 1:
        raise DataError(f"{path} holds {graphs} graphs, but one is read; put each into a file of its own")
    unknown = next((end for end in ends if end not in nodes), None)
    if unknown is not None:
        raise DataError(f"{path}: an edge names the node {unknown!r}, which the file does not have; write it again")


_MARKET_HEADER = re.compile(
    r"%%matrixmarket\s+matrix\s+(coordinate|array)\s+(real|double|integer|unsigned-integer|pattern)\s+"
    r"(general|symmetric|skew-symmetric)\s*"
)
_REAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_MARKET_VALUES = {"real": _REAL, "double": _REAL, "integer": "[+-]?[0-9]+", "unsigned-integer": "[+]?[0-9]+"}
_MARKET_COMMENTS = re.compile(r"(?m)^[ \t]*%.*$")


def edges_from_market(path: Path, weights: str | bool | None) -> EdgeList:
    """The edges of a MatrixMarket file. SciPy's own reader is compiled, and ends the process at some damaged files."""
    blocks: Iterator[tuple[int, str]]
    blocks = ((number, _MARKET_COMMENTS.sub("", text)) for number, text in text_blocks(path, BLOCK_BYTES))
    first = next(text_blocks(path, BLOCK_BYTES), (1, ""))[1].partition("\n")[0]
    header = _MARKET_HEADER.fullmatch(first.lower())
    if header is None:
        raise _broken_market(
            path, 1, first, "'%%MatrixMarket matrix', a format, a type of real numbers (not complex) and a symmetry"
        )
    form, kind, symmetry = header.groups()
    sizes, start = [], 1
    for start, text in blocks:
        line = re.search(r"[^\s].*", text)
        if line is not None:
            sizes = line[0].split()
            start += text.count("\n", 0, line.start())
            blocks = chain([(start + 1, text[line.end() + 1 :])], blocks)
            break
    expected = 3 if form == "coordinate" else 2
    if len(sizes) != expected or not all(re.fullmatch("[0-9]{1,18}", size) for size in sizes):
        raise _broken_market(path, start, " ".join(sizes), f"a line of {expected} whole numbers, the sizes")
    if sizes[0] != sizes[1]:
        raise DataError(f"{path} has shape ({sizes[0]}, {sizes[1]}), but an adjacency matrix is square")
    size = int(sizes[0])
    if form == "coordinate":
        table, count = _market_numbers(path, blocks, size, kind), int(sizes[2])
    else:  # values column by column; of a symmetric matrix those on and below the diagonal, of a skew one those below
        table = _market_numbers(path, blocks, None, kind)
        side = size - (symmetry == "skew-symmetric")
        count = size * size if symmetry == "general" else side * (side + 1) // 2
    if len(table) != count:
        what = "entries" if form == "coordinate" else "values"
        raise DataError(f"{path} has {len(table)} {what} where its header says {count}; write it again")
    if form == "coordinate":
        rows, columns = table[:, :2].T.astype(np.int64) - 1
    elif symmetry == "general":
        columns, rows = np.divmod(np.arange(count), max(size, 1))
    else:
        columns, rows = np.triu_indices(size, size - side)
    values = table[:, -1] if kind != "pattern" else np.ones(count)
    if symmetry != "general":
        lower = rows != columns
        mirrored = -values[lower] if symmetry == "skew-symmetric" else values[lower]
        rows, columns = np.concatenate([rows, columns[lower]]), np.concatenate([columns, rows[lower]])
        values = np.concatenate([values, mirrored])
    return _edges_from_claimed(sp.coo_array((values, (rows, columns)), shape=(size, size)), weights, path)


def _market_numbers(path: Path, blocks: Iterator[tuple[int, str]], size: int | None, kind: str) -> NDArray[np.float64]:
    """The numbers of each line: a row and a column from 1 to ``size``, unless that is None, and a value."""
    fields = [] if size is None else [r"[0-9]{1,18}"] * 2
    fields += [_MARKET_VALUES[kind]] if kind in _MARKET_VALUES else []
    entry = r"[ \t]+".join(fields)
    if size is None:  # a line may have several values
        entry = rf"{entry}(?:[ \t]+{entry})*"
    wrong = re.compile(rf"(?m)^(?![ \t]*(?:{entry}[ \t]*)?$).+")
    value = f"a value of type {kind}"
    expected = value if size is None else f"a row and a column from 1 to {size}" + f" and {value}" * (len(fields) > 2)
    parts = [np.empty((0, len(fields)))]
    for number, text in blocks:
        bad = wrong.search(text)
        if bad is not None:
            raise _broken_market(path, number + text.count("\n", 0, bad.start()), bad[0], expected)
        if not text or text.isspace():
            continue
        numbers = np.fromstring(text, sep=" ").reshape(-1, len(fields))
        if size is not None:
            outside = np.flatnonzero(((numbers[:, :2] < 1) | (numbers[:, :2] > size)).any(axis=1))
            if len(outside):
                lines = [(k, line) for k, line in enumerate(text.split("\n"), number) if line.strip()]
                raise _broken_market(path, *lines[int(outside[0])], expected)
        parts.append(numbers)
    return np.concatenate(parts)


def _broken_market(path: Path, number: int, line: str, expected: str) -> DataError:
    return DataError(f"{path}, line {number}: {line[:40]!r} is not {expected}; write the MatrixMarket file again")
