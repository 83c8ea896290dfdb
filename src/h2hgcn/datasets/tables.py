"""Tables of edges or nodes in delimited text and Parquet files: one reader, whole or in batches."""

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from h2hgcn.errors import DataError

Ids = NDArray[Any]  # integers or texts
Codes = NDArray[np.int64]

DELIMITED_SUFFIXES = frozenset({".csv", ".tsv", ".txt", ".tab", ".edges", ".edgelist", ".dat"})
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})

# A batch: bytes of a delimited file, rows of a Parquet file.
BLOCK_BYTES, BLOCK_ROWS = 1 << 24, 1 << 18

# The delimiter and the header are guessed from so many records, which are read in blocks of so many bytes.
_HEAD_RECORDS, _HEAD_BYTES = 50, 1 << 16

# A small file can claim much: a long line, many columns, many rows, text that was compressed a thousandfold.
LIMITS_VARIABLE = "H2HGCN_LIMITS"
_LINE_BYTES, _COLUMNS, _ROWS, _UNPACKED_BYTES = 1 << 24, 100_000, 10_000_000, 1 << 27
_ROWS_PER_BYTE, _UNPACKED_PER_BYTE = 100, 50

# A quoted field over several lines that is longer was never closed.
_LONGEST_RECORD = 1 << 17

_DELIMITERS = ("\t", ";", "|", ",", " ")
_DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}
_BLANKS = re.compile(r"[ \t]+")
_QUOTED_FIELD = re.compile(r'(?m)(?:^|(?<=[\t;|, ]))"(?:[^"]|"")*"')
_DECIMAL = re.compile(r"\s*[+-]?\d+,\d+\s*")
_MAX_WHOLE_FLOAT = 2.0**53  # beyond, neighboring integers are the same floating-point number

# Texts as a NumPy array take as much room as the longest, each. More than this is refused if it is many times the text.
_WIDE_BYTES, _WIDE_FACTOR = 1 << 28, 16


@dataclass(frozen=True)
class TextFormat:
    """How delimited files are written; None is guessed.

    Args:
        header: Whether the first line is a header.
        delimiter: What stands between fields: one character, or ``"tab"``, ``"space"`` (any number of blanks),
            ``"comma"``, ``"semicolon"`` or ``"pipe"``.
        comment: What lines that are not data begin with, ``#`` by default; ``"none"`` if all lines are data.
    """

    header: bool | None = None
    delimiter: str | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _DELIMITER_NAMES.get(self.delimiter, self.delimiter))
            if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\n\r\0':
                names = ", ".join(name for name in _DELIMITER_NAMES if name.isalpha())
                raise DataError(f"delimiter={self.delimiter!r} is not one ASCII character; give one, or one of {names}")
        if self.comment is not None:
            object.__setattr__(self, "comment", "" if self.comment == "none" else self.comment)
            if self.comment != self.comment.strip() or '"' in self.comment:
                raise DataError(f"comment={self.comment!r} has blanks or quotes; give what comment lines begin with")

    def is_given(self) -> bool:
        return self != TextFormat()


class Table:
    """Named columns whose rows come in batches.

    Args:
        origin: The file, or words for what was in memory; named in messages.
        columns: The names of the columns.
        read: Reads the rows, from the start every time.
        where: Says where a row is, counted from 0.
        has_header: Whether the columns have names of their own.
        header_guessed: Whether that was guessed.
        typed: Whether texts are ids as they are; else ``7`` may have been written for a number.
        keep: Whether to keep the rows in memory, so that they are read once.
    """

    def __init__(
        self, origin: Path | str, columns: list[str], read: Callable[[], Iterator[pa.RecordBatch]],
        where: Callable[[int], str], *, has_header: bool = True, header_guessed: bool = False, typed: bool = False,
        keep: bool = True,
    ) -> None:  # fmt: skip
        self.origin, self.columns, self.where = origin, columns, where
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
            header = "a header and " if isinstance(self, TextTable) else ""
            raise DataError(f"{self.origin} has {header}no rows; put data into it, or name another file")

    def _reading(self) -> Iterator[pa.RecordBatch]:
        self._kept = []
        for rows in self._read():
            if len(rows) and self._keep:
                self._kept.append(rows)
            if len(rows):
                yield rows
        self._is_complete = self._keep

    def comment_note(self) -> list[str]:
        """Whether lines were left out as comments, once all rows were read."""
        return []

    def with_header(self, header: bool) -> "Table":
        """The same file, its first line read as a header or as a row."""
        raise NotImplementedError

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


