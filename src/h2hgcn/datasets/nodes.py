"""Values of the nodes of a user's graph: which row belongs to which node, features, and structural features."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os.path import expanduser
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.utils import degree

from h2hgcn.datasets.arrays import closest_id, ids_of_objects, load_named_array, plain_array
from h2hgcn.datasets.edges import RANGE, EdgeList
from h2hgcn.datasets.table_files import TextFormat, check_is_file, open_table
from h2hgcn.datasets.tables import (
    ID_NAMES,
    Arrays,
    Ids,
    Table,
    arrow_of,
    blocks_of,
    frame_table,
    id_column,
    is_frame,
    is_numbered,
    is_pandas,
    is_text,
    listed,
    shown,
    single,
)
from h2hgcn.errors import DataError

Unlinked = Literal["error", "keep", "drop"]

# The cap of HGCN's one-hot degree; larger degrees share the last column.
DEGREE_CAP = 5


@dataclass
class NodeValues:
    """Values of nodes: in rows that belong to ``ids``, or, without ids, to the nodes 0, 1, 2, ...

    ``values`` are features, an array or SciPy matrix, or a list of labels. With ``sparse``, nodes without a row have
    zeros. ``parts`` are the parts of a split that came with labels.
    """

    values: Any
    origin: str
    where: Callable[[int], str]
    ids: Ids | None = None
    names: list[str] | None = None
    notes: list[str] = field(default_factory=list)
    sparse: bool = False
    parts: list[str | None] | None = None

    def __len__(self) -> int:
        return self.values.shape[0] if hasattr(self.values, "shape") else len(self.values)


def aligned(values: NodeValues, nodes: Ids, what: str, unlinked: Unlinked, notes: list[str]) -> NDArray[np.int64]:
    """For every node, the row of ``values`` that is its own, or -1. Notes go to ``notes``."""
    notes.extend(values.notes)
    if values.ids is None:
        count = len(values)
        if not np.array_equal(nodes, np.arange(count)):
            raise DataError(
                f"{values.origin}: {count} rows without ids, for the nodes 0 to {count - 1}, but nodes go from "
                f"{shown(nodes[0])} to {shown(nodes[-1])}; pass them with ids, as in a column 'id'"
            )
        return np.arange(count)
    ids = values.ids.astype(np.str_) if nodes.dtype.kind == "U" else values.ids
    if ids.dtype.kind != nodes.dtype.kind:
        raise DataError(
            f"{values.where(0)}: the id {shown(ids[0])} is not an integer, but those of the edges are; use the same ids"
        )
    order = np.argsort(ids, kind="stable")
    repeated = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(repeated):
        row = order[repeated[0] + 1]
        raise DataError(f"{values.where(int(row))}: the id {shown(ids[row])} comes a second time; keep one row a node")
    strangers = np.flatnonzero(~np.isin(ids, nodes))
    if len(strangers) and unlinked == "error":
        near = closest_id(ids[strangers[0]], nodes)
        meant = "" if near is None else f"; did you mean {near!r}? Else"
        raise DataError(
            f"{values.where(int(strangers[0]))}: {shown(ids[strangers[0]])} has {what}, but no edge"
            f"{and_more(len(strangers))}{meant or ';'} pass unlinked='keep' (--unlinked keep) to have such nodes "
            "without edges, or 'drop'"
        )
    if len(strangers):
        notes.append(f"{len(strangers)} nodes with {what} but no edge were dropped")
    if not len(ids):
        return np.full(len(nodes), -1)
    rows = order[np.searchsorted(ids[order], nodes).clip(max=len(ids) - 1)]
    return np.where(ids[rows] == nodes, rows, -1)


def and_more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


def read_node_table(
    path: Path,
    known: Ids | None,
    text: TextFormat,
    names: frozenset[str] = frozenset(),
    id_names: frozenset[str] = ID_NAMES,
    *,
    keep: bool = True,
) -> tuple[Table, list[str]]:
    """A table of nodes, and notes. ``known`` are the ids of the edges; ``names`` and ``id_names`` make a header."""
    table = open_table(path, replace(text, header=None), id_names | names, keep=keep)
    if not table.header_guessed or known is None:
        return table, []
    guess = table.has_header
    if _has_other_header(table, set(map(str, known.tolist())), id_names):
        table = open_table(path, replace(text, header=not guess), keep=keep)
    if not table.has_header:
        return table, [f"the first line of {path} is taken for a row, not for a header"] if guess else []
    if table.columns[id_column(table.columns, id_names)].lower() in id_names:
        return table, []
    return table, [f"the first line of {path} is taken for a header: {listed(table.columns, 5)}"]


def _has_other_header(table: Table, nodes: set[str], id_names: frozenset[str]) -> bool:
    """Whether the ids of the edges tell that the first line is not what its words look like.

    A first line that names a node, which no other line does, is a row; one that names none, above one that does, is a
    header.
    """
    if not table.has_header:
        ids = table.first_ids(0, 2)
        return len(ids) > 1 and ids[0] not in nodes and ids[1] in nodes
    column = id_column(table.columns, id_names)
    name = table.columns[column]
    return name in nodes and not any(
        pc.index(part.ids().cast(pa.string()), name).as_py() >= 0 for part in table.column(column)
    )


def node_frame(source: Any, what: str, known: Ids | None) -> tuple[Table, int | None]:
    """A frame with a row for each node, and which column has the node ids; None if rows belong to the nodes 0, 1, ...

    The first of these that there is holds the ids: an index or a column called ``id``, ``node``, ...; an index that has
    a name, or texts; a first column of texts, or of distinct integers that fit the ``known`` ids; any other index but
    the usual 0, 1, 2, ...
    """
    origin = f"the {type(source).__name__} of {what}"
    table = arrow_of(source, origin)
    index = source.index if is_pandas(source) else None
    if index is not None and index.nlevels > 1:
        raise DataError(f"{origin} has an index of {index.nlevels} levels; keep the one that holds node ids")
    named = [k for k, name in enumerate(table.column_names) if name.lower() in ID_NAMES]
    if named and (index is None or str(index.name).lower() not in ID_NAMES):
        return frame_table(table, origin), named[0]
    in_index = index is not None and (index.name is not None or index.dtype.kind not in "iu")
    if not in_index and table.num_columns > 1 and _holds_ids(table.column(0), known):
        return frame_table(table, origin), 0
    if index is None or is_numbered(index):
        return frame_table(table, origin), None
    ids = arrow_of(index.to_frame(index=False, name="index"), origin).column(0)
    return frame_table(table.add_column(0, f"index {index.name or ''}".strip(), ids), origin), 0


def _holds_ids(column: pa.ChunkedArray, known: Ids | None) -> bool:
    if not pa.types.is_integer(column.type) or column.null_count:
        return is_text(column.type)
    values = column.to_numpy()
    if known is None or known.dtype.kind == "U" or len(np.unique(values)) < len(values):
        return False
    return bool(np.isin(known, values).all() or np.isin(values, known).all())


def open_values(
    source: Any, what: str, arrays: tuple[str, ...], known: Ids | None, text: TextFormat,
    names: frozenset[str] = frozenset(), id_names: frozenset[str] = ID_NAMES, *, keep: bool = True,
) -> tuple[Any, int | None, str, list[str]]:  # fmt: skip
    """What was given for nodes: a table, a mapping or an array; the column of ids of a table; its origin; notes.

    ``arrays`` are names in NPZ files, the others are those of ``read_node_table``.
    """
    if is_frame(source):
        table, column = node_frame(source, what, known)
        return table, column, str(table.origin), []
    if not isinstance(source, str | Path):
        return source, None, f"the {what}", []
    path = Path(expanduser(source))
    check_is_file(path)
    if path.suffix.lower() in (".npy", ".npz"):
        return load_named_array(path, arrays), None, str(path), []
    table, notes = read_node_table(path, known, text, names, id_names, keep=keep)
    return table, id_column(table.columns, id_names), str(path), notes


def read_features(
    source: Any, known: Ids | None = None, text: TextFormat | None = None, arrays: Arrays | None = None
) -> NodeValues:
    """Numbers for nodes: a file or DataFrame with an id and a number in every other column, or with the columns id,
    ``feature`` and ``value``; an array, or a mapping.

    ``known`` are the ids of the edges, which tell a header from a row.
    """
    arrays, text = arrays or Arrays(), text or TextFormat()
    given, column, origin, notes = open_values(
        source, "features", ("x", "features", "feats"), known, text, keep=arrays.folder is None
    )
    if isinstance(given, Table):
        return _features_of_table(given, column, notes, arrays)
    return _features_of_mapping(given) if isinstance(given, Mapping) else _features_of_array(given, origin)


def _features_of_table(table: Table, column: int | None, notes: list[str], arrays: Arrays) -> NodeValues:
    """``column`` holds the ids, if there are any."""
    others = [k for k in range(len(table.columns)) if k != column]
    if column is not None and sorted(table.columns[k].lower() for k in others) == ["feature", "value"]:
        if arrays.folder is not None:
            raise DataError(
                f"{table.origin} has sparse features (id, feature, value), which cannot be converted; use load_graph"
            )
        return _features_of_triples(table, column, notes)
    if not others:
        held = f"the column {table.columns[0]!r} only" if table.columns else "no columns"
        raise DataError(f"{table.origin} has {held}; features need an id and numbers beside it")
    ids: list[Any] = []

    def rows() -> Iterator[tuple[NDArray[Any]]]:
        for first, *parts in table.batches([others[0] if column is None else column, *others]):
            if column is not None:
                ids.append(first.ids())
            numbers = np.stack([single(part.numbers()) for part in parts], axis=1)
            _refuse_infinite(numbers, first.where)
            yield (numbers,)

    (values,) = arrays.join("features", rows())
    return NodeValues(
        values, str(table.origin), table.where, None if column is None else table.ids(column, ids),
        [table.columns[k] for k in others], [*notes, *table.notes()],
    )  # fmt: skip


def _features_of_triples(table: Table, column: int, notes: list[str]) -> NodeValues:
    """Rows of an id, the name of a feature and a number; what is not there is 0."""
    by_name = {name.lower(): k for k, name in enumerate(table.columns) if k != column}
    ids, node_codes = table.distinct_ids([column])
    names, name_codes = table.distinct_ids([by_name["feature"]], "feature")
    parts = [
        (node_codes(node), name_codes(name), single(value.numbers()))
        for node, name, value in table.batches([column, by_name["feature"], by_name["value"]])
    ]
    nodes, places, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
    entries = nodes * len(names) + places
    order = np.argsort(entries, kind="stable")
    repeated = np.flatnonzero(entries[order][1:] == entries[order][:-1])
    if len(repeated):
        row = int(order[repeated[0] + 1])
        raise DataError(
            f"{table.where(row)}: the feature {shown(names[places[row]])} of {shown(ids[nodes[row]])} "
            f"comes a second time{and_more(len(repeated))}; keep one row"
        )
    first = np.unique(nodes, return_index=True)[1]
    return _checked(
        NodeValues(
            sp.csr_array((numbers, (nodes, places)), shape=(len(ids), len(names))), str(table.origin),
            lambda row: table.where(int(first[row])), ids, list(map(str, names)), [*notes, *table.notes()], sparse=True,
        )
    )  # fmt: skip


def _features_of_mapping(source: Mapping[Any, Any]) -> NodeValues:
    if not source:
        raise DataError("the features are empty; give every node some, or leave them out")
    rows = []
    for node, given in source.items():
        try:
            rows.append(np.atleast_1d(np.asarray(plain_array(given, f"the features of {node!r}"), dtype=np.float64)))
        except (TypeError, ValueError):
            raise DataError(f"the features of {node!r} are {given!r}, which are not numbers") from None
    if len({row.shape for row in rows}) > 1:
        raise DataError("the features are of different length; every node needs the same number")
    keys = list(source)
    where = by_key("features", keys)
    return _checked(NodeValues(np.stack(rows), "the features", where, ids_of_objects(keys, "the features")))


def by_key(what: str, keys: list[Any]) -> Callable[[int], str]:
    return lambda row: f"the {what} of {keys[row]!r}"


def _features_of_array(source: Any, origin: str) -> NodeValues:
    array = plain_array(source, origin)
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    return _checked(NodeValues(array, origin, lambda row: f"{origin}, row {row}"))


def _checked(features: NodeValues) -> NodeValues:
    """Features in single precision, none of which are missing or infinite."""
    values = features.values
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise DataError(f"{features.origin} must be numbers in rows, but are {values.dtype} of shape {values.shape}")
    features.values = single(values)
    _refuse_infinite(features.values, features.where)
    return features


def _refuse_infinite(values: Any, where: Callable[[int], str]) -> None:
    if sp.issparse(values):
        entries = values.tocoo()
        bad = entries.row[~np.isfinite(entries.data)]
    else:
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise DataError(
            f"{where(int(bad[0]))}: NaN or infinity, or a number beyond {RANGE}{and_more(len(bad))}; "
            "fill the gap, scale the column, or leave it out"
        )


def feature_tensor(
    values: NodeValues, rows: NDArray[np.int64], nodes: Ids, arrays: Arrays | None = None
) -> torch.Tensor:
    """The features of all nodes; each must have some."""
    missing = np.flatnonzero(rows < 0)
    if len(missing) and not values.sparse:
        raise DataError(
            f"{values.origin}: node {shown(nodes[missing[0]])} has no features{and_more(len(missing))}; add its row"
        )
    if sp.issparse(values.values):
        nothing = sp.csr_array((1, values.values.shape[1]), dtype=np.float32)  # the last row, that of -1
        chosen = sp.csr_array(sp.vstack([values.values, nothing]))[rows].tocoo()
        index = torch.from_numpy(np.stack([chosen.row, chosen.col]).astype(np.int64))
        return torch.sparse_coo_tensor(
            index, torch.from_numpy(chosen.data), chosen.shape, check_invariants=True
        ).coalesce()
    x = (arrays or Arrays()).empty("x", (len(rows), values.values.shape[1]), np.float32)
    for part in blocks_of(len(rows)):
        x[part] = values.values[rows[part]]
    return torch.from_numpy(x)


def features_of(
    source: EdgeList, features: Any, text: TextFormat | None = None, arrays: Arrays | None = None
) -> NodeValues | None:
    """The features that were given, by a file, an object or the names of attributes, else those of the graph."""
    if features is None:
        return None if source.features is None else of_graph(read_features(source.features), source, "x")
    if source.matrices is not None and (features is False or are_names(features)):
        if features is False or features == "none":
            return None
        matrix = source.matrices(features) if isinstance(features, str) else None
        if matrix is not None:
            return of_graph(read_features(matrix), source, features)
    if source.attributes is None or not are_names(features):
        return read_features(features, source.ids, text, arrays)
    names = [features] if isinstance(features, str) else list(features)
    columns = [attribute_of(source, name) for name in names]
    for name, column in zip(names, columns, strict=True):
        for value in column.values():
            try:
                float(value)
            except (TypeError, ValueError):
                raise DataError(f"{source.origin}: the node attribute {name!r} holds {value!r}, not a number") from None
    nodes = [node for node in columns[0] if all(node in column for column in columns)]
    read = read_features({node: [float(column[node]) for column in columns] for node in nodes})
    read.names = names
    return read


def of_graph(values: NodeValues, source: EdgeList, name: str) -> NodeValues:
    """Values that came with a graph belong to its nodes, in its order."""
    if len(values) != len(source.ids):
        raise DataError(
            f"{source.origin}: {name} has {len(values)} rows for {len(source.ids)} nodes; give each one row"
        )
    values.ids = source.ids
    return values


def are_names(given: Any) -> bool:
    if isinstance(given, str):
        return not Path(given).suffix
    return isinstance(given, Sequence) and bool(given) and all(isinstance(name, str) for name in given)


def attribute_of(source: EdgeList, name: str) -> dict[Any, Any]:
    values = {} if source.attributes is None else source.attributes(name)
    if not values:
        raise DataError(f"{source.origin}: no node has an attribute {name!r}")
    return values


def one_hot_degree(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Degrees as one-hot rows ``(n, 6)``, capped at 5."""
    degrees = degree(edge_index[1], num_nodes, dtype=torch.long).clamp_max(DEGREE_CAP)
    return F.one_hot(degrees, DEGREE_CAP + 1).float()


