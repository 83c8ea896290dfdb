"""Tables of edges or nodes from files: delimited text and Parquet, and where in the file a row is."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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


def read_text(path: Path) -> str:
    r"""The text of a UTF-8 file; every line end is ``\n``, so that all who read it count the same lines."""
    content = _read_bytes(path)
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise DataError(
            f"{path}, line {line}: there is a NUL byte, so this is no text; convert it, or name another file"
        )
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: this is not UTF-8 text ({error.reason}); save it as UTF-8") from None


def _read_bytes(path: Path) -> bytes:
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}); copy or download it again") from error


BLANKS = re.compile(r"[ \t]+")
_SKIPPED = re.compile(r"[ \t]*(?:#.*)?\n?")


class LongFieldError(DataError):
    """A field beyond ``csv.field_size_limit()``, as a whole line is if its delimiter was guessed wrongly."""


def records(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers, counted from 1, and fields. Comments and empty lines between records are left out.

    A record takes several lines if a line end is inside quotes. The delimiter " " stands for any number of blanks.
    """
    if '"' in text:
        yield from _quoted_records(_RecordLines(path, text, delimiter), delimiter)
        return
    for number, line in enumerate(_lines(text), start=1):
        if not _SKIPPED.fullmatch(line):
            yield number, _split(line.removesuffix("\n"), delimiter)


def _quoted_records(lines: "_RecordLines", delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter == " ")
    try:
        for fields in reader:
            if delimiter == " " and len(fields) > 1 and fields[-1] == "":
                fields.pop()  # there were blanks at the end of the line
            yield lines.first, fields
            lines.inside = False
    except csv.Error as error:
        if lines.last > lines.first:
            raise lines.open_quote() from None
        raise LongFieldError(f"{lines.path}, line {lines.first}: {error}; shorten it") from None


class _RecordLines:
    """Lines for ``csv.reader``, which takes as many as a record needs; ``inside`` is taken back when it has one."""

    def __init__(self, path: Path, text: str, delimiter: str) -> None:
        self.path = path
        self.first = self.last = 0
        self.inside = False
        self._text = text
        self._indent = " \t" if delimiter == " " else ""  # elsewhere blanks in front belong to the first field

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(_lines(self._text), start=1):
            self.last = number
            if self.inside:
                yield line
            elif not _SKIPPED.fullmatch(line):
                self.first, self.inside = number, True
                yield line.lstrip(self._indent)
        if self.inside:
            raise self.open_quote()

    def open_quote(self) -> DataError:
        return DataError(f"{self.path}, line {self.first}: a quote is opened and not closed; close it, or take it out")