ID_NAMES = frozenset({"id", "ids", "node", "node_id", "nodeid", "name"})
SOURCE_NAMES = ("source", "src", "from", "u", "head", "node1", "node_1", "id1", "id_1", "start", "subject", "parent")
TARGET_NAMES = ("target", "dst", "to", "v", "tail", "node2", "node_2", "id2", "id_2", "end", "object", "child")
EDGE_COLUMN_NAMES = frozenset(SOURCE_NAMES + TARGET_NAMES)


def end_columns(columns: Sequence[str]) -> tuple[int, int]:
    """The columns that are called source and target, in any of their names, else the first two."""
    names = [name.lower() for name in columns]
    source = next((names.index(name) for name in SOURCE_NAMES if name in names), None)
    target = next((names.index(name) for name in TARGET_NAMES if name in names), None)
    return (0, 1) if source is None or target is None else (source, target)


def id_column(columns: Sequence[str], id_names: frozenset[str] = ID_NAMES) -> int:
    return next((k for k, name in enumerate(columns) if name.lower() in id_names), 0)


def check_limit(count: int, limit: float, claim: str) -> None:
    """Raises if ``count`` exceeds a limit that keeps memory in proportion to a file; ``claim`` says what has it."""
    try:
        factor = float(os.environ.get(LIMITS_VARIABLE) or 1)
    except ValueError:
        raise DataError(f"{LIMITS_VARIABLE}={os.environ[LIMITS_VARIABLE]!r} is not a number; set it to 10") from None
    if count > limit * factor:
        raise DataError(
            f"{claim} ({count:,}, but the limit is {limit * factor:,.0f}); fix it, or set "
            f"{LIMITS_VARIABLE}={max(2 * factor, 10):g} in the environment to multiply all limits"
        )


def check_unpacked(path: Path, size: int) -> None:
    """Raises if a compressed file unpacks to far more bytes than it has."""
    if size > _UNPACKED_BYTES:
        limit = max(_UNPACKED_BYTES, _UNPACKED_PER_BYTE * path.stat().st_size)
        check_limit(size, limit, f"{path} unpacks to too many bytes")


def local_path(given: str | os.PathLike[str]) -> Path:
    """A path with ``~`` resolved."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise DataError(f"{given} names a home folder that does not exist; write the whole path") from None


def shown(value: Any) -> str:
    """An id as a person wrote it, with quotes if it is text."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def check_is_file(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; name a file")


def file_kind(path: Path) -> str:
    """The ending of a file's name in lower case, ``.gz`` aside."""
    return next((suffix for suffix in reversed([s.lower() for s in path.suffixes]) if suffix != ".gz"), "")


def open_table(path: Path, text: TextFormat, known_names: frozenset[str] = frozenset(), *, keep: bool = True) -> Table:
    """The table of a delimited text or Parquet file; ``known_names`` are names of columns that make a header."""
    check_is_file(path)
    kind = file_kind(path)
    if kind in PARQUET_SUFFIXES:
        return _open_parquet(path, keep)
    if kind and kind not in DELIMITED_SUFFIXES and not kind[1:].isdigit():
        known = ", ".join(sorted(DELIMITED_SUFFIXES | PARQUET_SUFFIXES))
        raise DataError(f"{path}: tables are read from {known} (and .gz), not from {kind}; convert it")
    return TextTable(path, text, known_names, keep)


def _open_parquet(path: Path, keep: bool) -> Table:
    def read() -> Iterator[pa.RecordBatch]:
        try:
            with pq.ParquetFile(path) as file:
                for rows in file.iter_batches(BLOCK_ROWS):
                    rows.validate(full=True)  # Arrow trusts that texts are UTF-8
                    yield rows
        except (pa.ArrowException, OSError) as error:
            raise _broken_parquet(path, error) from error

    try:
        facts = pq.read_metadata(path)
        columns = column_names(facts.schema.to_arrow_schema().names, path)
    except (pa.ArrowException, OSError) as error:
        raise _broken_parquet(path, error) from error
    check_limit(facts.num_rows, max(_ROWS, _ROWS_PER_BYTE * path.stat().st_size), f"{path} claims too many rows")
    return Table(path, columns, read, lambda row: f"{path}, row {row + 1}", keep=keep)


