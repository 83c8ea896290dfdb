"""Which columns of a table hold edges or nodes, in tables that are read whole or in blocks."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from h2hgcn.datasets.tables import (
    PARQUET_SUFFIXES,
    Codes,
    FileTable,
    Ids,
    Layout,
    check_is_file,
    find_layout,
    read_table,
    shown,
)
from h2hgcn.errors import DataError

RANGE = "what single precision holds (1.4e-45 to 3.4e38)"


def single(values: Any) -> Any:
    """An array or SciPy matrix in single precision; what is too large becomes infinite, to be found by its checker."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32, copy=False)


def lost_in_single(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers become infinite, or zero without being so."""
    kept = single(values)
    return ~np.isfinite(kept) | ((kept == 0) & (values != 0))


MASKS = ("train_mask", "val_mask", "test_mask")


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
    weights: NDArray[np.float64] | None = None
    directed: bool | None = None
    all_nodes: bool = False
    features: Any = None
    labels: Any = None
    masks: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    attributes: Callable[[str], dict[Any, Any]] | None = None
    attribute_names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# Bytes of a delimited file, rows of a Parquet file.
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 24, 1 << 18

# What the layout of a delimited file is found out from.
_HEAD = 1 << 20


class TableStream:
    """The columns of a delimited or Parquet file, and its rows in blocks."""

    def __init__(self, path: Path, known_names: frozenset[str], header: bool | None = None) -> None:
        check_is_file(path)
        self.path = path
        self._layout: Layout | None = None
        if path.suffix.lower() in PARQUET_SUFFIXES:
            self.columns = list(_parquet(path).schema_arrow.names)
        else:
            self._layout = _layout_of(path, known_names, header)
            self.columns = self._layout.columns

    @property
    def has_header(self) -> bool:
        return self._layout is None or self._layout.has_header

    def column_number(self, name: str) -> int:
        if name not in self.columns:
            raise DataError(f"{self.path} has no column {name!r}; it has {', '.join(self.columns)}")
        return self.columns.index(name)

    def blocks(self) -> Iterator[pa.RecordBatch]:
        """The rows; those of delimited files as texts."""
        try:
            if self._layout is None:
                yield from _parquet(self.path).iter_batches(_BLOCK_ROWS)
            else:
                yield from _open_csv(self.path, self._layout)
        except pa.ArrowInvalid as error:
            raise DataError(f"{self.path}: {error}; each line has to be one row, without comments") from None


def single_numbers(column: Any, where: str, advice: str) -> NDArray[np.float32]:
    """A column of a block in single precision, every number of it finite."""
    try:
        values = column if not pa.types.is_string(column.type) else pc.utf8_trim_whitespace(column)
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{where}: {error}; {advice}") from None
    if lost_in_single(numbers).any():
        raise DataError(f"{where}: a number is missing, or beyond {RANGE}; mend or drop it")
    return single(numbers)


def _parquet(path: Path) -> Any:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not a whole Parquet file ({error}); write or download it again") from error


def _layout_of(path: Path, known_names: frozenset[str], header: bool | None) -> Layout:
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        head = file.read(_HEAD)
    try:
        text = head.decode("utf-8-sig", errors="strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}); convert it, or name another file") from None
    if len(head) == _HEAD:
        text = text[: text.rfind("\n") + 1]
    layout = find_layout(path, text, header, known_names)
    if layout.delimiter == " ":
        raise DataError(f"{path}: fields are delimited by blanks; use commas or tabs for files that are read in blocks")
    return layout


def _open_csv(path: Path, layout: Layout) -> Iterator[pa.RecordBatch]:
    return pa_csv.open_csv(
        path,
        read_options=pa_csv.ReadOptions(
            column_names=layout.columns, skip_rows=int(layout.has_header), block_size=_BLOCK_BYTES
        ),
        parse_options=pa_csv.ParseOptions(delimiter=layout.delimiter),
        convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(layout.columns, pa.string())),
    )


ID_NAMES = frozenset({"id", "ids", "node", "node_id", "nodeid", "name"})
_SHOWN_NAMES = 5


def read_node_table(
    path: Path, known: Ids | None, names: frozenset[str] = frozenset(), id_names: frozenset[str] = ID_NAMES
) -> tuple[FileTable, list[str]]:
    """A table, and what is to be said of it. ``known`` are the ids of the edges; ``names`` are found in headers."""
    file = read_table(path, known_names=id_names | names)
    if not file.header_guessed or known is None:
        return file, []
    told = _told_by_ids(file, set(map(str, known.tolist())), id_names)
    if not told.has_header:
        doubt = [f"the first line of {path} is taken for a row, not for a header"] if file.has_header else []
        return told, doubt
    if told.columns[id_column(told.columns, id_names)].lower() in id_names:
        return told, []
    return told, [f"the first line of {path} is taken for a header: {', '.join(told.columns[:_SHOWN_NAMES])}"]


def id_column(columns: Sequence[str], id_names: frozenset[str] = ID_NAMES) -> int:
    return next((k for k, name in enumerate(columns) if name.lower() in id_names), 0)


def _told_by_ids(file: FileTable, nodes: set[str], id_names: frozenset[str]) -> FileTable:
    """The file, read anew if the ids of the edges tell better than its words whether it has a header.

    A first line that names a node, which no other line does, is a row; one that names none, above one that does, is a
    header.
    """
    column = id_column(file.columns, id_names) if file.has_header else 0
    ids = [str(node) for node in file.ids(column).tolist()]
    if file.has_header:
        name = file.columns[column]
        return file.with_header(False) if name in nodes and name not in ids else file
    is_header = len(ids) > 1 and ids[0] not in nodes and ids[1] in nodes
    return file.with_header(True) if is_header else file


_SOURCE_NAMES = ("source", "src", "from", "u", "head", "node1", "node_1", "id1", "id_1", "start", "subject", "parent")
_TARGET_NAMES = ("target", "dst", "to", "v", "tail", "node2", "node_2", "id2", "id_2", "end", "object", "child")
_WEIGHT_NAMES = ("weight", "weights", "w", "value")
_SHOWN_COLUMNS = 5
EDGE_COLUMN_NAMES = frozenset(_SOURCE_NAMES + _TARGET_NAMES)


def edges_from_table(
    file: FileTable, weights: str | bool | None, columns: tuple[str, str] | None, header: bool | None = None
) -> EdgeList:
    """The edges of a table, whose columns are named, known by their names, or the first ones."""
    if len(file.columns) < 2:
        raise DataError(f"{file.where(0)}: one column, but an edge needs two nodes; delimit them by a comma or a tab")
    notes = []
    if columns is None:
        source, target = end_columns(file)
        if (source, target) != (0, 1) or (file.has_header and not _is_named_edge(file.columns)):
            notes.append(f"edges go from column {file.columns[source]!r} to column {file.columns[target]!r}")
    else:
        source, target = (file.column_number(name) for name in columns)
    ids, (sources, targets) = file.encoded_ids([source, target])
    if columns is None and file.has_header and file.header_guessed:
        _refuse_doubtful_header(file, ids, (source, target))
    edges = EdgeList(ids, sources, targets, file.where, str(file.path), notes=notes)
    if header is False:
        _refuse_forgotten_header(file, edges)
    column = weight_column(file, weights, {source, target})
    if column is not None:
        edges.weights = _weights(file, column)
        if not isinstance(weights, str):
            edges.notes.append(f"{file.called(column)} is taken for edge weights")
    unused = [k for k in range(len(file.columns)) if k not in (source, target, column)]
    if unused and weights is None:
        names = ", ".join(file.called(k) for k in unused[:_SHOWN_COLUMNS])
        more = f" and {len(unused) - _SHOWN_COLUMNS} more" if len(unused) > _SHOWN_COLUMNS else ""
        edges.notes.append(f"not used: {names}{more}; name one as weights if it holds them")
    if not file.has_header and ids.dtype.kind == "U":
        edges.notes.append("the first line is taken for an edge, not for a header; say so if it is one (header=True)")
    return edges


def end_columns(file: FileTable | TableStream) -> tuple[int, int]:
    """The columns that are called source and target, in any of their names, else the first two."""
    names = [name.lower() for name in file.columns]
    source = next((names.index(name) for name in _SOURCE_NAMES if name in names), None)
    target = next((names.index(name) for name in _TARGET_NAMES if name in names), None)
    return (0, 1) if source is None or target is None else (source, target)


def _is_named_edge(columns: list[str]) -> bool:
    """Whether the names leave no doubt; a single letter may be a node as well."""
    source, target = columns[0].lower(), columns[1].lower()
    return source in _SOURCE_NAMES and target in _TARGET_NAMES and len(source) > 1 and len(target) > 1


def _refuse_doubtful_header(file: FileTable, ids: Ids, ends: tuple[int, int]) -> None:
    """A header that was found by its words alone, of which some are nodes as well."""
    doubtful = [file.columns[k] for k in ends if file.columns[k] in ids] if ids.dtype.kind == "U" else []
    if doubtful:
        raise DataError(
            f"{file.path}: the first line looks like a header, but its {doubtful[0]!r} is also a node further down; "
            "say what it is: header=True (--header) or header=False (--no-header)"
        )


def _weights(file: FileTable, column: int) -> NDArray[np.float64]:
    return file.column(column).numbers("give every edge a number, or take no weights")


def _refuse_forgotten_header(file: FileTable, edges: EdgeList) -> None:
    """Ids that are integers but for the first row: a header that was not expected."""
    if edges.ids.dtype.kind == "i" or len(edges.source) < 2:
        return
    first = edges.ids[edges.source[0]]
    others = edges.ids[np.concatenate([edges.source[1:100], edges.target[1:100]])]
    if not first.lstrip("-").isdigit() and all(other.lstrip("-").isdigit() for other in others):
        raise DataError(
            f"{file.where(0)}: {shown(first)} looks like a header above integer ids; leave out header=False"
        )


def weight_column(file: FileTable | TableStream, weights: str | bool | None, used: set[int]) -> int | None:
    """The column that is named, or called so, or the third of three without a header; none if ``weights`` is False."""
    if weights is False:
        return None
    if isinstance(weights, str):
        return file.column_number(weights)
    named = [k for k, name in enumerate(file.columns) if name.lower() in _WEIGHT_NAMES and k not in used]
    if file.has_header:
        if weights is True and not named:
            raise DataError(f"{file.path} has no column of weights; it has {', '.join(file.columns)}: name one of them")
        return named[0] if named else None
    if len(file.columns) == 3:
        third = next(k for k in range(3) if k not in used)
        return None if isinstance(file, FileTable) and file.column(third).is_empty() else third
    if weights is True:
        raise DataError(f"{file.path} has {len(file.columns)} columns; name the one that holds the weights")
    return None
