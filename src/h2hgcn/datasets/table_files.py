"""Tables in delimited text and Parquet files, and the limits on what a file may claim."""

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from h2hgcn.datasets.tables import WITH_COMMA, Table, column_names
from h2hgcn.errors import DataError

DELIMITED_SUFFIXES = frozenset({".csv", ".tsv", ".txt", ".tab", ".edges", ".edgelist", ".dat"})
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})
TABLE_SUFFIXES = DELIMITED_SUFFIXES | PARQUET_SUFFIXES

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

Record = tuple[int, list[str]]  # the number of its first line, and its fields


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


def open_table(path: Path, text: TextFormat, known_names: frozenset[str] = frozenset(), *, keep: bool = True) -> Table:
    """The table of a delimited text or Parquet file; ``known_names`` are names of columns that make a header."""
    check_is_file(path)
    kind = file_kind(path)
    if kind in PARQUET_SUFFIXES:
        return _open_parquet(path, keep)
    if kind and kind not in DELIMITED_SUFFIXES and not kind[1:].isdigit():
        known = ", ".join(sorted(TABLE_SUFFIXES))
        raise DataError(f"{path}: tables are read from {known} (and .gz), not from {kind}; convert it")
    reader = _TextReader(path, text, known_names)
    return Table(
        path, reader.columns, reader.read, reader.where, reader.notes, has_header=reader.has_header,
        header_guessed=text.header is None, keep=keep,
    )  # fmt: skip


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


