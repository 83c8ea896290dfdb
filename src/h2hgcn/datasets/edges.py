"""The edges of a user's graph, from a table or an object in memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch_geometric.utils import is_undirected

from h2hgcn.datasets.arrays import (
    MASKS,
    are_integers,
    check_names,
    edge_ends,
    given_ids,
    ids_of_array,
    ids_of_objects,
    to_numpy,
    whole_matrix,
)
from h2hgcn.datasets.table_files import TextFormat, open_table
from h2hgcn.datasets.tables import (
    SOURCE_NAMES,
    TARGET_NAMES,
    Arrays,
    Codes,
    Ids,
    Table,
    arrow_of,
    blocks_of,
    end_columns,
    frame_table,
    is_numbered,
    is_pandas,
    is_text,
    listed,
    shown,
    single,
)
from h2hgcn.errors import DataError

RANGE = "what single precision holds (1.4e-45 to 3.4e38)"


@dataclass
class EdgeList:
    """Edges between ``ids[source]`` and ``ids[target]``, the ids being distinct.

    ``all_nodes`` says that the ids are all that there are, nodes without edges included. A graph may bring features,
    labels and masks along, in the order of the ids, or attributes and matrices of features by name.
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
    matrices: Callable[[Any], Any] | None = None
    notes: list[str] = field(default_factory=list)


_WEIGHT_NAMES = ("weight", "weights", "w", "value")

# The first line of a table of texts is a header if so few rows are likely to look like one by chance.
_BY_CHANCE = 0.05


def edges_from_table(
    table: Table, weights: str | bool | None, columns: tuple[str, str] | None, text: TextFormat, arrays: Arrays
) -> EdgeList:
    """The edges of a table, whose columns are named, known by their names, or the first ones."""
    if len(table.columns) < 2:
        raise DataError(f"{table.where(0)}: one column, but an edge needs two nodes; delimit them by a comma or a tab")
    ends = end_columns(table.columns) if columns is None else tuple(table.column_number(name) for name in columns)
    ids, codes = table.distinct_ids(ends)
    doubtful = [table.columns[k] for k in ends if table.columns[k] in ids] if ids.dtype.kind == "U" else []
    if columns is None and table.has_header and table.header_guessed and doubtful:
        raise DataError(
            f"{table.origin}: the first line looks like a header, but its {doubtful[0]!r} is also a node further down; "
            "say what it is: header=True (--header) or header=False (--no-header)"
        )
    if text.header is False and ids.dtype.kind == "U":
        _refuse_forgotten_header(table, ends)
    weight = _weight_column(table, weights, ends)

    remedy = "give every edge a number, or take no weights (weights=False, --weights none)"

    def numbered() -> Iterator[tuple[NDArray[Any], ...]]:
        for source, target, *rest in table.batches([*ends] if weight is None else [*ends, weight]):
            yield codes(source), codes(target), *(part.numbers(remedy) for part in rest)

    source, target, *values = arrays.join("edges", numbered())
    may_have_header = not table.has_header and table.header_guessed and ids.dtype.kind == "U"
    if columns is None and may_have_header and _is_lone(ids, source, target):
        text = replace(text, header=True)
        table = open_table(Path(table.origin), text, keep=arrays.folder is None)
        found = edges_from_table(table, weights, columns, text, arrays)
        found.notes.insert(0, "the first line is taken for a header; pass header=False (--no-header) if it is an edge")
        return found
    notes = _column_notes(table, ends, weight, weights, columns, ids.dtype.kind != "U")
    if may_have_header:
        notes.append("the first line is taken for an edge, not for a header; pass header=True (--header) if it is one")
    return EdgeList(
        ids, source, target, table.where, str(table.origin), values[0] if values else None,
        notes=[*notes, *table.notes()],
    )  # fmt: skip