def _lines(text: str) -> Iterator[str]:
    """One at a time, since a list of all takes several times the memory of the text."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _split(line: str, delimiter: str) -> list[str]:
    return BLANKS.split(line.strip(" \t")) if delimiter == " " else line.split(delimiter)


_DELIMITERS = ("\t", ";", "|", ",", " ")  # a comma may be a decimal one between semicolons
_SNIFFED_RECORDS = 50


@dataclass(frozen=True)
class Layout:
    """The delimiter, the fields of the first record, and whether that is a header."""

    delimiter: str
    first_row: list[str]
    has_header: bool

    @cached_property
    def columns(self) -> list[str]:
        if self.has_header:
            return [name.strip() for name in self.first_row]
        return [f"column {number}" for number in range(1, len(self.first_row) + 1)]


def find_layout(path: Path, text: str, header: bool | None, known_names: frozenset[str]) -> Layout:
    """``header=None`` finds out: there is one if the first record has one of the ``known_names``, or words where the
    records below have numbers, unless a number comes twice in it."""
    delimiter = _sniff(path, text)
    rows = _first_rows(path, text, delimiter)
    if not rows:
        raise DataError(f"{path} is empty; put data into it, or name another file")
    layout = Layout(delimiter, rows[0], _looks_like_header(rows, known_names) if header is None else header)
    if len(set(layout.columns)) < len(layout.columns):
        raise DataError(f"{path}: the header names a column twice: {', '.join(layout.columns)}; rename one")
    return layout


def _sniff(path: Path, text: str) -> str:
    """The delimiter that cuts all records into the same number of fields, else the first that cuts the first one."""
    cutting = []
    for delimiter in _DELIMITERS:
        counts = _field_counts(path, text, delimiter) if delimiter in text else []
        if counts and counts[0] > 1:
            cutting.append(delimiter)
            if len(set(counts)) == 1:
                return delimiter
    return cutting[0] if cutting else ","


def _field_counts(path: Path, text: str, delimiter: str) -> list[int]:
    try:
        return [len(row) for row in _first_rows(path, text, delimiter)]
    except LongFieldError:
        return []


def _first_rows(path: Path, text: str, delimiter: str) -> list[list[str]]:
    return [fields for _, fields in islice(records(path, text, delimiter), _SNIFFED_RECORDS)]


def _looks_like_header(rows: list[list[str]], known_names: frozenset[str]) -> bool:
    if any(name.strip().lower() in known_names for name in rows[0]):
        return True
    below = [row for row in rows[1:] if len(row) == len(rows[0])]
    numeric = [k for k in range(len(rows[0])) if below and all(_is_number(row[k]) for row in below)]
    numbers = [name for name in rows[0] if _is_number(name)]
    repeated = len(set(numbers)) < len(numbers)  # nobody calls two columns by one number
    return not repeated and any(not _is_number(rows[0][k]) for k in numeric)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_FIELDS_AT_ONCE = 1 << 18
_SKIPPED_LINES = re.compile(r"\n[ \t]*(?:#[^\n]*)?(?=\n)")


def read_delimited(path: Path, header: bool | None, known_names: frozenset[str]) -> tuple[pa.Table, Layout]:
    """The rows of a file as a table, and its layout. All columns are text, so that ids are what was written.

    ``header`` and ``known_names`` are as for ``find_layout``.
    """
    text = read_text(path)
    layout = find_layout(path, text, header, known_names)
    table = _read_at_once(text, layout)
    return (_read_by_records(path, text, layout) if table is None else table), layout


def line_of_row(path: Path, layout: Layout, row: int) -> int:
    """The line of a file, counted from 1, at which row ``row``, counted from 0, begins."""
    wanted = row + layout.has_header
    return next(islice(records(path, read_text(path), layout.delimiter), wanted, None))[0]


def _read_at_once(text: str, layout: Layout) -> pa.Table | None:
    """By Arrow, which is many times faster. None where a line is no record, and where Arrow stumbles."""
    lines = _SKIPPED_LINES.sub("", f"\n{text}\n").strip("\n")
    if '"' in lines and (layout.delimiter == " " or _has_open_quote(lines)):
        return None
    if layout.delimiter == " ":
        lines = "\n".join(BLANKS.sub(" ", line.strip(" \t")) for line in lines.split("\n"))
    try:
        table = pa_csv.read_csv(
            io.BytesIO(lines.encode()),
            read_options=pa_csv.ReadOptions(column_names=layout.columns, skip_rows=int(layout.has_header)),
            parse_options=pa_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values='"' in lines),
            convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(layout.columns, pa.string())),
        )
    except pa.ArrowInvalid:
        return None
    return table if len(table) + layout.has_header == lines.count("\n") + 1 else None


def _has_open_quote(lines: str) -> bool:
    return any(line.count('"') % 2 for line in lines.split("\n"))


def _read_by_records(path: Path, text: str, layout: Layout) -> pa.Table:
    fields: list[str] = []  # of all rows in one list: lists of lists would keep Python's garbage collector busy
    batches = []
    for number, row in islice(records(path, text, layout.delimiter), int(layout.has_header), None):
        if len(row) != len(layout.columns):
            raise _ragged(path, number, row, layout)
        fields += row
        if len(fields) >= _FIELDS_AT_ONCE:
            batches.append(_batch(fields, layout.columns))
            fields = []
    if fields:
        batches.append(_batch(fields, layout.columns))
    if not batches:
        raise DataError(f"{path} has a header and no rows; put data into it, or name another file")
    return pa.Table.from_batches(batches)


def _batch(fields: list[str], columns: list[str]) -> pa.RecordBatch:
    arrays = [pa.array(fields[k :: len(columns)], pa.string()) for k in range(len(columns))]
    return pa.record_batch(arrays, columns)


def _ragged(path: Path, number: int, fields: list[str], layout: Layout) -> DataError:
    found = f"{len(fields)} {'field' if len(fields) == 1 else 'fields'}"
    return DataError(
        f"{path}, line {number}: {found} where the first line has {len(layout.columns)}: "
        f"{layout.delimiter.join(fields)[:80]!r}; fields are delimited by {layout.delimiter!r} there"
    )


_MAX_WHOLE_FLOAT = 2.0**53  # beyond, neighbouring integers are the same floating-point number


@dataclass(frozen=True)
class Column:
    """Values, what a person would call them, and a function that says where a row is.

    Texts of a file are trimmed; with ``exact`` they are ids as they are.
    """

    values: pa.ChunkedArray
    called: str
    where: Callable[[int], str]
    exact: bool = False

    def ids(self, what: str = "node id") -> pa.ChunkedArray:
        """Integers or texts, none of them missing; ``what`` is what messages call them."""
        values, missing = self._plain(), (f"no {what}", "give every row one")
        if pa.types.is_floating(values.type):
            values = self._whole(values)
        if pa.types.is_integer(values.type) and values.type != pa.uint64():
            self._refuse(pc.is_null(values), *missing)
            return values.cast(pa.int64())
        texts = self._texts(values)
        self._refuse(_is_gap(texts), *missing)
        return texts

    def numbers(self, remedy: str = "") -> NDArray[np.float64]:
        """Finite numbers; ``remedy`` says what to do if there are others."""
        values = self._plain()
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = self._parsed(pc.utf8_trim_whitespace(values), remedy)
        elif not (pa.types.is_boolean(values.type) or _is_numeric(values.type)):
            raise DataError(f"{self.where(0)}: {self.called} is of type {values.type}, not a number; leave it out")
        numbers = values.cast(pa.float64(), safe=False).to_numpy()
        self._refuse_gaps(~np.isfinite(numbers), remedy)
        return numbers

    def is_empty(self) -> bool:
        """Whether there is nothing in it, as behind a delimiter at the end of each line."""
        if pa.types.is_string(self.values.type):
            return bool(pc.all(_is_gap(self.values)).as_py())
        return bool(self.values.null_count == len(self.values))

    def _plain(self) -> pa.ChunkedArray:
        kind = self.values.type
        return self.values.cast(kind.value_type) if pa.types.is_dictionary(kind) else self.values

    def _whole(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Numbers that are whole as integers: columns with gaps are often kept as floating-point numbers."""
        remedy = "node ids are integers or texts"
        broken = pc.fill_null(pc.not_equal(pc.floor(values), values), False)
        self._refuse(broken, f"{self.called} holds a number that is not whole", remedy)
        large = pc.fill_null(pc.greater_equal(pc.abs(values), _MAX_WHOLE_FLOAT), False)
        self._refuse(large, f"{self.called} holds a floating-point number too large to be exact", remedy)
        return values.cast(pa.int64())

    def _texts(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        try:
            texts = values.cast(pa.string())
            return texts if self.exact else pc.utf8_trim_whitespace(texts)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"{self.where(0)}: {self.called} is of type {values.type}; node ids are integers or texts"
            ) from None

    def _parsed(self, texts: pa.ChunkedArray, remedy: str) -> pa.ChunkedArray:
        """Numbers, or truth values, out of texts; Arrow does it fast, Python takes more and knows the row."""
        for kind in (pa.float64(), pa.bool_()):
            try:
                return texts.cast(kind)
            except pa.ArrowInvalid:
                continue
        self._refuse_gaps(_is_gap(texts), remedy)
        return pa.chunked_array([[self._number(row, text, remedy) for row, text in enumerate(texts.to_pylist())]])

    def _number(self, row: int, text: str, remedy: str) -> float:
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
            more = f" (and in {len(rows) - 1} more rows)" if len(rows) > 1 else ""
            raise DataError(f"{self.where(int(rows[0]))}: {what}{more}; {remedy}")


