"""Tables of edges or nodes, from files or DataFrames, read in batches of rows; and the arrays that are made of them."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
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

WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")  # a number as many countries write it

_MAX_WHOLE_FLOAT = 2.0**53  # beyond, neighboring integers are the same floating-point number

# Texts as a NumPy array take as much room as the longest, each. More than this is refused if it is many times the text.
_WIDE_BYTES, _WIDE_FACTOR = 1 << 28, 16

# Rows that are worked on together, so that arrays may be larger than memory.
BLOCK = 1 << 22


@dataclass
class Table:
    """Named columns whose rows come in batches."""

    origin: Path | str  # the file, or words for what was in memory; named in messages
    columns: list[str]
    read: Callable[[], Iterator[pa.RecordBatch]]  # from the start every time
    where: Callable[[int], str]  # says where a row is, counted from 0
    notes: Callable[[], list[str]] = list  # what to tell the user once all rows were read
    has_header: bool = True  # whether the columns have names of their own
    header_guessed: bool = False  # whether that was guessed
    typed: bool = False  # whether texts are ids as they are; else 7 may have been written for a number
    keep: bool = True  # whether to keep the rows in memory, so that they are read once
    kept: list[pa.RecordBatch] | None = None

    def batches(self, columns: Sequence[int]) -> Iterator[list["Column"]]:
        """Some columns of all rows, batch by batch. Raises if there are no rows."""
        kept, first = [], 0
        for rows in self.read() if self.kept is None else self.kept:
            if len(rows):
                yield [Column(rows.column(k), self, k, first) for k in columns]
                first += len(rows)
                if self.keep:
                    kept.append(rows)
        if not first:
            raise DataError(f"{self.origin} has a header and no rows; put data into it, or name another file")
        self.kept = kept if self.keep else None

    def column(self, number: int) -> Iterator["Column"]:
        """One column, batch by batch."""
        return (batch[0] for batch in self.batches([number]))

    def column_number(self, name: str) -> int:
        """The place of a column; without a header, also by its number, counted from 1."""
        for names in (self.columns, [] if self.has_header else [str(k + 1) for k in range(len(self.columns))]):
            if str(name) in names:
                return names.index(str(name))
        raise DataError(f"{self.origin} has no column {name!r}; it has {', '.join(self.columns)}")

    def called(self, column: int) -> str:
        """A column as messages name it."""
        return f"column {self.columns[column]!r}" if self.has_header else self.columns[column]

    def values(self, column: int) -> list[Any]:
        """All values of a column."""
        return [value for part in self.column(column) for value in part.plain_values()]

    def first_ids(self, column: int, count: int) -> list[str]:
        """The first ids of a column, as texts."""
        texts: list[str] = []
        for part in self.column(column):
            texts += part.ids().slice(0, count - len(texts)).cast(pa.string()).to_pylist()
            if len(texts) == count:
                break
        return texts

    def ids(self, column: int, parts: Iterable[pa.Array] | None = None) -> Ids:
        """A column of ids, which may have been read already as ``parts``."""
        parts = (part.ids() for part in self.column(column)) if parts is None else parts
        return self._id_array(self._with_integers(_joined(list(parts))), [column])

    def distinct_ids(self, columns: Sequence[int], what: str = "node id") -> tuple[Ids, Callable[["Column"], Codes]]:
        """The different ids of some columns, sorted, and a function that numbers a column's ids by them.

        Ids are integers if all of them are written as such, else texts.
        """
        known: list[pa.Array] = []
        added = 0
        for batch in self.batches(columns):
            for part in batch:
                known.append(pc.unique(part.ids(what)))
                added += len(known[-1])
            if added > 2 * len(known[0]):  # merged seldom, so that many batches take no longer than their rows
                known, added = [pc.unique(_joined(known))], 0
        values = self._with_integers(pc.unique(_joined(known)))
        values = values.take(pc.sort_indices(values))
        ids = self._id_array(values, columns)

        def codes(part: "Column") -> Codes:
            encoded = part.ids(what).dictionary_encode()
            own = encoded.dictionary.cast(values.type)
            places = np.searchsorted(ids, own) if ids.dtype.kind == "i" else pc.index_in(own, value_set=values)
            return np.asarray(places, np.int64)[encoded.indices.to_numpy()]

        return ids, codes

    def _with_integers(self, values: pa.Array) -> pa.Array:
        """Integers, if all texts say nothing else: ``007`` and ``+7`` are not 7."""
        if self.typed or pa.types.is_integer(values.type):
            return values
        try:
            integers = values.cast(pa.int64())
        except pa.ArrowInvalid:
            return values
        return integers if integers.cast(pa.string()).equals(values) else values

    def _id_array(self, values: pa.Array, columns: Sequence[int]) -> Ids:
        """Ids as a NumPy array; a text that is much longer than all others is refused."""
        if pa.types.is_integer(values.type):
            return values.to_numpy()
        return text_ids(values, lambda text: self._place_of(text, columns))

    def _place_of(self, text: str, columns: Sequence[int]) -> str:
        for batch in self.batches(columns):
            for part in batch:
                row = pc.index(part.ids().cast(pa.string()), text).as_py()
                if row >= 0:
                    return part.where(row)
        return str(self.origin)


def text_ids(values: pa.Array, place_of: Callable[[str], str]) -> Ids:
    """Texts as a NumPy array; one that is much longer than all others is refused."""
    lengths = pc.utf8_length(values)
    longest, total = pc.max(lengths).as_py() or 0, pc.sum(lengths).as_py() or 0
    if 4 * longest * len(values) > max(_WIDE_BYTES, 4 * _WIDE_FACTOR * total):
        text = values[pc.index(lengths, longest).as_py()].as_py()
        raise DataError(
            f"{place_of(text)}: the id {text[:20]!r}... has {longest:,} letters, all ids have "
            f"{total / len(values):.0f} on average; shorten it, since every id takes as much memory as the longest"
        )
    return values.to_numpy(zero_copy_only=False).astype(np.str_)


@dataclass(frozen=True)
class Column:
    """The values of a column in a batch, whose first row is row ``first`` of the table."""

    values: pa.Array
    table: Table
    number: int
    first: int

    def ids(self, what: str = "node id") -> pa.Array:
        """64-bit integers or texts, none of them missing; texts of a file are trimmed."""
        values = self._plain()
        if pa.types.is_floating(values.type):
            return self._whole(values.to_numpy(zero_copy_only=False).astype(np.float64), what)
        if pa.types.is_integer(values.type):
            self._refuse(pc.is_null(values), f"no {what}", "give every row one")
            with suppress(pa.ArrowInvalid):  # integers beyond 64 bits with a sign are texts
                return values.cast(pa.int64())
        try:
            texts = values.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"{self.where(0)}: {self.called} is of type {values.type}; node ids are integers or texts"
            ) from None
        texts = texts if self.table.typed else pc.utf8_trim_whitespace(texts)
        self._refuse(_is_gap(texts), f"no {what}", "give every row one")
        return texts

    def numbers(self, remedy: str = "") -> NDArray[np.float64]:
        """Finite numbers, of which truth values are 1 and 0; ``remedy`` says what to do if there are others."""
        values = self._plain()
        kind = values.type
        if is_text(kind):
            numbers = self._parsed(pc.utf8_trim_whitespace(values.cast(pa.string())), remedy)
        elif pa.types.is_boolean(kind) or pa.types.is_null(kind) or _is_numeric(kind):
            numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        else:
            raise DataError(f"{self.where(0)}: {self.called} is of type {kind}, not a number; leave it out")
        remedy = remedy or "fill the gap, or leave the row or column out"
        self._refuse(~np.isfinite(numbers), f"no finite number in {self.called}", remedy)
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

    def is_blank(self) -> bool:
        """Whether all these texts are empty, as behind a delimiter at the end of each line."""
        return bool(pc.all(_is_gap(self.values)).as_py())

    @property
    def called(self) -> str:
        return self.table.called(self.number)

    def where(self, row: int) -> str:
        return self.table.where(self.first + row)

    def _plain(self) -> pa.Array:
        kind = self.values.type
        return self.values.cast(kind.value_type) if pa.types.is_dictionary(kind) else self.values

    def _whole(self, numbers: NDArray[np.float64], what: str) -> pa.Array:
        """Whole numbers as integers: columns of integers with gaps are often kept as floating-point numbers."""
        self._refuse(np.isnan(numbers), f"no {what}", "give every row one")
        remedy = "node ids are integers or texts"
        self._refuse(np.floor(numbers) != numbers, f"{self.called} holds a number that is not whole", remedy)
        large = np.abs(numbers) >= _MAX_WHOLE_FLOAT
        self._refuse(large, f"{self.called} holds a floating-point number too large to be exact", remedy)
        return pa.array(numbers.astype(np.int64))

    def _parsed(self, texts: pa.Array, remedy: str) -> NDArray[np.float64]:
        """Arrow parses fast; Python also takes 1_000 and knows the row."""
        lowered = pc.utf8_lower(texts)
        plain = pc.if_else(pc.equal(lowered, "true"), "1", pc.if_else(pc.equal(lowered, "false"), "0", texts))
        with suppress(pa.ArrowInvalid):
            numbers: NDArray[np.float64] = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
            return numbers
        numbers = np.full(len(plain), np.nan)
        for row, text in enumerate(plain.to_pylist()):
            try:
                numbers[row] = float(text or "nan")
            except ValueError:
                filled = "fill the gap, leave the column out, or turn it into numbers (one column for each value)"
                advice = remedy or filled
                if WITH_COMMA.fullmatch(text):
                    advice = "write numbers without commas, such as 1.5 or 1200"
                raise DataError(
                    f"{self.where(row)}: {self.called} holds {text!r}, which is not a number; {advice}"
                ) from None
        return numbers

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


def _joined(arrays: list[pa.Array]) -> pa.Array:
    """Ids of several batches, as texts if not all are integers."""
    if len({array.type for array in arrays}) > 1:
        arrays = [array.cast(pa.string()) for array in arrays]
    return pa.concat_arrays(arrays)


def end_columns(columns: Sequence[str]) -> tuple[int, int]:
    """The columns that are called source and target, in any of their names, else the first two."""
    names = [name.lower() for name in columns]
    source = next((names.index(name) for name in SOURCE_NAMES if name in names), None)
    target = next((names.index(name) for name in TARGET_NAMES if name in names), None)
    return (0, 1) if source is None or target is None else (source, target)


def id_column(columns: Sequence[str], id_names: frozenset[str] = ID_NAMES) -> int:
    """The column that is called like one of ids, else the first."""
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


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first names, for messages."""
    return ", ".join(names[:most]) + (f", ... ({len(names)})" if len(names) > most else "")


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
        paths: list[Path] = []
        with ExitStack() as files:
            for part in parts:
                if not paths:
                    paths = [self.folder / f"{name}-{k}.scratch" for k in range(len(part))]
                    opened = [files.enter_context(path.open("wb")) for path in paths]
                for array, file in zip(part, opened, strict=True):
                    array.tofile(file)
        return [
            np.memmap(path, array.dtype, "r+").reshape(-1, *array.shape[1:]) if path.stat().st_size else array[:0]
            for path, array in zip(paths, part, strict=True)
        ]


def blocks_of(length: int) -> Iterator[slice]:
    """Slices that together make up ``length`` rows; at least one."""
    return (slice(first, min(first + BLOCK, length)) for first in range(0, max(length, 1), BLOCK))


def single(values: Any) -> Any:
    """An array or SciPy matrix in single precision; what is too large becomes infinite, to be found by its checker."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32, copy=False)
