"""CSV, TSV and other delimited text, with or without a header, comments and gzip, as Arrow tables of text."""

import io
import re
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from h2hgcn.datasets.own.layout import Layout, find_layout
from h2hgcn.datasets.own.records import BLANKS, records
from h2hgcn.datasets.own.text_files import read_text
from h2hgcn.errors import DataError

_FIELDS_AT_ONCE = 1 << 18
_SKIPPED = re.compile(r"\n[ \t]*(?:#[^\n]*)?(?=\n)")


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
    lines = _SKIPPED.sub("", f"\n{text}\n").strip("\n")
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
