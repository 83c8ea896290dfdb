"""DataFrames: of pandas, of libraries that share data in Arrow's format (polars, DuckDB), and Arrow tables."""

import sys
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.interchange import from_dataframe

from h2hgcn.datasets.table_columns import ID_NAMES, end_columns
from h2hgcn.datasets.tables import FileTable, Ids, is_text
from h2hgcn.errors import DataError


def is_frame(source: Any) -> bool:
    """Whether this is a table with named columns, or a pandas Series whose index may hold node ids."""
    if _is_series(source):
        return not _is_numbered(source.index)
    has_columns = hasattr(source, "columns") or hasattr(source, "column_names")
    return has_columns and (hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"))


def edge_frame(source: Any, columns: tuple[str, str] | None) -> FileTable:
    """A frame of edges. Without ``columns``, two of its columns must be able to hold node ids."""
    file = _file_table(source, f"the {type(source).__name__}")
    if columns is None and (len(file.columns) < 2 or not all(map(file.may_hold_ids, end_columns(file)))):
        kinds = ", ".join(f"{field.name} ({_kind(field.type)})" for field in file.table.schema)
        in_index = _is_pandas(source) and not _is_numbered(source.index)
        raise DataError(
            f"{file.path} has the columns {kinds or '(none)'}; an edge needs two columns of node ids (integers or "
            f"texts): name them with columns=(source, target){', after df.reset_index()' if in_index else ''}"
        )
    if not file.table.num_rows:
        raise DataError(f"{file.path} has no rows; pass at least one edge")
    return file


def node_frame(source: Any, what: str, known: Ids | None) -> tuple[FileTable, int | None]:
    """A frame with a row for each node, and which column has the node ids; None if rows belong to the nodes 0, 1, ...

    The first of these that there is holds the ids: an index or a column called ``id``, ``node``, ...; an index that has
    a name, or texts; a first column of texts, or of distinct integers that fit the ``known`` ids; any other index but
    the usual 0, 1, 2, ...
    """
    origin = f"the {type(source).__name__} of {what}"
    file = _file_table(source, origin)
    index = source.index if _is_pandas(source) else None
    if index is not None and index.nlevels > 1:
        raise DataError(f"{origin} has an index of {index.nlevels} levels; keep the one that holds node ids")
    if index is not None and str(index.name).lower() in ID_NAMES:
        return _with_index(file, index, origin), 0
    named = [k for k, name in enumerate(file.columns) if name.lower() in ID_NAMES]
    if named:
        return file, named[0]
    if index is not None and (index.name is not None or index.dtype.kind not in "iu"):
        return _with_index(file, index, origin), 0
    if len(file.columns) > 1 and _holds_ids(file.table.column(0), known):
        return file, 0
    return (file, None) if index is None or _is_numbered(index) else (_with_index(file, index, origin), 0)


def _with_index(file: FileTable, index: Any, origin: str) -> FileTable:
    ids = _arrow(index.to_frame(index=False, name="index"), origin).column(0)
    return _as_file(file.table.add_column(0, f"index {index.name or ''}".strip(), ids), origin)


def _kind(kind: pa.DataType) -> str:
    if is_text(kind):
        return "texts"
    return "integers" if pa.types.is_integer(kind) else "numbers" if pa.types.is_floating(kind) else str(kind)


def _holds_ids(column: pa.ChunkedArray, known: Ids | None) -> bool:
    if not pa.types.is_integer(column.type) or column.null_count:
        return is_text(column.type)
    values = column.to_numpy()
    if known is None or known.dtype.kind == "U" or len(np.unique(values)) < len(values):
        return False
    return bool(np.isin(known, values).all() or np.isin(values, known).all())


def _file_table(frame: Any, origin: str) -> FileTable:
    if _is_series(frame):
        frame = frame.to_frame("value")
    return _as_file(_arrow(frame, origin), origin)


def _as_file(table: pa.Table, origin: str) -> FileTable:
    return FileTable(table, origin, True, lambda row: f"{origin}, row {row}", typed=True)


def _arrow(frame: Any, origin: str) -> pa.Table:
    try:
        if _is_pandas(frame):
            table = pa.Table.from_pandas(frame, preserve_index=False)
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            table = from_dataframe(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{origin}: {error.args[-1]}; give each column its own name and values of one type") from error
    names = [str(name).strip() for name in table.column_names]
    if len(set(names)) < len(names):
        raise DataError(f"{origin} has two columns of one name: {', '.join(names)}; rename one")
    return table.rename_columns(names)


def _is_series(source: Any) -> bool:
    return _is_pandas(source) and source.ndim == 1


def _is_pandas(source: Any) -> bool:
    """pandas is not a dependency; somebody who has a DataFrame has imported it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame | pandas.Series)


def _is_numbered(index: Any) -> bool:
    """Whether an index is the one that pandas makes by itself: 0, 1, 2, ..."""
    pandas = sys.modules["pandas"]
    return isinstance(index, pandas.RangeIndex) and index.name is None and index.start == 0 and index.step == 1