class _TextReader:
    """Reads a delimited text file, all columns as texts, so that ids are what was written."""

    def __init__(self, path: Path, text: TextFormat, known_names: frozenset[str]) -> None:
        self._path = path
        self._comment = "#" if text.comment is None else text.comment
        comment = rf"{re.escape(self._comment)}[^\n]*" if self._comment else r"\b\B"  # which matches nothing
        self._skipped = re.compile(rf"(?m)^[ \t]*({comment})?(?:\n|\Z)")
        self._comments = 0
        self.delimiter = self._guess_delimiter() if text.delimiter is None else text.delimiter
        head = self._head(self.delimiter)
        if not head:
            hint = f"has only lines that begin with {self._comment!r}" if self._comments else "is empty"
            advice = "; pass comment='none' (--comment none) if they are data" if self._comments else ""
            raise DataError(f"{path} {hint}{advice or '; put data into it, or name another file'}")
        check_limit(len(head[0]), _COLUMNS, f"{path} has too many columns")
        self.has_header = _looks_like_header(head, known_names) if text.header is None else text.header
        names = head[0] if self.has_header else [f"column {number + 1}" for number in range(len(head[0]))]
        self.columns = column_names(names, path)

    def notes(self) -> list[str]:
        """How many lines were left out as comments."""
        if not self._comments:
            return []
        lines = "1 line begins" if self._comments == 1 else f"{self._comments:,} lines begin"
        return [
            f"{lines} with {self._comment!r} in {self._path.name}, so left out as comments; pass comment='none' "
            "(--comment none) if they are data"
        ]

    def read(self) -> Iterator[pa.RecordBatch]:
        skip, width = int(self.has_header), len(self.columns)
        for rows in self._blocks(BLOCK_BYTES, self.delimiter, self._parse_at_once):
            if isinstance(rows, pa.RecordBatch):
                batch = rows
            else:
                for number, fields in rows:
                    if len(fields) != width:
                        raise self._ragged(number, fields)
                values = [field for _, fields in rows for field in fields]  # one list spares the garbage collector
                batch = pa.record_batch([pa.array(values[k::width], pa.string()) for k in range(width)], self.columns)
            yield batch.slice(skip)
            skip = 0 if len(batch) else skip

    def where(self, row: int) -> str:
        row += self.has_header
        for records in self._blocks(_HEAD_BYTES, self.delimiter):
            if row < len(records):
                return f"{self._path}, line {records[row][0]}"
            row -= len(records)
        return str(self._path)

    def _blocks(self, size: int, delimiter: str, parse: Callable[[str], Any] = lambda _: None) -> Iterator[Any]:
        """What ``parse`` makes of each block of the file; where that is None, or a quote is open, its records."""
        cut = _record_cutter(delimiter)
        line, rest, self._comments = 1, "", 0
        for number, text in text_blocks(self._path, size):
            rows = None if rest else parse(text)
            if rows is None:
                line, text = (line, rest + text) if rest else (number, text)
                rows, line, rest = self._records(cut, line, text)
            yield rows
        if rest:
            raise self._open_quote(line)

    def _records(
        self, cut: Callable[[str, int], tuple[list[str], int] | None], line: int, text: str
    ) -> tuple[list[Record], int, str]:
        """The records of a text that begins with this line, and the line and text from where a quote stays open.

        Blank lines and comments between records are left out.
        """
        records, start = list[Record](), 0
        while start < len(text):
            skipped = self._skipped.match(text, start)
            found = None if skipped else cut(text, start)
            end = skipped.end() if skipped else found[1] if found else len(text)
            lines = text.count("\n", start, end)
            if lines > 1 and end - start > _LONGEST_RECORD:
                raise self._open_quote(line)
            if skipped:
                self._comments += skipped[1] is not None
            elif found:
                records.append((line, found[0]))
            else:
                return records, line, text[start:]
            start, line = end, line + lines
        return records, line, ""

    def _parse_at_once(self, text: str) -> pa.RecordBatch | None:
        """By Arrow, which is many times faster. None where a record takes several lines, or Arrow fails."""
        lines = text if text.endswith("\n") else f"{text}\n"
        kept = self._skipped.sub("", lines)
        if not kept:
            return None
        if '"' in kept:
            # behind blanks, Arrow does not take it for a quote; and one that is odd may be open at the end of its line
            late = re.search(rf'(?m)(?:^|{re.escape(self.delimiter)})[ \t]+"', kept) is not None
            if late or self.delimiter == " " or any(line.count('"') % 2 for line in kept.split("\n")):
                return None
        if self.delimiter == " ":
            kept = "\n".join(_BLANKS.sub(" ", line.strip(" \t")) for line in kept.split("\n"))
        content = kept.encode()
        try:
            table = pa_csv.read_csv(
                BytesIO(content),
                pa_csv.ReadOptions(column_names=self.columns, block_size=len(content) + 1),
                pa_csv.ParseOptions(delimiter=self.delimiter),
                pa_csv.ConvertOptions(column_types=dict.fromkeys(self.columns, pa.string())),
            )
        except pa.ArrowInvalid:
            return None
        if len(table) != kept.count("\n"):
            return None
        if len(kept) < len(lines):
            self._comments += sum(map(bool, self._skipped.findall(lines)))
        return table.combine_chunks().to_batches()[0]

    def _head(self, delimiter: str) -> list[list[str]]:
        rows: list[list[str]] = []
        for records in self._blocks(_HEAD_BYTES, delimiter):
            rows += [fields for _, fields in records]
            if len(rows) >= _HEAD_RECORDS:
                break
        return rows[:_HEAD_RECORDS]

    def _guess_delimiter(self) -> str:
        """The delimiter that cuts all records into the same number of fields, else the first that cuts the first one.

        What stands in quotes does not count, and a comma may be a decimal one between semicolons.
        """
        _, head = next(text_blocks(self._path, _HEAD_BYTES), (1, ""))
        bare = _QUOTED_FIELD.sub('"', self._skipped.sub("", head))
        possible = [delimiter for delimiter in _DELIMITERS if delimiter in bare] or list(_DELIMITERS)
        rows = {delimiter: self._head(delimiter) for delimiter in possible}
        cutting = [delimiter for delimiter in possible if rows[delimiter] and len(rows[delimiter][0]) > 1]
        even = [delimiter for delimiter in cutting if len({len(row) for row in rows[delimiter]}) == 1]
        if "," in even and even[0] in ";|":
            held = [field for row in rows[even[0]] for field in row if "," in field]
            if not all(WITH_COMMA.fullmatch(field) for field in held):  # one of the two stands inside fields
                return min((even[0], ","), key=lambda delimiter: len(rows[delimiter][0]))
        return next(iter(even or cutting), ",")

    def _ragged(self, number: int, fields: list[str]) -> DataError:
        found = f"{len(fields)} {'field' if len(fields) == 1 else 'fields'}"
        return DataError(
            f"{self._path}, line {number}: {found} where the first line has {len(self.columns)}: "
            f"{self.delimiter.join(fields)[:80]!r}; fields are delimited by {self.delimiter!r} there (change it with "
            "delimiter=, --delimiter)"
        )

    def _open_quote(self, line: int) -> DataError:
        return DataError(f"{self._path}, line {line}: a quote is opened and not closed; close it, or take it out")


