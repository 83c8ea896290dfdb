"""The edges of a user's graph, from the files and objects they come in."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data, Dataset
from torch_geometric.data.data import BaseData
from torch_geometric.utils import is_undirected

from h2hgcn.datasets.arrays import (
    MASKS,
    RANGE,
    Arrays,
    are_integers,
    blocks_of,
    given_ids,
    holds_matrix,
    ids_of_array,
    ids_of_integers,
    ids_of_objects,
    integers_in,
    load_arrays,
    load_matrix,
    numbered_ids,
    single,
    text_ids,
    to_numpy,
    whole_matrix,
)
from h2hgcn.datasets.frames import edge_frame, is_frame
from h2hgcn.datasets.tables import (
    BLOCK_BYTES,
    EDGE_COLUMN_NAMES,
    SOURCE_NAMES,
    TARGET_NAMES,
    Codes,
    DistinctIds,
    Ids,
    Table,
    TextFormat,
    check_is_file,
    check_unpacked,
    end_columns,
    file_kind,
    local_path,
    open_bytes,
    open_table,
    shown,
    text_blocks,
)
from h2hgcn.errors import DataError


@dataclass
class EdgeList:
    """Edges between ``ids[source]`` and ``ids[target]``, the ids being distinct.

    ``all_nodes`` says that the ids are all that there are, nodes without edges included. A graph may bring features,
    labels and masks along, in the order of the ids, or attributes by name.
    """

    ids: Ids
    source: Codes
    target: Codes
    where: Callable[[int], str]
    origin: str
    weights: NDArray[Any] | None = None
    directed: bool | None = None
    all_nodes: bool = False
    features: Any = None
    labels: Any = None
    masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    attributes: Callable[[str], dict[Any, Any]] | None = None
    attribute_names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


_WEIGHT_NAMES = ("weight", "weights", "w", "value")
_SHOWN_COLUMNS = 5

# The first line of a table of texts is a header if so few rows are likely to look like one by chance.
_BY_CHANCE = 0.05


def edges_from_table(
    table: Table,
    weights: str | bool | None,
    columns: tuple[str, str] | None,
    header: bool | None = None,
    arrays: Arrays | None = None,
) -> EdgeList:
    """The edges of a table, whose columns are named, known by their names, or the first ones."""
    arrays = arrays or Arrays()
    if len(table.columns) < 2:
        raise DataError(f"{table.where(0)}: one column, but an edge needs two nodes; delimit them by a comma or a tab")
    notes = []
    if columns is None:
        source, target = end_columns(table.columns)
        if (source, target) != (0, 1) or (table.has_header and not _is_named_edge(table.columns)):
            notes.append(f"edges go from column {table.columns[source]!r} to column {table.columns[target]!r}")
    else:
        source, target = (table.column_number(name) for name in columns)
    distinct = table.distinct_ids([source, target])
    if columns is None and table.has_header and table.header_guessed:
        _refuse_doubtful_header(table, distinct.ids, (source, target))
    if header is False:
        _refuse_forgotten_header(table, (source, target), distinct.ids)
    weight = _weight_column(table, weights, {source, target})
    ends = [source, target]
    joined = arrays.join("edges", _edge_batches(table, ends, weight, distinct))
    may_have_header = not table.has_header and table.header_guessed and distinct.ids.dtype.kind == "U"
    if columns is None and may_have_header and _is_lone(distinct.ids, joined[0], joined[1]):
        found = edges_from_table(table.with_header(True), weights, columns, None, arrays)
        found.notes.insert(0, "the first line is taken for a header; pass header=False (--no-header) if it is an edge")
        return found
    if weight is not None and not isinstance(weights, str):
        notes.append(f"{table.called(weight)} is taken for edge weights")
    unused = [k for k in range(len(table.columns)) if k not in (source, target, weight)]
    if unused and weights is None:
        names = ", ".join(table.called(k) for k in unused[:_SHOWN_COLUMNS])
        more = f" and {len(unused) - _SHOWN_COLUMNS} more" if len(unused) > _SHOWN_COLUMNS else ""
        notes.append(f"not used: {names}{more}; name one as weights if it holds them")
    if may_have_header:
        notes.append("the first line is taken for an edge, not for a header; pass header=True (--header) if it is one")
    return EdgeList(
        distinct.ids, joined[0], joined[1], table.where, str(table.origin), None if weight is None else joined[2],
        notes=[*notes, *table.comment_note()],
    )  # fmt: skip


def _edge_batches(
    table: Table, ends: Sequence[int], weight: int | None, distinct: DistinctIds
) -> Iterator[tuple[NDArray[Any], ...]]:
    for batch in table.batches():
        codes = [distinct.codes(batch.column(column).ids()) for column in ends]
        if weight is None:
            yield tuple(codes)
            continue
        column = batch.column(weight)
        numbers = column.numbers("give every edge a number, or take no weights (weights=False, --weights none)")
        yield *codes, checked_weights(numbers, column.where)


def _is_named_edge(columns: list[str]) -> bool:
    """Whether the names leave no doubt; a single letter may be a node as well."""
    source, target = columns[0].lower(), columns[1].lower()
    return source in SOURCE_NAMES and target in TARGET_NAMES and len(source) > 1 and len(target) > 1


def _is_lone(ids: Ids, source: Codes, target: Codes) -> bool:
    """Whether the first row is two words that are in no other row, which is unlikely for an edge of this graph."""
    counts = np.zeros(len(ids), np.int64)
    for part in blocks_of(len(source)):
        counts += np.bincount(source[part], minlength=len(ids)) + np.bincount(target[part], minlength=len(ids))
    words = [str(ids[source[0]]), str(ids[target[0]])]
    if counts[source[0]] > 1 or counts[target[0]] > 1 or any(letter.isdigit() for word in words for letter in word):
        return False
    lone = sum(
        int(((counts[source[part]] == 1) & (counts[target[part]] == 1)).sum()) for part in blocks_of(len(source))
    )
    return lone / (len(source) + 1) <= _BY_CHANCE


def _refuse_doubtful_header(table: Table, ids: Ids, ends: tuple[int, int]) -> None:
    """A header that was found by its words alone, of which some are nodes as well."""
    doubtful = [table.columns[k] for k in ends if table.columns[k] in ids] if ids.dtype.kind == "U" else []
    if doubtful:
        raise DataError(
            f"{table.origin}: the first line looks like a header, but its {doubtful[0]!r} is also a node further down; "
            "say what it is: header=True (--header) or header=False (--no-header)"
        )


def _refuse_forgotten_header(table: Table, ends: tuple[int, int], ids: Ids) -> None:
    """Ids that are integers but for the first row: a header that was not expected."""
    if ids.dtype.kind == "i":
        return
    rows = [table.first_ids(column, 100) for column in ends]
    others = [text for column in rows for text in column[1:]]
    if others and not _is_integer(rows[0][0]) and all(map(_is_integer, others)):
        raise DataError(
            f"{table.where(0)}: {shown(rows[0][0])} looks like a header above integer ids; leave out header=False"
        )


def _is_integer(text: str) -> bool:
    return text.lstrip("-").isdigit()


def _weight_column(table: Table, weights: str | bool | None, used: set[int]) -> int | None:
    """The column that is named, or called so, or the third of three without a header; none if ``weights`` is False."""
    if weights is False:
        return None
    if isinstance(weights, str):
        return table.column_number(weights)
    named = [k for k, name in enumerate(table.columns) if name.lower() in _WEIGHT_NAMES and k not in used]
    if table.has_header:
        if weights is True and not named:
            raise DataError(
                f"{table.origin} has no column of weights; it has {', '.join(table.columns)}: name one of them"
            )
        return named[0] if named else None
    if len(table.columns) == 3:
        third = next(k for k in range(3) if k not in used)
        return None if table.is_empty(third) else third
    if weights is True:
        raise DataError(f"{table.origin} has {len(table.columns)} columns; name the one that holds the weights")
    return None


def real_weights(weights: Any, origin: str) -> NDArray[np.float64]:
    """Weights as an array of numbers, one for each edge."""
    try:
        array = to_numpy(weights)
        array = array if array.dtype.kind == "c" else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{origin}: the weights are not all numbers ({error})") from None
    if array.dtype.kind == "c":
        raise DataError(f"{origin}: the weights are complex; edge weights are real")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{origin}: the weights have shape {array.shape}, but weights are one each")
    return array


def checked_weights(weights: NDArray[Any], where: Callable[[int], str]) -> NDArray[np.float32]:
    """Weights as the graph keeps them, each finite, not negative, and zero only if it was."""
    kept: NDArray[np.float32] = single(weights)
    problems = {
        "must be finite and not negative; fix or leave it out": ~np.isfinite(weights) | (weights < 0),
        f"is beyond {RANGE}; scale the weights": ~np.isfinite(kept) | ((kept == 0) & (weights != 0)),
    }
    for problem, bad in problems.items():
        if bad.any():
            row = int(bad.argmax())
            raise DataError(f"{where(row)}: the weight {weights[row]} {problem}")
    return kept


def single_precision_weights(edges: EdgeList) -> NDArray[np.float32] | None:
    """The weights as the graph keeps them, checked."""
    if edges.weights is None:
        return None
    if len(edges.weights) != len(edges.source):
        raise DataError(f"{edges.origin}: {len(edges.weights)} weights for {len(edges.source)} edges")
    return checked_weights(edges.weights, edges.where)


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
        return text_ids(nodes, origin)
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


def edges_from_networkx(graph: nx.Graph, weights: str | bool | None, origin: str) -> EdgeList:
    nodes = list(graph.nodes)
    ids = ids_of_objects(nodes, origin)
    number = {node: k for k, node in enumerate(nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    key = "weight" if weights in (None, True) else weights
    edges = EdgeList(ids, pairs[:, 0], pairs[:, 1], lambda row: f"{origin}, edge {row + 1}", origin, all_nodes=True)
    edges.directed = graph.is_directed()
    given = [data.get(key) for _, _, data in graph.edges(data=True)] if key else []
    if any(value is not None for value in given):
        if any(value is None for value in given):
            row = next(k for k, value in enumerate(given) if value is None)
            raise DataError(
                f"{edges.where(row)}: no {key!r}, which other edges have; give it one, or pass weights=False"
            )
        edges.weights = real_weights(given, origin)
        if not isinstance(weights, str):
            edges.notes.append(f"the edge attribute {key!r} is taken for edge weights")
    elif isinstance(weights, str):
        raise DataError(f"{origin}: no edge has an attribute {weights!r}")
    names = dict(zip(nodes, ids.tolist(), strict=True))
    edges.attributes = lambda name: {names[node]: value for node, value in graph.nodes(data=name) if value is not None}
    edges.attribute_names = list(dict.fromkeys(name for _, data in graph.nodes(data=True) for name in data))
    return edges


def edges_from_matrix(matrix: Any, weights: str | bool | None, origin: str) -> EdgeList:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{origin} has shape {matrix.shape}, but an adjacency matrix is square")
    if isinstance(weights, str):
        raise DataError(f"{origin} has no column {weights!r}; its values are the weights (weights=True or False)")
    ids = numbered_ids(matrix.shape[0], matrix.nnz, origin)
    compressed = sp.csr_array(whole_matrix(matrix, origin), copy=True)  # its owner keeps the zeros
    compressed.eliminate_zeros()
    coo = compressed.tocoo()
    edges = EdgeList(
        ids, coo.row.astype(np.int64), coo.col.astype(np.int64),
        lambda row: f"{origin}, entry ({coo.row[row]}, {coo.col[row]})", origin,
        directed=bool((compressed != compressed.T).nnz), all_nodes=True,
    )  # fmt: skip
    values = coo.data.astype(np.float64)
    if weights is not False and len(values) and (weights is True or np.any(values != 1)):
        edges.weights = values
        edges.notes.append("the values of the matrix are taken for edge weights")
    return edges


def edges_from_pyg(data: Any, weights: str | bool | None) -> EdgeList:
    origin = "the PyG graph"
    index = _edge_index(data, origin)
    ids = _pyg_ids(data, index.shape[1], origin)
    if index.size and (index.min() < 0 or index.max() >= len(ids)):
        raise DataError(f"{origin} has {len(ids)} nodes, but its edges name nodes {index.min()} to {index.max()}")
    edges = EdgeList(ids, index[0], index[1], lambda row: f"{origin}, edge {row}", origin, all_nodes=True)
    key = weights if isinstance(weights, str) else "edge_weight"
    given = None if weights is False else getattr(data, key, None)
    if given is not None:
        edges.weights = real_weights(given, f"{origin}, {key}")
    elif weights is None and getattr(data, "edge_attr", None) is not None:
        edges.notes.append("edge_attr is not used; pass weights='edge_attr' if it holds weights")
    edges.directed = _is_directed(data, edges)
    edges.features, edges.labels = data.x, data.y
    take_masks(lambda name: getattr(data, name, None), edges)
    return edges


def _edge_index(data: Any, origin: str) -> Codes:
    if not isinstance(data.edge_index, torch.Tensor):
        raise DataError(f"{origin} has no edge_index")
    index = to_numpy(data.edge_index)
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        raise DataError(
            f"{origin} has an edge_index of shape {index.shape} and type {index.dtype}; it takes two rows of integers"
        )
    return index.astype(np.int64)


def _pyg_ids(data: Any, num_edges: int, origin: str) -> Ids:
    given, count = getattr(data, "node_ids", None), num_nodes_of(data)
    return numbered_ids(count, num_edges, origin) if given is None else given_ids(given, count, f"{origin}, node_ids")


def num_nodes_of(data: Any) -> int:
    """What is said, else the rows of what belongs to nodes: PyG's own guess does not ask ``y`` and ``node_ids``."""
    if data.x is None and "num_nodes" not in data:
        rows = next((part for part in (getattr(data, "node_ids", None), data.y) if part is not None), None)
        if rows is not None and np.ndim(rows) > 0:
            return len(rows)
    return data.num_nodes or 0


