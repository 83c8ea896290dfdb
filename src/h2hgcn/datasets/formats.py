"""Graphs in files that are not tables: NumPy and SciPy arrays, GraphML, GEXF and MatrixMarket."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from xml.parsers import expat

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import scipy.sparse as sp
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import MASKS, given_ids, holds_matrix, integers_in, load_arrays, load_matrix
from h2hgcn.datasets.edges import (
    EdgeList,
    edges_from_array,
    edges_from_matrix,
    edges_from_networkx,
    edges_from_pairs,
    real_weights,
    take_masks,
)
from h2hgcn.datasets.table_files import BLOCK_BYTES, check_limit, check_unpacked, open_bytes, text_blocks
from h2hgcn.datasets.tables import Codes
from h2hgcn.errors import DataError

# Every node takes memory, with edges or without, so that a file may not claim more than both of these.
_MANY_NODES, _MOST_NODES_PER_EDGE = 1_000_000, 100

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
        return _edges_from_claimed(load_matrix(path), weights, path)
    name = _first(arrays, _EDGES)
    if name is None:
        held = f"the arrays {', '.join(arrays)}" if arrays else "no arrays"
        raise DataError(f"{path} holds {held}; edges are looked for in 'edges' or 'edge_index'")
    edges = edges_from_array(arrays[name], f"{path}, {name}", square_is_index=name == "edge_index")
    key = weights if isinstance(weights, str) else _first(arrays, _WEIGHTS)
    if weights is not False and key is not None:
        if key not in arrays:
            raise DataError(f"{path} has no array {key!r}; it holds {', '.join(arrays)}")
        edges.weights = real_weights(arrays[key], len(edges.source), f"{path}, {key}")
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


def _edges_from_claimed(matrix: Any, weights: str | bool | None, path: Path) -> EdgeList:
    """The edges of a file's matrix, whose size may be a mere claim."""
    limit = max(_MANY_NODES, _MOST_NODES_PER_EDGE * matrix.nnz)
    check_limit(max(matrix.shape), limit, f"{path} claims too many nodes for {matrix.nnz} edges")
    return edges_from_matrix(matrix, weights, str(path))


def edges_from_xml(path: Path, weights: str | bool | None) -> EdgeList:
    read = nx.read_graphml if ".graphml" in [suffix.lower() for suffix in path.suffixes] else nx.read_gexf
    try:
        count = _count_graphs(path)
        graph = read(path)
    except DataError:
        raise
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
    size = 0
    with open_bytes(path) as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
            check_unpacked(path, size)
            parser.Parse(chunk)
        parser.Parse(b"", True)
    return count


Block = tuple[int, str]  # some lines, and the number of the first

_MARKET_HEADER = re.compile(
    r"%%matrixmarket\s+matrix\s+(coordinate|array)\s+(real|double|integer|unsigned-integer|pattern|complex)\s+"
    r"(general|symmetric|skew-symmetric|hermitian)\s*"
)
_WHOLE = r"[0-9]{1,18}"
_REAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|infinity|nan)"
_MARKET_VALUES = {"real": _REAL, "double": _REAL, "integer": "[+-]?[0-9]+", "unsigned-integer": "[+]?[0-9]+"}
_BLANKS = re.compile(r"[ \t]+")
_OUTER_BLANKS = re.compile(r"(?m)^[ \t]+|[ \t]+$")
_MARKET_COMMENTS = re.compile(r"(?m)^[ \t]*%[^\n]*$")


def edges_from_market(path: Path, weights: str | bool | None) -> EdgeList:
    """The edges of a MatrixMarket file. SciPy's own reader is compiled, and ends the process at some damaged files."""
    lines = text_blocks(path, BLOCK_BYTES)
    first, _, text = next(lines, (1, ""))[1].partition("\n")
    header = _MARKET_HEADER.fullmatch(first.lower())
    if header is None:
        raise _broken_market(path, 1, "it does not begin with '%%MatrixMarket matrix', a format, a type and a symmetry")
    form, kind, symmetry = header.groups()
    if kind == "complex" or symmetry == "hermitian":
        raise DataError(f"{path}: entries are complex, but they must be real numbers")
    rest = ((number, _MARKET_COMMENTS.sub("", text)) for number, text in chain([(2, text)], lines))
    sizes, blocks = _market_sizes(path, rest, 3 if form == "coordinate" else 2)
    if sizes[0] != sizes[1]:
        raise DataError(f"{path} has shape ({sizes[0]}, {sizes[1]}), but an adjacency matrix is square")
    if form == "array":
        rows, columns, values = _market_array(path, blocks, sizes[0], kind, symmetry)
    else:
        rows, columns, values = _market_entries(path, blocks, sizes[0], sizes[2], kind)
    if symmetry != "general":
        lower = rows != columns
        mirrored = -values[lower] if symmetry == "skew-symmetric" else values[lower]
        rows, columns = np.concatenate([rows, columns[lower]]), np.concatenate([columns, rows[lower]])
        values = np.concatenate([values, mirrored])
    return _edges_from_claimed(sp.coo_array((values, (rows, columns)), shape=(sizes[0], sizes[0])), weights, path)