def _column_notes(
    table: Table, ends: Sequence[int], weight: int | None, weights: str | bool | None, columns: Any, numbered: bool
) -> list[str]:
    """What was assumed of the columns, and which are not used."""
    notes = []
    source, target = (table.columns[k] for k in ends)
    is_known = not table.has_header or (source.lower() in SOURCE_NAMES and target.lower() in TARGET_NAMES)
    is_clear = not table.has_header or (is_known and min(len(source), len(target)) > 1)  # a letter may be a node
    if columns is None and (tuple(ends) != (0, 1) or not is_clear):
        # customers and products may both be counted from 1
        shared = "" if is_known or not numbered else "; a number that is in both is one node"
        notes.append(f"edges go from column {source!r} to column {target!r}{shared}")
    if weight is not None and not isinstance(weights, str):
        notes.append(f"{table.called(weight)} is taken for edge weights")
    unused = [k for k in range(len(table.columns)) if k not in (*ends, weight)]
    if unused and weights is None:
        names = listed([table.called(k) for k in unused], 5)
        notes.append(f"not used: {names}; name one as weights if it holds them")
    return notes


def _is_lone(ids: Ids, source: Codes, target: Codes) -> bool:
    """Whether the first row is two words that are in no other row, which is unlikely for an edge of this graph."""
    counts = np.zeros(len(ids), np.int64)
    for part in blocks_of(len(source)):
        counts += np.bincount(source[part], minlength=len(ids)) + np.bincount(target[part], minlength=len(ids))
    words = f"{ids[source[0]]}{ids[target[0]]}"
    if counts[source[0]] > 1 or counts[target[0]] > 1 or any(letter.isdigit() for letter in words):
        return False
    lone = sum(np.count_nonzero((counts[source[p]] == 1) & (counts[target[p]] == 1)) for p in blocks_of(len(source)))
    return lone / (len(source) + 1) <= _BY_CHANCE


def _refuse_forgotten_header(table: Table, ends: Sequence[int]) -> None:
    """Texts that are integers but for the first row: a header that was not expected."""
    rows = [table.first_ids(column, 100) for column in ends]
    are_numbers = [[text.lstrip("-").isdigit() for text in column] for column in rows]
    if len(rows[0]) > 1 and not are_numbers[0][0] and all(all(column[1:]) for column in are_numbers):
        raise DataError(f"{table.where(0)}: {shown(rows[0][0])} looks like a header; leave out header=False")


def _weight_column(table: Table, weights: str | bool | None, ends: Sequence[int]) -> int | None:
    """The column that is named, or called so, or the third of three without a header; none if ``weights`` is False."""
    if weights is False:
        return None
    if isinstance(weights, str):
        return table.column_number(weights)
    others = [k for k in range(len(table.columns)) if k not in ends]
    if table.has_header:
        named = [k for k in others if table.columns[k].lower() in _WEIGHT_NAMES]
        if weights is True and not named:
            raise DataError(f"{table.origin} has no column of weights; name one of {', '.join(table.columns)}")
        return named[0] if named else None
    if len(others) == 1:
        return None if all(part.is_blank() for part in table.column(others[0])) else others[0]
    if weights is True:
        raise DataError(f"{table.origin} has {len(table.columns)} columns; name the one that holds the weights")
    return None


def edges_from_frame(source: Any, weights: str | bool | None, columns: tuple[str, str] | None) -> EdgeList:
    """The edges of a DataFrame. Without ``columns``, two of its columns must be able to hold node ids."""
    origin = f"the {type(source).__name__}"
    table = arrow_of(source, origin)
    names = table.column_names
    if columns is None and (len(names) < 2 or not all(_may_hold_ids(table.column(k)) for k in end_columns(names))):
        kinds = ", ".join(f"{field.name} ({_kind(field.type)})" for field in table.schema)
        in_index = is_pandas(source) and not is_numbered(source.index)
        raise DataError(
            f"{origin} has the columns {kinds or '(none)'}; an edge needs two columns of node ids (integers or "
            f"texts): name them with columns=(source, target){', after df.reset_index()' if in_index else ''}"
        )
    if not table.num_rows:
        raise DataError(f"{origin} has no rows; pass at least one edge")
    return edges_from_table(frame_table(table, origin), weights, columns, TextFormat(), Arrays())