def _is_directed(data: Any, edges: EdgeList) -> bool:
    said = getattr(data, "directed", None)
    if isinstance(said, bool | np.bool_):
        return bool(said)
    weights = edges.weights
    if weights is not None and len(weights) != len(edges.source):  # refused later, as from any source
        return False
    values = None if weights is None else torch.from_numpy(weights)
    return not is_undirected(torch.from_numpy(np.stack([edges.source, edges.target])), values, len(edges.ids))


def take_masks(mask_called: Callable[[str], Any], edges: EdgeList) -> None:
    """Keeps the masks that a graph brings along; those of another shape, as for several splits, are noted."""
    for name in MASKS:
        given = mask_called(name)
        if given is None:
            continue
        mask = to_numpy(given)
        if mask.shape == (len(edges.ids),) and mask.dtype.kind == "b":
            edges.masks[name] = mask
        else:
            edges.notes.append(
                f"{name} is not used: it is {mask.dtype} of shape {mask.shape}, not True or False for each of "
                f"{len(edges.ids)} nodes; of several splits, choose one"
            )


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


def read_edges_from(
    source: Any,
    weights: Any,
    columns: tuple[str, str] | None,
    text: TextFormat,
    arrays: Arrays | None = None,
) -> EdgeList:
    """The edges of a file or of an object in memory, with the weights that were asked for."""
    if weights is not None and not isinstance(weights, str | bool):
        edges = _edges_of(source, False, columns, text, arrays)
        edges.weights = real_weights(weights, edges.origin)
        return edges
    edges = _edges_of(source, weights, columns, text, arrays)
    if weights and edges.weights is None and len(edges.source):
        named = f" called {weights!r}" if isinstance(weights, str) else ""
        raise DataError(f"{edges.origin}: there are no weights{named}; leave them out, or pass them as weights=[...]")
    return edges