def _record_cutter(delimiter: str) -> Callable[[str, int], tuple[list[str], int] | None]:
    """A function that cuts the record at a place of a text into fields, and says where the next one begins; None if a
    quote stays open. Quotes count at the start of a field only, after blanks, and may hold line ends.
    """
    is_blank = delimiter == " "
    plain = r"[^ \t\n]*" if is_blank else rf"[^{re.escape(delimiter)}\n]*"
    blanks = " *" if delimiter == "\t" else r"[ \t]*"
    bare = rf"[ \t]*({plain})" if is_blank else f"({plain})"
    field = re.compile(
        rf'(?:{blanks}"([^"]*+(?:""[^"]*+)*+)"({plain})|(?!{blanks}"){bare})'
        + (r"(?:[ \t]*(?:\n|\Z)|([ \t]+))" if is_blank else rf"(?:\n|\Z|({re.escape(delimiter)}))")
    )

    def cut(text: str, start: int) -> tuple[list[str], int] | None:
        end = text.find("\n", start)
        record = text[start : len(text) if end < 0 else end]
        if '"' not in record:
            fields = _BLANKS.split(record.strip(" \t")) if is_blank else record.split(delimiter)
            return fields, start + len(record) + (end >= 0)
        fields = list[str]()
        while match := field.match(text, start):
            quoted, behind, unquoted, has_more = match.groups()
            fields.append(unquoted if quoted is None else quoted.replace('""', '"') + behind)
            start = match.end()
            if not has_more:
                return fields, start
        return None

    return cut


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
            raise DataError(f"{path}, line {number}: there is a NUL byte, so this is not UTF-8 text; save it as such")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            number = line + content[: error.start].count(b"\n")
            raise DataError(f"{path}, line {number}: this is not UTF-8 text; save it as UTF-8") from None
        yield line, text.removeprefix("\ufeff") if line == 1 else text
        line += text.count("\n")


def _whole_lines(path: Path, size: int) -> Iterator[bytes]:
    rest = b""
    for chunk in read_chunks(path, size):
        check_limit(len(rest), _LINE_BYTES, f"{path} has too long a line, in bytes")
        content = rest + chunk
        # a carriage return at the very end may belong to the line feed that follows
        end = max(content.rfind(b"\n"), content.rfind(b"\r", 0, len(content) - 1)) + 1
        rest = content[end:]
        if end:
            yield content[:end]
    if rest:
        yield rest


def read_chunks(path: Path, size: int) -> Iterator[bytes]:
    """The content of a file, unpacked if its name ends with ``.gz``."""
    total = 0
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            while chunk := file.read(size):
                total += len(chunk)
                check_unpacked(path, total)
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is not a whole gzip file ({error}); copy or download it again") from error


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


def check_is_file(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; name a file")


def file_kind(path: Path) -> str:
    """The ending of a file's name in lower case, ``.gz`` aside."""
    return next((suffix for suffix in reversed([s.lower() for s in path.suffixes]) if suffix != ".gz"), "")