def _is_gap(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.equal(texts, ""), True)


def _is_numeric(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


Ids = NDArray[Any]  # integers or texts
Codes = NDArray[np.int64]

DELIMITED_SUFFIXES = frozenset({".csv", ".tsv", ".txt", ".tab", ".edges", ".edgelist", ".dat"})
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})


@dataclass(frozen=True)
class FileTable:
    """A table, the file it came from (or words for what it was in memory), and a function that says where a row is.

    ``header_guessed`` says that nobody told whether the first line is a header. With ``typed``, texts are ids as they
    are; else ``7`` may have been written for a number.
    """

    table: pa.Table
    path: Path | str
    has_header: bool
    where: Callable[[int], str]
    header_guessed: bool = False
    typed: bool = False

    @cached_property
    def columns(self) -> list[str]:
        return self.table.column_names

    def column(self, number: int) -> Column:
        return Column(self.table.column(number), self.called(number), self.where, self.typed)

    def column_number(self, name: str) -> int:
        """The place of a column; of columns without a header, also by its number, counted from 1."""
        if str(name) in self.columns:
            return self.columns.index(str(name))
        numbers = [] if self.has_header else [str(k + 1) for k in range(len(self.columns))]
        if name in numbers:
            return numbers.index(name)
        raise DataError(f"{self.path} has no column {name!r}; it has {', '.join(self.columns)}")

    def called(self, column: int) -> str:
        """A column as a person would call it."""
        return f"column {self.columns[column]!r}" if self.has_header else self.columns[column]

    def ids(self, column: int) -> Ids:
        """A column of node ids: integers if all of them are written as such, else text."""
        ids, codes = self.encoded_ids([column])
        return ids[codes[0]]

    def encoded_ids(self, columns: Sequence[int], what: str = "node id") -> tuple[Ids, list[Codes]]:
        """The distinct ids of some columns, sorted, and for every column the place of each row's id among them."""
        texts = [self.column(column).ids(what) for column in columns]
        if len({column.type for column in texts}) > 1:
            texts = [column.cast(pa.string()) for column in texts]
        chunks = [chunk for column in texts for chunk in column.chunks]
        encoded = pa.chunked_array(chunks, texts[0].type).combine_chunks().dictionary_encode()
        as_texts = self.typed and any(is_text(self.table.column(column).type) for column in columns)
        ids = _texts(encoded.dictionary) if as_texts else integers_or_texts(encoded.dictionary)
        order = np.argsort(ids, kind="stable")
        places = np.empty(len(ids), dtype=np.int64)
        places[order] = np.arange(len(ids))
        codes = places[encoded.indices.to_numpy()]
        return ids[order], np.split(codes, len(columns))

    def with_header(self, header: bool) -> "FileTable":
        """The same file, its first line read as a header or as a row."""
        return read_table(Path(self.path), header)

    def may_hold_ids(self, column: int) -> bool:
        """Whether a column holds integers or texts, or whole numbers in their place."""
        values = self.table.column(column)
        if not pa.types.is_floating(values.type):
            return bool(pa.types.is_integer(values.type)) or is_text(values.type) or pa.types.is_dictionary(values.type)
        return pc.all(pc.equal(pc.floor(values), values)).as_py() is not False


