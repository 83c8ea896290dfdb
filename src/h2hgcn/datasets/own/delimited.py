"""CSV, TSV and other delimited text, with or without a header, comments and gzip, as Arrow tables."""

import csv
import gzip
import io
import re
import zlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from h2hgcn.errors import DataError

_DELIMITERS = ("\t", ",", ";", "|", " ")
_SNIFFED_LINES = 50
_COMMENT = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)
_BLANKS = re.compile(rb"[ \t]+")


@dataclass(frozen=True)
class Layout:
    """What the first lines of a file tell: the delimiter, the first row, and whether that is a header."""

    delimiter: str
    first_row: list[str]
    has_header: bool

    @property
    def columns(self) -> list[str]:
        if self.has_header:
            return [name.strip() for name in self.first_row]
        return [f"column {number}" for number in range(1, len(self.first_row) + 1)]


def read_delimited(
    path: Path, header: bool | None, known_names: frozenset[str], text_columns: int
) -> tuple[pa.Table, bool]:
    """The rows of a file as a table, and whether it has a header.

    ``header=None`` finds out: there is one if the first line has one of the ``known_names``, or words where the lines
    below have numbers. The first ``text_columns`` columns stay text, so that ids come back as they were written.
    """
    content = _read_bytes(path)
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise DataError(
            f"{path}, line {line}: there is a NUL byte, so this is no text; convert it, or name another file"
        )
    layout = _layout(path, content, header, known_names)
    if len(set(layout.columns)) < len(layout.columns):
        raise DataError(f"{path}: the header names a column twice: {', '.join(layout.columns)}; rename one")
    body = _COMMENT.sub(b"", content) if b"#" in content else content
    if layout.delimiter == " ":
        body = b"\n".join(_BLANKS.sub(b" ", line.strip()) for line in body.splitlines())
    if layout.has_header:
        body = _without_first_line(body)
    types = {name: pa.string() for name in layout.columns[:text_columns]}
    try:
        table = pa_csv.read_csv(
            io.BytesIO(body),
            read_options=pa_csv.ReadOptions(column_names=layout.columns),
            parse_options=pa_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=b'"' in body),
            convert_options=pa_csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise _diagnosis(path, content, layout, error) from None
    if not len(table):
        raise DataError(f"{path} has no rows; put data into it, or name another file")
    return table, layout.has_header


def line_of_row(path: Path, row: int, has_header: bool) -> int:
    """The line of a file, counted from 1, that holds row ``row``, counted from 0."""
    lines = (number for number, _ in _data_lines(_read_bytes(path).decode("utf-8", "replace")))
    wanted = row + has_header
    return next(number for count, number in enumerate(lines) if count == wanted)


def _read_bytes(path: Path) -> bytes:
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}); copy or download it again") from error


def _layout(path: Path, content: bytes, header: bool | None, known_names: frozenset[str]) -> Layout:
    head = content[: 1 << 16]
    if len(head) < len(content):
        head = head[: head.rfind(b"\n") + 1] or content
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: this is not UTF-8 text ({error.reason}); save it as UTF-8") from None
    lines = [line for _, line in _data_lines(text)]
    if not lines:
        raise DataError(f"{path} is empty; put data into it, or name another file")
    delimiter = _sniff(lines)
    rows = _rows(lines, delimiter)
    if header is None:
        header = _looks_like_header(rows, known_names)
    return Layout(delimiter, rows[0], header)


def _data_lines(text: str) -> list[tuple[int, str]]:
    """Lines that are neither empty nor comments, with their numbers."""
    numbered = enumerate(text.splitlines(), start=1)
    return [(number, line) for number, line in numbered if line.strip() and not line.lstrip().startswith("#")]


def _sniff(lines: list[str]) -> str:
    """The delimiter that cuts all lines into the same number of fields, else the first that cuts the first line."""
    counts = {delimiter: [len(row) for row in _rows(lines, delimiter)] for delimiter in _DELIMITERS}
    for delimiter, numbers in counts.items():
        if numbers[0] > 1 and len(set(numbers)) == 1:
            return delimiter
    return next((delimiter for delimiter, numbers in counts.items() if numbers[0] > 1), ",")


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    """The first rows, of which one with quotes may take several lines."""
    if delimiter == " ":
        return [line.split() for line in lines[:_SNIFFED_LINES]]
    return list(islice(csv.reader((line + "\n" for line in lines), delimiter=delimiter), _SNIFFED_LINES))


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    return next(csv.reader([line], delimiter=delimiter))


def _looks_like_header(rows: list[list[str]], known_names: frozenset[str]) -> bool:
    if any(name.strip().lower() in known_names for name in rows[0]):
        return True
    below = [row for row in rows[1:] if len(row) == len(rows[0])]
    numeric = [k for k in range(len(rows[0])) if below and all(_is_number(row[k]) for row in below)]
    return any(not _is_number(rows[0][k]) for k in numeric)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _without_first_line(body: bytes) -> bytes:
    """Everything after the first line that is not empty."""
    body = body.lstrip()
    end = body.find(b"\n")
    return body[end + 1 :] if end >= 0 else b""


def _diagnosis(path: Path, content: bytes, layout: Layout, error: Exception) -> DataError:
    """What is wrong, and in which line."""
    expected = len(layout.first_row)
    try:
        lines = _data_lines(content.decode("utf-8-sig"))
    except UnicodeDecodeError as undecodable:
        number = content[: undecodable.start].count(b"\n") + 1
        return DataError(f"{path}, line {number}: this is not UTF-8 text ({undecodable.reason}); save it as UTF-8")
    if len(lines) <= layout.has_header:
        return DataError(f"{path} has a header and no rows; put data into it, or name another file")
    for number, line in lines:
        found = len(_fields(line, layout.delimiter))
        if found != expected:
            return DataError(
                f"{path}, line {number}: {found} {'field' if found == 1 else 'fields'} where the first line has "
                f"{expected}: {line[:80]!r}; fields are delimited by {layout.delimiter!r} there"
            )
    return DataError(f"{path} cannot be read as a table: {error}")
