"""Edges of any number: read in blocks, sorted on disk, written as an array that can be mapped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from h2hgcn.compiled import compiled
from h2hgcn.datasets.own.streams import TableStream
from h2hgcn.datasets.own.tables import Ids, integers_or_texts
from h2hgcn.errors import DataError

Codes = NDArray[np.int64]

# Numbers that are looked at together.
_BLOCK = 1 << 22


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


def write_edges(
    stream: TableStream, columns: tuple[int, int], ids: StreamedIds, directed: bool, folder: Path
) -> list[str]:
    """Writes ``edge_index.npy``: sorted, without loops and repetitions, both directions of undirected edges; returns
    what is to be noted.
    """
    size = len(ids.ids)
    scratch = folder / "keys.scratch"
    loops = 0
    with scratch.open("wb") as file:
        for block in stream.blocks():
            first, second = (ids.numbers(block.column(column), str(stream.path)) for column in columns)
            loops += int((first == second).sum())
            if not directed:
                first, second = np.minimum(first, second), np.maximum(first, second)
            (first * size + second)[first != second].tofile(file)
    keys = np.memmap(scratch, np.int64, "r+") if scratch.stat().st_size else np.empty(0, np.int64)
    keys.sort()
    kept = _keep_first(keys)
    repeated = len(keys) - kept
    edges = np.lib.format.open_memmap(folder / "edge_index.npy", "w+", np.int64, (2, kept if directed else 2 * kept))
    if directed:
        for part in _parts(kept):
            edges[0, part], edges[1, part] = np.divmod(keys[part], size)
    else:
        _fill_both_ways(keys[:kept], size, edges)
    edges.flush()
    scratch.unlink()
    notes = [(loops, "self-loops were left out; every layer adds its own"), (repeated, "repeated edges were left out")]
    return [f"{count} {what}" for count, what in notes if count]


def _parts(length: int) -> Iterator[slice]:
    return (slice(first, min(first + _BLOCK, length)) for first in range(0, length, _BLOCK))


@compiled
def _keep_first(keys: Any) -> int:
    """Moves each sorted number once to the front; returns how many these are."""
    count = 0
    for k in range(len(keys)):
        if k == 0 or keys[k] != keys[count - 1]:
            keys[count] = keys[k]
            count += 1
    return count


@compiled
def _fill_both_ways(keys: Any, size: int, edges: Any) -> None:
    """A row's smaller neighbours come by before its larger ones, both in order, so that rows are sorted."""
    places = np.zeros(size + 1, np.int64)
    for key in keys:
        places[key // size + 1] += 1
        places[key % size + 1] += 1
    for node in range(size):
        places[node + 1] += places[node]
    for key in keys:
        low, high = key // size, key % size
        for row, other in ((low, high), (high, low)):
            edges[0, places[row]], edges[1, places[row]] = row, other
            places[row] += 1
