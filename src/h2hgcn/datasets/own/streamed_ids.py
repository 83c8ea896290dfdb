"""Node ids of tables that are read block by block, and their numbers."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from h2hgcn.datasets.own.streams import TableStream
from h2hgcn.datasets.own.tables import Ids, integers_or_texts
from h2hgcn.errors import DataError

Codes = NDArray[np.int64]


class StreamedIds:
    """Node ids, sorted, and the number of each."""

    def __init__(self, ids: Ids) -> None:
        self.ids = np.sort(ids)
        self._texts = pa.array(self.ids.tolist(), pa.string()) if self.ids.dtype.kind == "U" else None

    def numbers(self, column: Any, where: str) -> Codes:
        """The number of each id of a column; -1 for one that is not known."""
        values = checked_ids(column, where)
        if self._texts is not None:
            found = pc.fill_null(pc.index_in(values.cast(pa.string()), value_set=self._texts), -1)
            return found.to_numpy(zero_copy_only=False).astype(np.int64)
        given = integers_or_texts(values)
        if given.dtype.kind == "U":
            return np.full(len(given), -1, np.int64)
        places = np.searchsorted(self.ids, given).clip(max=len(self.ids) - 1)
        return np.where(self.ids[places] == given, places, -1)


def checked_ids(column: Any, where: str) -> Any:
    """A column of integers or texts, none of them missing."""
    if not (
        pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ):
        raise DataError(f"{where}: node ids are of type {column.type}; write integers or texts")
    empty = pc.any(pc.equal(column, "")).as_py() if not pa.types.is_integer(column.type) else False
    if column.null_count or empty:
        raise DataError(f"{where}: a row has no node id; give every row one")
    return column


def all_ids(stream: TableStream, columns: tuple[int, int]) -> StreamedIds:
    """The ids that edges name, integers if all of them are written as such."""
    known: Any = None
    for block in stream.blocks():
        for column in columns:
            fresh = pc.unique(checked_ids(block.column(column), str(stream.path)))
            known = fresh if known is None else pc.unique(pa.concat_arrays([known, fresh]))
    if known is None or not len(known):
        raise DataError(f"{stream.path} has no rows; put data into it, or name another file")
    return StreamedIds(integers_or_texts(known))
