"""DataFrames: of pandas, of libraries that share data in Arrow's format (polars, DuckDB), and Arrow tables."""

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.interchange import from_dataframe

from h2hgcn.datasets.tables import ID_NAMES, Ids, Table, column_names, end_columns, is_text
from h2hgcn.errors import DataError


def is_frame(source: Any) -> bool:
    """Whether this is a table with named columns, or a pandas Series whose index may hold node ids."""
    if _is_series(source):
        return not _is_numbered(source.index)
    has_columns = hasattr(source, "columns") or hasattr(source, "column_names")
    return has_columns and (hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"))


def edge_frame(source: Any, columns: tuple[str, str] | None) -> Table:
    """A frame of edges. Without ``columns``, two of its columns must be able to hold node ids."""
    origin = f"the {type(source).__name__}"
    table = _arrow(source, origin)
    names = table.column_names
    if columns is None and (len(names) < 2 or not all(_may_hold_ids(table.column(k)) for k in end_columns(names))):
        kinds = ", ".join(f"{field.name} ({_kind(field.type)})" for field in table.schema)
        in_index = _is_pandas(source) and not _is_numbered(source.index)
        raise DataError(
            f"{origin} has the columns {kinds or '(none)'}; an edge needs two columns of node ids (integers or "
            f"texts): name them with columns=(source, target){', after df.reset_index()' if in_index else ''}"
        )
    if not table.num_rows:
        raise DataError(f"{origin} has no rows; pass at least one edge")
    return _as_table(table, origin)


def node_frame(source: Any, what: str, known: Ids | None) -> tuple[Table, int | None]:
    """A frame with a row for each node, and which column has the node ids; None if rows belong to the nodes 0, 1, ...

    The first of these that there is holds the ids: an index or a column called ``id``, ``node``, ...; an index that has
    a name, or texts; a first column of texts, or of distinct integers that fit the ``known`` ids; any other index but
    the usual 0, 1, 2, ...
    """
    origin = f"the {type(source).__name__} of {what}"
    table = _arrow(source, origin)
    index = source.index if _is_pandas(source) else None
    if index is not None and index.nlevels > 1:
        raise DataError(f"{origin} has an index of {index.nlevels} levels; keep the one that holds node ids")
    named = [k for k, name in enumerate(table.column_names) if name.lower() in ID_NAMES]
    in_index = index is not None and str(index.name).lower() in ID_NAMES
    if named and not in_index:
        return _as_table(table, origin), named[0]
    in_index = in_index or (index is not None and (index.name is not None or index.dtype.kind not in "iu"))
    if not in_index and table.num_columns > 1 and _holds_ids(table.column(0), known):
        return _as_table(table, origin), 0
    if index is None or (not in_index and _is_numbered(index)):
        return _as_table(table, origin), None
    ids = _arrow(index.to_frame(index=False, name="index"), origin).column(0)
    return _as_table(table.add_column(0, f"index {index.name or ''}".strip(), ids), origin), 0


def _may_hold_ids(values: pa.ChunkedArray) -> bool:
    """Whether these are integers or texts, or whole numbers in their place."""
    if not pa.types.is_floating(values.type):
        return bool(pa.types.is_integer(values.type)) or is_text(values.type) or pa.types.is_dictionary(values.type)
    return pc.all(pc.equal(pc.floor(values), values)).as_py() is not False


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


def _as_table(table: pa.Table, origin: str) -> Table:
    return Table(
        origin, table.column_names, lambda: iter(table.to_batches()), lambda row: f"{origin}, row {row}", typed=True
    )


def _arrow(frame: Any, origin: str) -> pa.Table:
    try:
        if _is_pandas(frame):
            table = pa.Table.from_pandas(frame.to_frame("value") if frame.ndim == 1 else frame, preserve_index=False)
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            table = from_dataframe(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{origin}: {error.args[-1]}; give each column its own name and values of one type") from error
    return table.rename_columns(column_names(table.column_names, origin))


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