def structural_features(edge_index: Tensor, num_nodes: int, directed: bool = False) -> tuple[Tensor, list[str]]:
    """``log(1 + degree)``, the one-hot capped degree, and a constant 1, with the names of the columns.

    A directed graph has these columns for the in-degree and again for the out-degree.
    """
    kinds = {"in-degree": edge_index, "out-degree": edge_index.flip(0)} if directed else {"degree": edge_index}
    columns, names = [], []
    for word, edges in kinds.items():
        columns += [degree(edges[1], num_nodes).log1p().unsqueeze(1), one_hot_degree(edges, num_nodes)]
        names += [f"log(1 + {word})", *(f"{word} {k}" for k in range(DEGREE_CAP)), f"{word} {DEGREE_CAP}+"]
    return torch.cat([*columns, torch.ones(num_nodes, 1)], 1), [*names, "constant"]


def add_structural_features(graph: Any) -> str:
    """Gives a graph without features those that its edges make; returns a note for its user."""
    directed = bool(getattr(graph, "directed", False))
    graph.x, graph.feature_names = structural_features(graph.edge_index, graph.num_nodes, directed)
    graph.structural = True
    return structural_note(directed)


def structural_note(directed: bool) -> str:
    degree = "in- and out-degree" if directed else "degree"
    return f"no features were given; structural ones were made: {degree}, one-hot degree up to 5, constant"


def task_features(graph: Any, task: str, edge_index: Tensor | None = None) -> Tensor:
    """The features of a graph for ``"lp"``, ``"nc"`` or ``"embed"``.

    For labels to be predicted, columns that they were made from (``graph.label_columns``) are left out. Structural
    features are computed again from ``edge_index``, the graph to train on, since degrees would tell of edges to be
    predicted. Where the dataset asks for it (Airport), its one-hot degree and a constant follow.
    """
    if task not in ("lp", "nc", "embed"):
        raise DataError(f"task={task!r} is not known; use 'lp', 'nc' or 'embed'")
    x: Tensor = graph.x
    if getattr(graph, "structural", False):
        directed = bool(getattr(graph, "directed", False))
        return x if edge_index is None else structural_features(edge_index, graph.num_nodes, directed)[0]
    hidden = getattr(graph, "label_columns", None) if task == "nc" else None
    if hidden:
        x = x[:, [column for column in range(x.shape[1]) if column not in hidden]]
    if getattr(graph, "append_structure", False):
        edge_index = graph.edge_index if edge_index is None else edge_index
        x = torch.cat([x, one_hot_degree(edge_index, len(x)), torch.ones(len(x), 1)], 1)
    return x
