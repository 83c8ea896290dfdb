"""Tables that are read block by block, whatever their length."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from h2hgcn.datasets.own.layout import Layout, find_layout
from h2hgcn.datasets.own.single_precision import RANGE, lost_in_single, single
from h2hgcn.datasets.own.tables import PARQUET_SUFFIXES, check_is_file
from h2hgcn.errors import DataError

# Bytes of a delimited file, rows of a Parquet file.
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 24, 1 << 18

# What the layout of a delimited file is found out from.
_HEAD = 1 << 20


class TableStream:
    """The columns of a delimited or Parquet file, and its rows in blocks."""

    def __init__(self, path: Path, known_names: frozenset[str], header: bool | None = None) -> None:
        check_is_file(path)
        self.path = path
        self._layout: Layout | None = None
        if path.suffix.lower() in PARQUET_SUFFIXES:
            self.columns = list(_parquet(path).schema_arrow.names)
        else:
            self._layout = _layout_of(path, known_names, header)
            self.columns = self._layout.columns

    @property
    def has_header(self) -> bool:
        return self._layout is None or self._layout.has_header

    def column_number(self, name: str) -> int:
        if name not in self.columns:
            raise DataError(f"{self.path} has no column {name!r}; it has {', '.join(self.columns)}")
        return self.columns.index(name)

    def blocks(self) -> Iterator[pa.RecordBatch]:
        """The rows; those of delimited files as texts."""
        try:
            if self._layout is None:
                yield from _parquet(self.path).iter_batches(_BLOCK_ROWS)
            else:
                yield from _open_csv(self.path, self._layout)
        except pa.ArrowInvalid as error:
            raise DataError(f"{self.path}: {error}; each line has to be one row, without comments") from None


def single_numbers(column: Any, where: str, advice: str) -> NDArray[np.float32]:
    """A column of a block in single precision, every number of it finite."""
    try:
        values = column if not pa.types.is_string(column.type) else pc.utf8_trim_whitespace(column)
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{where}: {error}; {advice}") from None
    if lost_in_single(numbers).any():
        raise DataError(f"{where}: a number is missing, or beyond {RANGE}; mend or drop it")
    return single(numbers)


def _parquet(path: Path) -> Any:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not a whole Parquet file ({error}); write or download it again") from error


def _layout_of(path: Path, known_names: frozenset[str], header: bool | None) -> Layout:
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        head = file.read(_HEAD)
    try:
        text = head.decode("utf-8-sig", errors="strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}); convert it, or name another file") from None
    if len(head) == _HEAD:
        text = text[: text.rfind("\n") + 1]
    layout = find_layout(path, text, header, known_names)
    if layout.delimiter == " ":
        raise DataError(f"{path}: fields are delimited by blanks; use commas or tabs for files that are read in blocks")
    return layout


def _open_csv(path: Path, layout: Layout) -> Iterator[pa.RecordBatch]:
    return pa_csv.open_csv(
        path,
        read_options=pa_csv.ReadOptions(
            column_names=layout.columns, skip_rows=int(layout.has_header), block_size=_BLOCK_BYTES
        ),
        parse_options=pa_csv.ParseOptions(delimiter=layout.delimiter),
        convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(layout.columns, pa.string())),
    )
