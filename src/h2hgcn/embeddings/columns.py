"""What stands beside points: ids, labels and further columns, as Arrow arrays."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from h2hgcn.errors import DataError


def id_column(ids: Any, count: int) -> pa.Array:
    """Different ids as int64 or text, as they came."""
    column = _column(ids, "ids", count)
    if pa.types.is_integer(column.type):
        column = _cast(column, pa.int64(), "ids")
    elif not _is_text(column.type):
        raise DataError(f"the ids are of type {column.type}; pass integers or texts")
    _refuse_gaps(column, "ids")
    counts = pc.value_counts(column)
    twice = pc.index(pc.greater(counts.field("counts"), 1), True).as_py()
    if twice >= 0:
        raise DataError(f"the id {counts.field('values')[twice].as_py()!r} is there twice; give every point its own")
    return column


def label_column(labels: Any, count: int) -> pa.Array:
    """Labels as text; None where there is none."""
    column = _column(labels, "labels", count)
    if pa.types.is_null(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.string())
    if not _is_text(column.type):
        raise DataError(f"the labels are of type {column.type}; pass texts or integers, and None for no label")
    return column


def extra_column(values: Any, name: str, count: int) -> pa.Array:
    """A further column of numbers, truth values or texts, without gaps."""
    column = _column(values, f"values of {name!r}", count)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or _is_text(kind)):
        raise DataError(f"the values of {name!r} are of type {kind}; pass numbers, truth values or texts")
    _refuse_gaps(column, f"values of {name!r}")
    return column


def plain_column(values: Any, what: str, count: int) -> pa.Array:
    """A column of a file that others wrote: categories as their values, dates as texts, decimals as numbers."""
    column = _column(values, what, count)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_temporal(column.type):
        return column.cast(pa.string())
    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column


def read_labels(values: Any, count: int) -> pa.Array:
    """Labels as text; a column of integers that has gaps may be one of floats, of which NaN is no label."""
    column = plain_column(values, "labels", count)
    if pa.types.is_floating(column.type):
        known = pc.if_else(pc.is_nan(column), None, column)
        if pc.all(pc.equal(known, pc.round(known))).as_py() is not False:
            column = _cast(known, pa.int64(), "labels")
    return label_column(column, count)


def read_values(values: Any, name: str, count: int) -> NDArray[Any]:
    """A further column; where there is no value, numbers are NaN and everything else is None."""
    column = plain_column(values, f"values of {name!r}", count)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(count, np.nan)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or _is_text(kind)):
        raise DataError(f"its values are of type {kind}, neither numbers, truth values nor texts")
    return column.to_numpy(zero_copy_only=False) if column.null_count else ids_as_array(column)


def ids_as_array(column: pa.Array) -> NDArray[Any]:
    """Integers, or NumPy's texts."""
    array = column.to_numpy(zero_copy_only=False)
    return array.astype(np.str_) if _is_text(column.type) else array


def _column(values: Any, what: str, count: int) -> pa.Array:
    try:
        column = values if isinstance(values, pa.Array) else pa.array(_sequence(values))
        column = column.cast(pa.string()) if pa.types.is_large_string(column.type) else column
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"the {what} cannot be used ({error}); pass a list of values of one kind") from error
    if len(column) != count:
        raise DataError(f"there are {len(column)} {what} for {count} points; pass one for each")
    return column


def _sequence(values: Any) -> Any:
    """Arrays as they are; of anything else a list, whose values NumPy would quietly turn into one kind."""
    return np.asarray(values) if hasattr(values, "__array__") else list(values)


def _cast(column: pa.Array, kind: pa.DataType, what: str) -> pa.Array:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise DataError(f"the {what} do not fit {kind} ({error}); pass them as texts") from error


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind))


def _refuse_gaps(column: pa.Array, what: str) -> None:
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"the {what} have a gap in row {row}; fill it")