def _market_sizes(path: Path, blocks: Iterator[Block], expected: int) -> tuple[list[int], Iterator[Block]]:
    """The numbers in the first line that is not blank, and what follows it."""
    number, text = next(((number, text) for number, text in blocks if text.strip()), (2, ""))
    line, _, rest = text.lstrip().partition("\n")
    number += text[: len(text) - len(text.lstrip())].count("\n")
    sizes = line.split()
    if len(sizes) != expected or not all(re.fullmatch(_WHOLE, size) for size in sizes):
        raise _broken_market(path, number, f"the sizes must be {expected} whole numbers")
    return [int(size) for size in sizes], chain([(number + 1, rest)], blocks)


def _market_entries(
    path: Path, blocks: Iterator[Block], size: int, count: int, kind: str
) -> tuple[Codes, Codes, NDArray[np.float64]]:
    names = ["row", "column", "value"][: 2 if kind == "pattern" else 3]
    parts: list[tuple[Any, ...]] = []
    for number, text in blocks:
        if text.strip():
            parts.append(_parse_entries(text, names, size, kind) or _parts_of_entries(path, number, text, size, kind))
    found = sum(len(part[0]) for part in parts)
    if found != count:
        raise DataError(f"{path} has {found} entries where its header says {count}; write it again")
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    rows, columns, *values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return rows - 1, columns - 1, values[0] if values else np.ones(found)


def _parse_entries(text: str, names: list[str], size: int, kind: str) -> tuple[Any, ...] | None:
    """By Arrow, with every field checked before it is converted; None where something is wrong."""
    if "  " in text or "\t" in text:
        text = _BLANKS.sub(" ", text)
    if " \n" in text or "\n " in text or text[:1] == " " or text[-1:] == " ":
        text = _OUTER_BLANKS.sub("", text)
    content = text.encode()
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(content),
            pa_csv.ReadOptions(column_names=names, block_size=len(content) + 1),
            pa_csv.ParseOptions(delimiter=" ", quote_char=False),
            pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
        ends = [_checked_numbers(table[name], _WHOLE, pa.int64()) for name in names[:2]]
        values = [_checked_numbers(table[name], _MARKET_VALUES[kind], pa.float64()) for name in names[2:]]
    except (pa.ArrowInvalid, ValueError):
        return None
    return None if any(len(end) and (end.min() < 1 or end.max() > size) for end in ends) else (*ends, *values)


def _checked_numbers(texts: Any, pattern: str, kind: pa.DataType) -> NDArray[Any]:
    if pc.all(pc.match_substring_regex(texts, f"^(?:{pattern})$")).as_py() is False:
        raise ValueError(pattern)
    return texts.cast(kind).to_numpy()


def _parts_of_entries(path: Path, number: int, text: str, size: int, kind: str) -> tuple[Any, ...]:
    """The same line by line; raises at the first that is wrong."""
    width = 2 if kind == "pattern" else 3
    found: list[tuple[Any, ...]] = []
    for line_number, line in enumerate(text.split("\n"), number):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != width:
            raise _broken_market(path, line_number, f"{len(fields)} fields where an entry has {width}")
        for end in fields[:2]:
            if not re.fullmatch(_WHOLE, end) or not 1 <= int(end) <= size:
                raise _broken_market(path, line_number, f"{end[:20]!r} is not a whole number from 1 to {size}")
        values = [_market_value(path, line_number, field, kind) for field in fields[2:]]
        found.append((int(fields[0]), int(fields[1]), *values))
    return tuple(np.array(column) for column in zip(*found, strict=True))


def _market_array(
    path: Path, blocks: Iterator[Block], size: int, kind: str, symmetry: str
) -> tuple[Codes, Codes, NDArray[np.float64]]:
    """Values column by column; of a symmetric matrix those on and below the diagonal, of a skew one those below."""
    if kind == "pattern":
        raise _broken_market(path, 1, "an array has values, so its type cannot be 'pattern'")
    parts = [np.empty(0)]
    for number, text in blocks:
        try:
            parts.append(_checked_numbers(pa.array(text.split(), pa.string()), _MARKET_VALUES[kind], pa.float64()))
        except (pa.ArrowInvalid, ValueError):
            lines = enumerate(text.split("\n"), number)
            parts.append(np.array([_market_value(path, k, field, kind) for k, line in lines for field in line.split()]))
    values = np.concatenate(parts)
    first = {"general": 0, "symmetric": 0, "skew-symmetric": 1}[symmetry]
    count = size * size if symmetry == "general" else (size - first) * (size - first + 1) // 2
    if len(values) != count:
        raise DataError(f"{path} has {len(values)} values where its header says {count}; write it again")
    if symmetry == "general":
        columns, rows = np.divmod(np.arange(count), max(size, 1))
    else:
        columns, rows = np.triu_indices(size, first)
    present = values != 0
    return rows[present], columns[present], values[present]


def _market_value(path: Path, number: int, text: str, kind: str) -> float:
    if not re.fullmatch(_MARKET_VALUES[kind], text):
        raise _broken_market(path, number, f"{text[:20]!r} is not of type {kind}")
    return float(text)


def _broken_market(path: Path, number: int, problem: str) -> DataError:
    return DataError(f"{path}, line {number}: {problem}; write the MatrixMarket file again")