def _broken_parquet(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} is not a whole Parquet file ({error}); write or download it again")


def column_names(names: Iterable[Any], origin: Path | str) -> list[str]:
    """Names without blanks around them, each once."""
    columns = [str(name).strip() for name in names]
    if len(set(columns)) < len(columns):
        raise DataError(f"{origin}: the header names a column twice: {', '.join(columns)}; rename one")
    return columns


class TextTable(Table):
    """The rows of a delimited text file, all columns as texts, so that ids are what was written."""

    def __init__(self, path: Path, text: TextFormat, known_names: frozenset[str], keep: bool) -> None:
        self._path = path
        self._format = text
        self._comment = "#" if text.comment is None else text.comment
        comment = rf"{re.escape(self._comment)}[^\n]*" if self._comment else ""
        self._skipped = re.compile(rf"[ \t]*(?:{comment})?\n?")
        self._skipped_lines = re.compile(rf"(?m)^[ \t]*(?:{comment})?\n")
        self._comment_lines = re.compile(rf"(?m)^[ \t]*{comment}\n") if comment else None
        self._comments = 0
        self.delimiter = self._guess_delimiter() if text.delimiter is None else text.delimiter
        head = self._head(self.delimiter)
        if not head:
            hint = f"has only lines that begin with {self._comment!r}" if self._comments else "is empty"
            advice = "; pass comment='none' (--comment none) if they are data" if self._comments else ""
            raise DataError(f"{path} {hint}{advice or '; put data into it, or name another file'}")
        check_limit(len(head[0]), _COLUMNS, f"{path} has too many columns")
        has_header = _looks_like_header(head, known_names) if text.header is None else text.header
        names = head[0] if has_header else [f"column {number + 1}" for number in range(len(head[0]))]
        super().__init__(
            path, column_names(names, path), self._read_blocks, self._line_of, has_header=has_header,
            header_guessed=text.header is None, keep=keep,
        )  # fmt: skip

    def with_header(self, header: bool) -> Table:
        return TextTable(self._path, replace(self._format, header=header), frozenset(), self._keep)

    def comment_note(self) -> list[str]:
        if not self._comments:
            return []
        lines = "1 line begins" if self._comments == 1 else f"{self._comments:,} lines begin"
        return [
            f"{lines} with {self._comment!r} in {self._path.name}, so left out as comments; pass comment='none' "
            "(--comment none) if they are data"
        ]

    def _read_blocks(self) -> Iterator[pa.RecordBatch]:
        records = _Records(self._path, self.delimiter, self._skipped)
        self._comments = 0
        header = self.has_header
        width = len(self.columns)
        for line, text in text_blocks(self._path, BLOCK_BYTES):
            batch = None if records.is_open else self._parse_at_once(text, header)
            if batch is None:
                fields: list[str] = []  # of all rows in one list: lists of lists keep the garbage collector busy
                for number, row in islice(records.feed(line, text), int(header), None):
                    if len(row) != width:
                        raise self._ragged(number, row)
                    fields += row
                batch = pa.record_batch([pa.array(fields[k::width], pa.string()) for k in range(width)], self.columns)
                header = header and not records.count
            else:
                header = False
            yield batch
        records.close()
        self._comments += records.comments

    def _parse_at_once(self, text: str, header: bool) -> pa.RecordBatch | None:
        """By Arrow, which is many times faster. None where a record takes several lines, or Arrow fails."""
        lines = text if text.endswith("\n") else f"{text}\n"
        kept = self._skipped_lines.sub("", lines)
        if not kept or ('"' in kept and (self.delimiter == " " or self._is_hard_to_quote(kept))):
            return None
        if self.delimiter == " ":
            kept = "\n".join(_BLANKS.sub(" ", line.strip(" \t")) for line in kept.split("\n"))
        content = kept.encode()
        try:
            table = pa_csv.read_csv(
                BytesIO(content),
                pa_csv.ReadOptions(column_names=self.columns, skip_rows=int(header), block_size=len(content) + 1),
                pa_csv.ParseOptions(delimiter=self.delimiter),
                pa_csv.ConvertOptions(column_types=dict.fromkeys(self.columns, pa.string())),
            )
        except pa.ArrowInvalid:
            return None
        if len(table) + header != kept.count("\n"):
            return None
        if len(kept) < len(lines) and self._comment_lines is not None:
            self._comments += len(self._comment_lines.findall(lines))
        return table.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], table.schema)

    def _is_hard_to_quote(self, lines: str) -> bool:
        """Whether a quote stands behind blanks, which Arrow does not take for one, or may be open at a line's end."""
        late = re.search(rf'(?m)(?:^|{re.escape(self.delimiter)})[ \t]+"', lines) is not None
        return late or any(line.count('"') % 2 for line in lines.split("\n"))

    def _head(self, delimiter: str) -> list[list[str]]:
        records = _Records(self._path, delimiter, self._skipped)
        rows: list[list[str]] = []
        for line, text in text_blocks(self._path, _HEAD_BYTES):
            rows += [fields for _, fields in islice(records.feed(line, text), _HEAD_RECORDS - len(rows))]
            if len(rows) == _HEAD_RECORDS:
                return rows
        records.close()
        self._comments = records.comments
        return rows

    def _guess_delimiter(self) -> str:
        """The delimiter that cuts all records into the same number of fields, else the first that cuts the first one.

        What stands in quotes does not count, and a comma may be a decimal one between semicolons.
        """
        _, head = next(text_blocks(self._path, _HEAD_BYTES), (1, ""))
        bare = _QUOTED_FIELD.sub('"', self._skipped_lines.sub("", head))
        possible = [delimiter for delimiter in _DELIMITERS if delimiter in bare] or list(_DELIMITERS)
        rows = {delimiter: self._head(delimiter) for delimiter in possible}
        cutting = [delimiter for delimiter in possible if rows[delimiter] and len(rows[delimiter][0]) > 1]
        even = [delimiter for delimiter in cutting if len({len(row) for row in rows[delimiter]}) == 1]
        if "," in even and even[0] in ";|":
            held = [field for row in rows[even[0]] for field in row if "," in field]
            if not all(_DECIMAL.fullmatch(field) for field in held):  # one of the two stands inside fields
                return min((even[0], ","), key=lambda delimiter: len(rows[delimiter][0]))
        return next(iter(even or cutting), ",")

    def _line_of(self, row: int) -> str:
        records = _Records(self._path, self.delimiter, self._skipped)
        wanted = row + self.has_header
        for line, text in text_blocks(self._path, BLOCK_BYTES):
            found = next(islice(records.feed(line, text), wanted - records.count, None), None)
            if found is not None:
                return f"{self._path}, line {found[0]}"
        return str(self._path)

    def _ragged(self, number: int, fields: list[str]) -> DataError:
        found = f"{len(fields)} {'field' if len(fields) == 1 else 'fields'}"
        return DataError(
            f"{self._path}, line {number}: {found} where the first line has {len(self.columns)}: "
            f"{self.delimiter.join(fields)[:80]!r}; fields are delimited by {self.delimiter!r} there (change it with "
            "delimiter=, --delimiter)"
        )