def _may_hold_ids(values: pa.ChunkedArray) -> bool:
    """Whether these are integers or texts, or whole numbers in their place."""
    if _kind(values.type) == "numbers":
        return pc.all(pc.equal(pc.floor(values), values)).as_py() is not False
    return _kind(values.type) in ("integers", "texts") or pa.types.is_dictionary(values.type)


def _kind(kind: pa.DataType) -> str:
    if is_text(kind):
        return "texts"
    return "integers" if pa.types.is_integer(kind) else "numbers" if pa.types.is_floating(kind) else str(kind)


def real_weights(weights: Any, count: int, origin: str) -> NDArray[np.float64]:
    """Weights as an array of numbers, one for each of ``count`` edges."""
    try:
        array = to_numpy(weights)
        if array.dtype.kind == "c":
            raise DataError(f"{origin}: the weights are complex; edge weights are real")
        array = array.astype(np.float64)
    except DataError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{origin}: the weights are not all numbers ({error})") from None
    if array.shape[1:] == (1,):
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{origin}: the weights have shape {array.shape}, but weights are one each")
    if len(array) != count:
        raise DataError(f"{origin}: {len(array)} weights for {count} edges")
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


def edges_from_pairs(pairs: Any, origin: str = "the edges", with_weights: bool = True) -> EdgeList:
    """Edges of an array or tensor, or of a list of pairs, or of triples with a weight at the end.

    An array of integers with two rows is an ``edge_index``, as in PyG; any other holds a pair in every row. Every item
    of a list is an edge.
    """
    if not hasattr(pairs, "shape"):
        return _edges_from_list(list(pairs), origin, with_weights)
    array = to_numpy(pairs)
    edges = edges_from_array(array, origin, square_is_index=array.dtype.kind in "iu")
    if array.shape == (2, 2) and array.dtype.kind in "iu" and not np.array_equal(array, array.T):
        edges.notes.append(
            "two rows of two integers are taken for an edge_index; pass a list of pairs if rows are edges"
        )
    return edges


def edges_from_array(array: Any, origin: str, square_is_index: bool) -> EdgeList:
    """Edges of an array ``(2, k)`` or ``(k, 2)``; one that is both is as ``square_is_index`` says."""
    if array.ndim != 2 or 2 not in array.shape:
        is_square = array.ndim == 2 and array.shape[0] == array.shape[1]
        matrix = "; an adjacency matrix goes in as scipy.sparse.csr_array(matrix)" if is_square else ""
        raise DataError(
            f"{origin} have shape {array.shape}; pass an edge_index (2 × k) or pairs of nodes (k × 2){matrix}"
        )
    is_index = array.shape[0] == 2 and (array.shape[1] != 2 or square_is_index)
    return _encoded(ids_of_array(array.T if is_index else array, origin), origin, "column" if is_index else "row")


def _edges_from_list(pairs: list[Any], origin: str, with_weights: bool) -> EdgeList:
    if any(isinstance(item, nx.Graph) for item in pairs):
        raise DataError(
            f"{origin} are a list of networkx graphs; for a collection, make each a Data with "
            "torch_geometric.utils.from_networkx and its class as y, or write a file per graph"
        )
    lengths = {len(pair) if isinstance(pair, tuple | list) else 0 for pair in pairs}
    if not lengths <= {2} and not lengths <= {3}:
        raise DataError(
            f"{origin} must all be pairs of nodes, or all be triples of two nodes and a weight; an edge_index (2 × k) "
            "goes in as a tensor or an array"
        )
    nodes = [node for pair in pairs for node in pair[:2]]
    kinds = {type(node) for node in nodes}
    if not are_integers(kinds) and not kinds <= {str, np.str_}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"{origin} name nodes by {names}; use integers alone, or texts alone")
    edges = _encoded(ids_of_objects(nodes, origin).reshape(-1, 2), origin, "row")
    if with_weights and lengths == {3}:
        edges.weights = real_weights([pair[2] for pair in pairs], len(pairs), origin)
    values = {type(value) for pair in pairs for value in pair}
    is_same_graph = len(pairs) == 2 and len(pairs[0]) == 2 and pairs[0][1] == pairs[1][0]
    if len(pairs) == 2 and all(isinstance(pair, list) for pair in pairs) and are_integers(values) and not is_same_graph:
        edges.notes.append(
            f"the two lists are taken for two edges, {pairs[0]} and {pairs[1]}; pass an edge_index as an array"
        )
    return edges


