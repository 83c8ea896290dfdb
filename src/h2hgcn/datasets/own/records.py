"""The records of a delimited text, one by one, each with its line: what the quicker ways have to agree with."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from h2hgcn.errors import DataError

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