def _edges_of(
    source: Any, weights: str | bool | None, columns: tuple[str, str] | None, text: TextFormat, arrays: Arrays | None
) -> EdgeList:
    if isinstance(source, str | Path):
        return _from_file(local_path(source), weights, columns, text, arrays)
    if is_frame(source) and text.header is None:
        return edges_from_table(edge_frame(source, columns), weights, columns)
    if columns is not None or text.header is not None:
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
    path: Path, weights: str | bool | None, columns: tuple[str, str] | None, text: TextFormat, arrays: Arrays | None
) -> EdgeList:
    check_is_file(path)
    readers: dict[str, Callable[[Path, str | bool | None], EdgeList]] = {
        ".npz": edges_from_arrays,
        ".npy": edges_from_arrays,
        ".graphml": _from_xml,
        ".gexf": _from_xml,
        ".mtx": _from_market,
    }
    kind = file_kind(path)
    if kind in readers:
        if columns is not None or text.header is not None:
            raise DataError(f"{path}: columns and header are for delimited and Parquet files, not for {kind}")
        return readers[kind](path, weights)
    # columns may also be named by number, which tells nothing of a header
    names_of_headers = EDGE_COLUMN_NAMES | {n.strip().lower() for n in columns or () if not n.strip().isdecimal()}
    table = open_table(path, text, names_of_headers, keep=arrays is None or arrays.folder is None)
    return edges_from_table(table, weights, columns, text.header, arrays)