def read_table(path: Path, header: bool | None = None, known_names: frozenset[str] = frozenset()) -> FileTable:
    """A table from a delimited text or Parquet file, by its suffix."""
    check_is_file(path)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind in PARQUET_SUFFIXES:
        return FileTable(_read_parquet(path), path, True, lambda row: f"{path}, row {row + 1}")
    if kind and kind not in DELIMITED_SUFFIXES and not kind[1:].isdigit():
        known = ", ".join(sorted(DELIMITED_SUFFIXES | PARQUET_SUFFIXES))
        raise DataError(f"{path}: tables are read from {known} (and .gz), not from {kind}; convert it")
    table, layout = read_delimited(path, header, known_names)

    def where(row: int) -> str:
        return f"{path}, line {line_of_row(path, layout, row)}"

    return FileTable(table, path, layout.has_header, where, header_guessed=header is None)


def shown(value: Any) -> str:
    """An id as a person wrote it, with quotes if it is text."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def check_is_file(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; name a file")


def _read_parquet(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not a whole Parquet file ({error}); write or download it again") from error
    if not len(table):
        raise DataError(f"{path} has no rows; put data into it, or name another file")
    return table


def integers_or_texts(values: pa.Array) -> Ids:
    """Integers, if the texts say nothing else: ``007`` and ``+7`` are not 7."""
    if pa.types.is_integer(values.type):
        return values.to_numpy()
    try:
        integers = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return _texts(values)
    if pc.all(pc.equal(integers.cast(pa.string()), values)).as_py():
        return integers.to_numpy()
    return _texts(values)


def is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _texts(values: pa.Array) -> Ids:
    return values.to_numpy(zero_copy_only=False).astype(np.str_)