class _Records:
    """Cuts lines into fields. A record takes several lines if a line end is inside quotes."""

    def __init__(self, path: Path, delimiter: str, skipped: re.Pattern[str]) -> None:
        self._path, self._delimiter, self._skipped = path, delimiter, skipped
        outside = r"[^ \t]" if delimiter == " " else f"[^{re.escape(delimiter)}]"
        blanks = {" ": "", "\t": " *"}.get(delimiter, r"[ \t]*")
        self._opening = re.compile(f'{blanks}"')
        self._field = re.compile(rf'{blanks}"((?:[^"]|"")*)"({outside}*)|({outside}*)')
        self._lines: list[str] = []  # of a record whose quote is still open
        self._first = self._length = 0
        self.count = self.comments = 0

    @property
    def is_open(self) -> bool:
        return bool(self._lines)

    def feed(self, number: int, text: str) -> Iterator[tuple[int, list[str]]]:
        """The records that end in ``text``, whose first line has this number, each with the number of its first line.
        Blank lines and comments between records are left out."""
        start = 0
        while start < len(text):
            end = text.find("\n", start) + 1 or len(text)
            line, start = text[start:end], end
            fields = self._fields_of(number, line)
            number += 1
            if fields is not None:
                self.count += 1
                yield self._first, fields

    def close(self) -> None:
        if self._lines:
            raise self._open_quote()

    def _fields_of(self, number: int, line: str) -> list[str] | None:
        if not self._lines:
            if self._skipped.fullmatch(line):
                self.comments += not line.isspace()
                return None
            self._first, self._length = number, 0
        self._lines.append(line)
        self._length += len(line)
        if len(self._lines) > 1 and '"' not in line:
            if self._length > _LONGEST_RECORD:
                raise self._open_quote()
            return None
        fields = self._cut("".join(self._lines).removesuffix("\n"))
        if fields is None and len(self._lines) > 1 and self._length > _LONGEST_RECORD:
            raise self._open_quote()
        if fields is not None:
            self._lines = []
        return fields

    def _cut(self, record: str) -> list[str] | None:
        """The fields; None if a quote is open at the end. Quotes count at the start of a field only, after blanks."""
        blank = self._delimiter == " "
        record = record.strip(" \t") if blank else record
        if '"' not in record:
            return _BLANKS.split(record) if blank else record.split(self._delimiter)
        fields, start = [], 0
        while True:
            match = self._field.match(record, start)
            assert match is not None
            if match[1] is None and self._opening.match(record, start):
                return None
            fields.append(match[3] if match[1] is None else match[1].replace('""', '"') + match[2])
            start = match.end()
            if start == len(record):
                return fields
            gap = _BLANKS.match(record, start) if blank else None
            start = start + 1 if gap is None else gap.end()

    def _open_quote(self) -> DataError:
        return DataError(
            f"{self._path}, line {self._first}: a quote is opened and not closed; close it, or take it out"
        )