def _from_xml(path: Path, weights: str | bool | None) -> EdgeList:
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


_MARKET_HEADER = re.compile(
    r"%%matrixmarket\s+matrix\s+(coordinate|array)\s+(real|double|integer|unsigned-integer|pattern|complex)\s+"
    r"(general|symmetric|skew-symmetric|hermitian)\s*"
)


def _from_market(path: Path, weights: str | bool | None) -> EdgeList:
    return edges_from_matrix(_read_market(path), weights, str(path))


def _read_market(path: Path) -> sp.coo_array:
    """The matrix of a MatrixMarket file. SciPy's own reader is compiled, and ends the process at some damaged files."""
    lines = (
        (number, line)
        for first, text in text_blocks(path, BLOCK_BYTES)
        for number, line in enumerate(text.split("\n"), first)
        if line.strip() and (number == 1 or not line.lstrip().startswith("%"))
    )
    number, line = next(lines, (1, ""))
    header = _MARKET_HEADER.fullmatch(line.lower())
    if header is None or number != 1:
        raise _broken_market(path, 1, "it does not begin with '%%MatrixMarket matrix', a format, a type and a symmetry")
    form, kind, symmetry = header.groups()
    if kind == "complex" or symmetry == "hermitian":
        raise DataError(f"{path}: entries are complex, but they must be real numbers")
    number, line = next(lines, (number + 1, ""))
    sizes = line.split()
    expected = 3 if form == "coordinate" else 2
    if len(sizes) != expected or not all(size.isdecimal() and len(size) < 19 for size in sizes):
        raise _broken_market(path, number, f"the sizes must be {expected} whole numbers")
    shape = int(sizes[0]), int(sizes[1])
    if shape[0] != shape[1]:
        raise DataError(f"{path} has shape {shape}, but an adjacency matrix is square")
    if form == "array":
        rows, columns, values = _market_array(path, lines, shape[0], kind, symmetry)
    else:
        rows, columns, values = _market_entries(path, lines, shape[0], int(sizes[2]), kind)
    if symmetry != "general":
        lower = rows != columns
        mirrored = -values[lower] if symmetry == "skew-symmetric" else values[lower]
        rows, columns = np.concatenate([rows, columns[lower]]), np.concatenate([columns, rows[lower]])
        values = np.concatenate([values, mirrored])
    return sp.coo_array((values, (rows, columns)), shape=shape)


