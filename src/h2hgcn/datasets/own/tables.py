"""Tables of edges or nodes from files, and where in the file a row is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from h2hgcn.datasets.own.delimited import line_of_row, read_delimited
from h2hgcn.errors import DataError

Ids = NDArray[Any]  # integers or texts
Codes = NDArray[np.int64]

DELIMITED_SUFFIXES = frozenset({".csv", ".tsv", ".txt", ".tab", ".edges", ".edgelist", ".dat"})
PARQUET_SUFFIXES = frozenset({".parquet", ".pq"})


@dataclass(frozen=True)
class FileTable:
    """A table, the file it came from, and a function that says where a row is."""

    table: pa.Table
    path: Path
    has_header: bool
    where: Callable[[int], str]

    @property
    def columns(self) -> list[str]:
        return self.table.column_names

    def column_number(self, name: str) -> int:
        """The place of a column; of columns without a header, also by its number, counted from 1."""
        if name in self.columns:
            return self.columns.index(name)
        if not self.has_header and name.isdigit() and 1 <= int(name) <= len(self.columns):
            return int(name) - 1
        raise DataError(f"{self.path} has no column {name!r}; it has {', '.join(self.columns)}")

    def ids(self, column: int) -> Ids:
        """A column of node ids: integers if all of them are written as such, else text."""
        ids, codes = self.encoded_ids([column])
        return ids[codes[0]]

    def encoded_ids(self, columns: Sequence[int]) -> tuple[Ids, list[Codes]]:
        """The distinct ids of some columns, sorted, and for every column the place of each row's id among them."""
        texts = [self._id_texts(column) for column in columns]
        if len({column.type for column in texts}) > 1:
            texts = [column.cast(pa.string()) for column in texts]
        chunks = [chunk for column in texts for chunk in column.chunks]
        encoded = pa.chunked_array(chunks, texts[0].type).combine_chunks().dictionary_encode()
        ids = _integers_or_texts(encoded.dictionary)
        order = np.argsort(ids, kind="stable")
        places = np.empty(len(ids), dtype=np.int64)
        places[order] = np.arange(len(ids))
        codes = places[encoded.indices.to_numpy()]
        return ids[order], np.split(codes, len(columns))

    def _id_texts(self, column: int) -> pa.ChunkedArray:
        values = self.table.column(column)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_nested(values.type):
            raise DataError(
                f"{self.path}: {self.called(column)} is of type {values.type}; node ids are integers or texts"
            )
        if pa.types.is_floating(values.type):
            values = self._whole(values, column)
        if pa.types.is_integer(values.type) and values.type != pa.uint64():
            self._refuse(pc.is_null(values), "no node id", "give every row one")
            return values.cast(pa.int64())
        values = pc.utf8_trim_whitespace(values.cast(pa.string()))
        self._refuse(pc.fill_null(pc.equal(values, ""), True), "no node id", "give every row one")
        return values

    def with_header(self) -> "FileTable":
        """The same file, its first line read as a header."""
        return read_table(self.path, True, text_columns=len(self.columns))

    def is_empty(self, column: int) -> bool:
        """Whether a column holds nothing, as behind a delimiter at the end of each line."""
        return bool(self.table.column(column).null_count == len(self.table))

    def _whole(self, values: pa.ChunkedArray, column: int) -> pa.ChunkedArray:
        """Numbers that are whole as integers: columns with gaps are often kept as floating-point numbers."""
        broken = pc.fill_null(pc.not_equal(pc.floor(values), values), False)
        self._refuse(
            broken, f"{self.called(column)} holds a number that is not whole", "node ids are integers or texts"
        )
        return values.cast(pa.int64())

    def called(self, column: int) -> str:
        """A column as a person would call it."""
        return f"column {self.columns[column]!r}" if self.has_header else self.columns[column]

    def numbers(self, column: int, remedy: str = "") -> NDArray[np.float64]:
        """A column of finite numbers; ``remedy`` says what to do if it is not."""
        values = self.table.column(column)
        if not (
            pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_boolean(values.type)
        ):
            self._refuse_text(values, column, remedy)
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.int8())
        values = values.cast(pa.float64())
        bad = pc.invert(pc.fill_null(pc.is_finite(values), False))
        self._refuse(
            bad, f"no finite number in {self.called(column)}", remedy or "fill the gap, or leave the row or column out"
        )
        return values.to_numpy()

    def _refuse_text(self, values: pa.ChunkedArray, column: int, remedy: str) -> None:
        for row, value in enumerate(values):
            try:
                float(value.as_py())
            except (TypeError, ValueError):
                advice = remedy or "leave the column out, or turn it into numbers (one column for each value)"
                raise DataError(
                    f"{self.where(row)}: {self.called(column)} holds {value.as_py()!r}, which is not a number; {advice}"
                ) from None
        raise DataError(f"{self.path}: {self.called(column)} is of type {values.type}, not a number")

    def _refuse(self, bad: pa.ChunkedArray, what: str, remedy: str) -> None:
        count = pc.sum(bad).as_py() or 0
        if count:
            row = pc.index(bad, True).as_py()
            more = f" (and in {count - 1} more rows)" if count > 1 else ""
            raise DataError(f"{self.where(row)}: {what}{more}; {remedy}")


def read_table(
    path: Path, header: bool | None = None, known_names: frozenset[str] = frozenset(), text_columns: int = 1
) -> FileTable:
    """A table from a delimited text or Parquet file, by its suffix."""
    check_is_file(path)
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind in PARQUET_SUFFIXES:
        return FileTable(_read_parquet(path), path, True, lambda row: f"{path}, row {row + 1}")
    if kind and kind not in DELIMITED_SUFFIXES and not kind[1:].isdigit():
        known = ", ".join(sorted(DELIMITED_SUFFIXES | PARQUET_SUFFIXES))
        raise DataError(f"{path}: tables are read from {known} (and .gz), not from {kind}; convert it")
    table, has_header = read_delimited(path, header, known_names, text_columns)
    return FileTable(table, path, has_header, lambda row: f"{path}, line {line_of_row(path, row, has_header)}")


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


def _integers_or_texts(values: pa.Array) -> Ids:
    """Integers, if the texts say nothing else: ``007`` and ``+7`` are not 7."""
    if pa.types.is_integer(values.type):
        return values.to_numpy()
    try:
        integers = values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values.to_numpy(zero_copy_only=False).astype(np.str_)
    if pc.all(pc.equal(integers.cast(pa.string()), values)).as_py():
        return integers.to_numpy()
    return values.to_numpy(zero_copy_only=False).astype(np.str_)
