"""Tables of edges or nodes from files, and where in the file a row is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from h2hgcn.datasets.own.columns import Column
from h2hgcn.datasets.own.delimited import line_of_row, read_delimited
from h2hgcn.errors import DataError

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
