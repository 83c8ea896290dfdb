"""Tables of edges or nodes, from files or DataFrames, read in batches of rows; and the arrays that are made of them."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.interchange import from_dataframe

from h2hgcn.errors import DataError

Ids = NDArray[Any]  # integers or texts
Codes = NDArray[np.int64]

ID_NAMES = frozenset({"id", "ids", "node", "node_id", "nodeid", "name"})
SOURCE_NAMES = ("source", "src", "from", "u", "head", "node1", "node_1", "id1", "id_1", "start", "subject", "parent")
TARGET_NAMES = ("target", "dst", "to", "v", "tail", "node2", "node_2", "id2", "id_2", "end", "object", "child")
EDGE_COLUMN_NAMES = frozenset(SOURCE_NAMES + TARGET_NAMES)

_MAX_WHOLE_FLOAT = 2.0**53  # beyond, neighboring integers are the same floating-point number

# Texts as a NumPy array take as much room as the longest, each. More than this is refused if it is many times the text.
_WIDE_BYTES, _WIDE_FACTOR = 1 << 28, 16

# Rows that are worked on together, so that arrays may be larger than memory.
BLOCK = 1 << 22


class Table:
    """Named columns whose rows come in batches.

    Args:
        origin: The file, or words for what was in memory; named in messages.
        columns: The names of the columns.
        read: Reads the rows, from the start every time.
        where: Says where a row is, counted from 0.
        notes: What to tell the user once all rows were read.
        has_header: Whether the columns have names of their own.
        header_guessed: Whether that was guessed.
        typed: Whether texts are ids as they are; else ``7`` may have been written for a number.
        keep: Whether to keep the rows in memory, so that they are read once.
    """

    def __init__(
        self, origin: Path | str, columns: list[str], read: Callable[[], Iterator[pa.RecordBatch]],
        where: Callable[[int], str], notes: Callable[[], list[str]] = list, *, has_header: bool = True,
        header_guessed: bool = False, typed: bool = False, keep: bool = True,
    ) -> None:  # fmt: skip
        self.origin, self.columns, self.where, self.notes = origin, columns, where, notes
        self.has_header, self.header_guessed, self.typed = has_header, header_guessed, typed
        self._read, self._keep, self._kept = read, keep, list[pa.RecordBatch]()
        self._is_complete = False

    def batches(self) -> Iterator["Batch"]:
        """All rows in order. Raises if there are none."""
        first = 0
        for rows in self._kept if self._is_complete else self._reading():
            yield Batch(self, rows, first)
            first += len(rows)
        if not first:
            raise DataError(f"{self.origin} has a header and no rows; put data into it, or name another file")

    def _reading(self) -> Iterator[pa.RecordBatch]:
        self._kept = []
        for rows in self._read():
            if len(rows) and self._keep:
                self._kept.append(rows)
            if len(rows):
                yield rows
        self._is_complete = self._keep

    def column_number(self, name: str) -> int:
        """The place of a column; without a header, also by its number, counted from 1."""
        if str(name) in self.columns:
            return self.columns.index(str(name))
        numbers = [] if self.has_header else [str(k + 1) for k in range(len(self.columns))]
        if name in numbers:
            return numbers.index(name)
        raise DataError(f"{self.origin} has no column {name!r}; it has {', '.join(self.columns)}")

    def called(self, column: int) -> str:
        """A column as messages name it."""
        return f"column {self.columns[column]!r}" if self.has_header else self.columns[column]

    def values(self, column: int) -> list[Any]:
        """All values of a column."""
        return [value for batch in self.batches() for value in batch.column(column).plain_values()]

    def is_empty(self, column: int) -> bool:
        """Whether a column has no values, as behind a delimiter at the end of each line."""
        return all(batch.column(column).is_empty() for batch in self.batches())

    def distinct_ids(self, columns: Sequence[int], what: str = "node id") -> "DistinctIds":
        """The different ids of some columns: integers if all of them are written as such, else texts."""
        known: list[pa.Array] = []
        added = 0
        for batch in self.batches():
            for column in columns:
                known.append(pc.unique(batch.column(column).ids(what)))
                added += len(known[-1])
            if added > 2 * len(known[0]):  # merged seldom, so that many batches take no longer than their rows
                known, added = [_union(known)], 0
        return DistinctIds(self._typed(_union(known), columns), lambda text: self._place_of(text, columns))

    def first_ids(self, column: int, count: int) -> list[str]:
        """The first ids of a column, as texts."""
        texts: list[str] = []
        for batch in self.batches():
            texts += batch.column(column).ids().slice(0, count - len(texts)).cast(pa.string()).to_pylist()
            if len(texts) == count:
                break
        return texts

    def ids(self, column: int, batches: Iterable[pa.Array] | None = None) -> Ids:
        """A column of ids, of which the batches may have been read."""
        read = (batch.column(column).ids() for batch in self.batches()) if batches is None else batches
        values = self._typed(pa.chunked_array(list(read)).combine_chunks(), [column])
        if pa.types.is_integer(values.type):
            return values.to_numpy()
        return text_array(values, lambda text: self._place_of(text, [column]))

    def _typed(self, values: pa.Array, columns: Sequence[int]) -> pa.Array:
        if self.typed and any(is_text(next(self.batches()).rows.column(column).type) for column in columns):
            return values
        return _integers_if_all(values)

    def _place_of(self, text: str, columns: Sequence[int]) -> str:
        for batch in self.batches():
            for column in columns:
                row = pc.index(batch.column(column).ids().cast(pa.string()), text).as_py()
                if row >= 0:
                    return self.where(batch.first + row)
        return str(self.origin)


class DistinctIds:
    """Different ids, sorted, and the number of each."""

    def __init__(self, values: pa.Array, where: Callable[[str], str]) -> None:
        self._values = values.take(pc.sort_indices(values))
        if pa.types.is_integer(values.type):
            self.ids: Ids = self._values.to_numpy()
        else:
            self.ids = text_array(self._values, where)

    def codes(self, values: pa.Array) -> Codes:
        """The numbers of ids that are all among these."""
        encoded = values.dictionary_encode()
        if encoded.dictionary.type != self._values.type:
            encoded = pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(self._values.type))
        if pa.types.is_integer(self._values.type):
            places = np.searchsorted(self.ids, encoded.dictionary.to_numpy())
        else:
            places = pc.index_in(encoded.dictionary, value_set=self._values).to_numpy().astype(np.int64)
        return places[encoded.indices.to_numpy()]


def text_array(values: pa.Array, where: Callable[[str], str]) -> Ids:
    """Texts as a NumPy array; one that is much longer than all others is refused."""
    lengths = pc.utf8_length(values)
    longest, total = pc.max(lengths).as_py() or 0, pc.sum(lengths).as_py() or 0
    if 4 * longest * len(values) > max(_WIDE_BYTES, 4 * _WIDE_FACTOR * total):
        text = values[pc.index(lengths, longest).as_py()].as_py()
        raise DataError(
            f"{where(text)}: the id {text[:20]!r}... has {longest:,} letters, where all {len(values):,} ids have "
            f"{total / len(values):.0f} on average; shorten it, since every id takes as much memory as the longest"
        )
    return values.to_numpy(zero_copy_only=False).astype(np.str_)


@dataclass(frozen=True)
class Batch:
    """Some rows of a table, of which ``first`` is the number of the first."""

    table: Table
    rows: pa.RecordBatch
    first: int

    def column(self, number: int) -> "Column":
        return Column(self.rows.column(number), number, self)


@dataclass(frozen=True)
class Column:
    """The values of a column in a batch."""

    values: pa.Array
    number: int
    batch: Batch

    @property
    def called(self) -> str:
        return self.batch.table.called(self.number)

    def ids(self, what: str = "node id") -> pa.Array:
        """64-bit integers or texts, none of them missing; texts of a file are trimmed."""
        values = self._plain()
        if pa.types.is_floating(values.type):
            values = self._whole(values, what)
        if pa.types.is_integer(values.type) and values.type != pa.uint64():
            self._refuse(pc.is_null(values), f"no {what}", "give every row one")
            return values.cast(pa.int64())
        try:
            texts = values.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"{self.where(0)}: {self.called} is of type {values.type}; node ids are integers or texts"
            ) from None
        texts = texts if self.batch.table.typed else pc.utf8_trim_whitespace(texts)
        self._refuse(_is_gap(texts), f"no {what}", "give every row one")
        return texts

    def numbers(self, remedy: str = "") -> NDArray[np.float64]:
        """Finite numbers, of which truth values are 1 and 0; ``remedy`` says what to do if there are others."""
        values = self._plain()
        if is_text(values.type):
            return self._parsed(pc.utf8_trim_whitespace(values.cast(pa.string())), remedy)
        kind = values.type
        if not (pa.types.is_boolean(kind) or pa.types.is_null(kind) or _is_numeric(kind)):
            raise DataError(f"{self.where(0)}: {self.called} is of type {kind}, not a number; leave it out")
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        self._refuse_gaps(~np.isfinite(numbers), remedy)
        return numbers

    def plain_values(self) -> list[Any]:
        """Texts, numbers and truth values, None where there is none; dates and times are texts."""
        values = self._plain()
        kind = values.type
        if pa.types.is_temporal(kind):
            values = values.cast(pa.int64() if pa.types.is_duration(kind) else pa.string())
        elif not (is_text(kind) or _is_numeric(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise DataError(f"{self.where(0)}: {self.called} is of type {kind}; it takes integers or texts")
        return values.to_pylist()

    def is_empty(self) -> bool:
        if is_text(self.values.type):
            return bool(pc.all(_is_gap(self._plain())).as_py())
        return bool(self.values.null_count == len(self.values))

    def where(self, row: int) -> str:
        return self.batch.table.where(self.batch.first + row)

    def _plain(self) -> pa.Array:
        kind = self.values.type
        return self.values.cast(kind.value_type) if pa.types.is_dictionary(kind) else self.values

    def _whole(self, values: pa.Array, what: str) -> pa.Array:
        """Whole numbers as integers: columns of integers with gaps are often kept as floating-point numbers."""
        if pa.types.is_float16(values.type):
            values = values.cast(pa.float32())
        missing = pc.or_(pc.is_null(values), pc.fill_null(pc.is_nan(values), False))
        self._refuse(missing, f"no {what}", "give every row one")
        remedy = "node ids are integers or texts"
        fraction = pc.not_equal(pc.floor(values), values)
        self._refuse(fraction, f"{self.called} holds a number that is not whole", remedy)
        large = pc.greater_equal(pc.abs(values), _MAX_WHOLE_FLOAT)
        self._refuse(large, f"{self.called} holds a floating-point number too large to be exact", remedy)
        return values.cast(pa.int64())

    def _parsed(self, texts: pa.Array, remedy: str) -> NDArray[np.float64]:
        """Arrow parses fast; Python also takes 1_000 and knows the row."""
        lowered = pc.utf8_lower(texts)
        plain = pc.if_else(pc.equal(lowered, "true"), "1", pc.if_else(pc.equal(lowered, "false"), "0", texts))
        try:
            numbers = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            numbers = np.array([self._number(row, text, remedy) for row, text in enumerate(plain.to_pylist())])
        self._refuse_gaps(~np.isfinite(numbers), remedy)
        return numbers

    def _number(self, row: int, text: str | None, remedy: str) -> float:
        if not text:
            return np.nan
        try:
            return float(text)
        except ValueError:
            advice = remedy or "fill the gap, leave the column out, or turn it into numbers (one column for each value)"
            raise DataError(
                f"{self.where(row)}: {self.called} holds {text!r}, which is not a number; {advice}"
            ) from None

    def _refuse_gaps(self, gaps: Any, remedy: str) -> None:
        remedy = remedy or "fill the gap, or leave the row or column out"
        self._refuse(gaps, f"no finite number in {self.called}", remedy)

    def _refuse(self, bad: Any, what: str, remedy: str) -> None:
        rows = np.flatnonzero(bad)
        if len(rows):
            raise DataError(f"{self.where(int(rows[0]))}: {what}; {remedy}")


def _is_gap(texts: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(texts, ""), True)


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _union(arrays: list[pa.Array]) -> pa.Array:
    if len({array.type for array in arrays}) > 1:
        arrays = [array.cast(pa.string()) for array in arrays]
    return arrays[0] if len(arrays) == 1 else pc.unique(pa.concat_arrays(arrays))


def _integers_if_all(values: pa.Array) -> pa.Array:
    """Integers, if the texts say nothing else: ``007`` and ``+7`` are not 7."""
    if pa.types.is_integer(values.type):
        return values
    try:
        integers = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values
    return integers if pc.all(pc.equal(integers.cast(pa.string()), values)).as_py() else values


def end_columns(columns: Sequence[str]) -> tuple[int, int]:
    """The columns that are called source and target, in any of their names, else the first two."""
    names = [name.lower() for name in columns]
    source = next((names.index(name) for name in SOURCE_NAMES if name in names), None)
    target = next((names.index(name) for name in TARGET_NAMES if name in names), None)
    return (0, 1) if source is None or target is None else (source, target)


def id_column(columns: Sequence[str], id_names: frozenset[str] = ID_NAMES) -> int:
    return next((k for k, name in enumerate(columns) if name.lower() in id_names), 0)


def column_names(names: Iterable[Any], origin: Path | str) -> list[str]:
    """Names without blanks around them, each once."""
    columns = [str(name).strip() for name in names]
    if len(set(columns)) < len(columns):
        raise DataError(f"{origin}: the header names a column twice: {', '.join(columns)}; rename one")
    return columns


def shown(value: Any) -> str:
    """An id as a person wrote it, with quotes if it is text."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def is_frame(source: Any) -> bool:
    """Whether this is a table with named columns, or a pandas Series whose index may hold node ids."""
    if is_pandas(source) and source.ndim == 1:
        return not is_numbered(source.index)
    has_columns = hasattr(source, "columns") or hasattr(source, "column_names")
    return has_columns and (hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"))


def frame_table(table: pa.Table, origin: str) -> Table:
    """A table of what ``arrow_of`` returned."""
    return Table(
        origin, table.column_names, lambda: iter(table.to_batches()), lambda row: f"{origin}, row {row}", typed=True
    )


def arrow_of(frame: Any, origin: str) -> pa.Table:
    """The columns of a DataFrame (pandas, or a library that shares data in Arrow's format) or an Arrow table."""
    try:
        if is_pandas(frame):
            table = pa.Table.from_pandas(frame.to_frame("value") if frame.ndim == 1 else frame, preserve_index=False)
        elif hasattr(frame, "__arrow_c_stream__"):
            table = pa.table(frame)
        else:
            table = from_dataframe(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{origin}: {error.args[-1]}; give each column its own name and values of one type") from error
    return table.rename_columns(column_names(table.column_names, origin))


def is_pandas(source: Any) -> bool:
    """pandas is not a dependency; somebody who has a DataFrame has imported it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame | pandas.Series)


def is_numbered(index: Any) -> bool:
    """Whether an index is the one that pandas makes by itself: 0, 1, 2, ..."""
    pandas = sys.modules["pandas"]
    return isinstance(index, pandas.RangeIndex) and index.name is None and index.start == 0 and index.step == 1


class Arrays:
    """Where the large arrays of a graph are: in memory, or as files of a folder that are mapped into memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def empty(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array to be filled; in a folder, ``NAME.npy``."""
        if self.folder is None or 0 in shape:  # nothing can be mapped of an empty file
            return np.empty(shape, dtype)
        array = np.lib.format.open_memmap(self.folder / f"{name}.npy", "w+", dtype, shape)
        if hasattr(os, "posix_fallocate"):  # writing to a mapped file on a full disk ends the process, this raises
            with (self.folder / f"{name}.npy").open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, array.offset + array.nbytes)
        return array

    def join(self, name: str, parts: Iterator[tuple[NDArray[Any], ...]]) -> list[NDArray[Any]]:
        """Several arrays whose rows come together in parts, of which there is at least one; scratch of a folder."""
        if self.folder is None:
            return [column[0] if len(column) == 1 else np.concatenate(column) for column in zip(*parts, strict=True)]
        files = [(self.folder / f"{name}-{k}.scratch").open("wb") for k in range(4)]
        try:
            for part in parts:
                for array, file in zip(part, files, strict=False):
                    array.tofile(file)
        finally:
            for file in files:
                file.close()
        return [
            np.memmap(file.name, array.dtype, "r+").reshape(-1, *array.shape[1:])
            if Path(file.name).stat().st_size
            else np.empty((0, *array.shape[1:]), array.dtype)
            for file, array in zip(files, part, strict=False)
        ]


def blocks_of(length: int) -> Iterator[slice]:
    """Slices that together make up ``length`` rows; at least one."""
    return (slice(first, min(first + BLOCK, length)) for first in range(0, max(length, 1), BLOCK))


def single(values: Any) -> Any:
    """An array or SciPy matrix in single precision; what is too large becomes infinite, to be found by its checker."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32, copy=False)
