"""How a delimited text is laid out, as far as its first records tell."""

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from h2hgcn.datasets.own.records import LongFieldError, records
from h2hgcn.errors import DataError

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
