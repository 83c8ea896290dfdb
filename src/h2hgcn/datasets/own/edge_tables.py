"""Edges from the rows of a table."""

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.streams import TableStream
from h2hgcn.datasets.own.tables import FileTable, Ids, shown
from h2hgcn.errors import DataError

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