def _encoded(pairs: Ids, origin: str, line: str) -> EdgeList:
    ids, codes = np.unique(pairs, return_inverse=True)
    codes = codes.reshape(pairs.shape)
    return EdgeList(ids, codes[:, 0], codes[:, 1], lambda row: f"{origin}, {line} {row}", origin)


def edges_from_networkx(graph: nx.Graph, weights: str | bool | None, origin: str) -> EdgeList:
    nodes = list(graph.nodes)
    ids = ids_of_objects(nodes, origin)
    check_names(nodes, ids, origin)
    number = {node: k for k, node in enumerate(nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    edges = EdgeList(ids, pairs[:, 0], pairs[:, 1], lambda row: f"{origin}, edge {row + 1}", origin, all_nodes=True)
    edges.directed = graph.is_directed()
    key = "weight" if weights in (None, True) else weights
    given = [data.get(key) for _, _, data in graph.edges(data=True)] if key else []
    gaps = [row for row, value in enumerate(given) if value is None]
    if len(gaps) < len(given):
        if gaps:
            raise DataError(f"{edges.where(gaps[0])}: no {key!r}; give every edge one, or pass weights=False")
        edges.weights = real_weights(given, len(pairs), origin)
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
    compressed = sp.csr_array(whole_matrix(matrix, origin), copy=True)  # its owner keeps the zeros
    compressed.eliminate_zeros()
    coo = compressed.tocoo()
    edges = EdgeList(
        np.arange(matrix.shape[0]), coo.row.astype(np.int64), coo.col.astype(np.int64),
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
    if not isinstance(data.edge_index, torch.Tensor):
        raise DataError(f"{origin} has no edge_index")
    given, count = getattr(data, "node_ids", None), num_nodes_of(data)
    try:
        ids = np.arange(count) if given is None else given_ids(given, count, f"{origin}, node_ids")
        index = edge_ends(data, count)
    except MemoryError:
        raise DataError(f"{origin} has {count:,} nodes, which do not fit into memory; fix num_nodes") from None
    edges = EdgeList(ids, index[0], index[1], lambda row: f"{origin}, edge {row}", origin, all_nodes=True)
    key = weights if isinstance(weights, str) else "edge_weight"
    given = None if weights is False else getattr(data, key, None)
    if given is not None:
        edges.weights = real_weights(given, index.shape[1], f"{origin}, {key}")
    elif weights is None and getattr(data, "edge_attr", None) is not None:
        edges.notes.append("edge_attr is not used; pass weights='edge_attr' if it holds weights")
    edges.directed = getattr(data, "directed", None)
    if not isinstance(edges.directed, bool | np.bool_):
        values = None if edges.weights is None else torch.from_numpy(edges.weights)
        edges.directed = not is_undirected(torch.from_numpy(index), values, len(ids))
    edges.features, edges.labels = data.x, data.y
    take_masks(lambda name: getattr(data, name, None), edges)
    return edges


def num_nodes_of(data: Any) -> int:
    """What is given, else the rows of what belongs to nodes: PyG's own guess does not ask ``y`` and ``node_ids``."""
    if data.x is None and "num_nodes" not in data:
        rows = next((part for part in (getattr(data, "node_ids", None), data.y) if part is not None), None)
        if rows is not None and np.ndim(rows) > 0:
            return len(rows)
    return data.num_nodes or 0


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