def _market_entries(
    path: Path, lines: Iterator[tuple[int, str]], size: int, count: int, kind: str
) -> tuple[Codes, Codes, NDArray[np.float64]]:
    ends: list[int] = []
    values: list[float] = []
    width = 2 if kind == "pattern" else 3
    for number, line in lines:
        fields = line.split()
        if len(fields) != width:
            raise _broken_market(path, number, f"{len(fields)} fields where an entry has {width}")
        for end in fields[:2]:
            if not end.isdecimal() or len(end) > 18 or not 1 <= int(end) <= size:
                raise _broken_market(path, number, f"{end[:20]!r} is not a whole number from 1 to {size}")
            ends.append(int(end) - 1)
        values.append(1.0 if kind == "pattern" else _market_value(path, number, fields[2], kind))
    if len(values) != count:
        raise DataError(f"{path} has {len(values)} entries where its header says {count}; write it again")
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], np.array(values, np.float64)


def _market_array(
    path: Path, lines: Iterator[tuple[int, str]], size: int, kind: str, symmetry: str
) -> tuple[Codes, Codes, NDArray[np.float64]]:
    """Values column by column; of a symmetric matrix those on and below the diagonal, of a skew one those below."""
    if kind == "pattern":
        raise _broken_market(path, 1, "an array has values, so its type cannot be 'pattern'")
    values = np.array([_market_value(path, number, text, kind) for number, line in lines for text in line.split()])
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
    try:
        return float(int(text)) if "integer" in kind else float(text)
    except (ValueError, OverflowError):
        raise _broken_market(path, number, f"{text[:20]!r} is not of type {kind}") from None


def _broken_market(path: Path, number: int, problem: str) -> DataError:
    return DataError(f"{path}, line {number}: {problem}; write the MatrixMarket file again")