def _looks_like_header(rows: list[list[str]], known_names: frozenset[str]) -> bool:
    """Whether the first record has a known name, or words where those below have numbers; but a number that comes twice
    in it names no columns."""
    if any(name.strip().lower() in known_names for name in rows[0]):
        return True
    below = [row for row in rows[1:] if len(row) == len(rows[0])]
    numeric = [k for k in range(len(rows[0])) if below and all(_is_number(row[k]) for row in below)]
    numbers = [name for name in rows[0] if _is_number(name)]
    repeated = len(set(numbers)) < len(numbers)
    return not repeated and any(not _is_number(rows[0][k]) for k in numeric)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def text_blocks(path: Path, size: int) -> Iterator[tuple[int, str]]:
    r"""A UTF-8 text in blocks of whole lines, each with the number of its first line. Every line end is ``\n``."""
    line = 1
    for content in _whole_lines(path, size):
        if b"\r" in content:
            content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\0" in content:
            number = line + content[: content.index(b"\0")].count(b"\n")
            raise DataError(
                f"{path}, line {number}: there is a NUL byte, so this is not text; convert it, or name another file"
            )
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            number = line + content[: error.start].count(b"\n")
            raise DataError(
                f"{path}, line {number}: this is not UTF-8 text ({error.reason}); save it as UTF-8"
            ) from None
        yield line, text.removeprefix("\ufeff") if line == 1 else text
        line += text.count("\n")


def open_bytes(path: Path) -> Any:
    """A file to be read, unpacked if its name ends with ``.gz``."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _whole_lines(path: Path, size: int) -> Iterator[bytes]:
    rest = b""
    total = 0
    try:
        with open_bytes(path) as file:
            while chunk := file.read(size):
                total += len(chunk)
                check_unpacked(path, total)
                check_limit(len(rest), _LINE_BYTES, f"{path} has too long a line, in bytes")
                content = rest + chunk
                # a carriage return at the very end may belong to the line feed that follows
                end = max(content.rfind(b"\n"), content.rfind(b"\r", 0, len(content) - 1)) + 1
                rest = content[end:]
                if end:
                    yield content[:end]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}); copy or download it again") from error
    if rest:
        yield rest
