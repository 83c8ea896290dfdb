"""The file formats of embeddings: Parquet, NPZ and CSV, each with one way in and one way out."""

import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from h2hgcn.embeddings.columns import ids_as_array
from h2hgcn.embeddings.coordinates import Points
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

# Names that mean something else than a further column, in a file or to ``np.savez``.
RESERVED = frozenset({"id", "label", "label_missing", "points", "coordinates", "file", "allow_pickle"})

Read = tuple[dict[str, Any], Points, str | None]


@dataclass(frozen=True)
class Format:
    """``write(path, columns, points, further, coordinates)``; ``read(path)`` gives columns, points, coordinates."""

    write: Callable[[Path, pa.Table, Points, pa.Table, str], None]
    read: Callable[[Path], Read]


def format_of(path: Path) -> Format:
    """The format that a file's ending says."""
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"{path}: embeddings are kept in {', '.join(FORMATS)} files; end the name with one of these")
    return FORMATS[path.suffix.lower()]


def is_coordinate(name: str) -> bool:
    """Whether a column is called as coordinates are: ``x0``, ``x1``, ..."""
    return re.fullmatch(r"x(0|[1-9][0-9]*)", name, re.ASCII) is not None


def _write_parquet(path: Path, columns: pa.Table, points: Points, further: pa.Table, coordinates: str) -> None:
    with atomic_write(path) as file:
        pq.write_table(parquet_table(columns, points, further, coordinates), file)


def parquet_table(columns: pa.Table, points: Points, further: pa.Table, coordinates: str) -> pa.Table:
    """All columns, and which coordinates they hold."""
    dim = points.shape[1] - (coordinates == "lorentz")
    table = _joined(columns, points, further, coordinates)
    return table.replace_schema_metadata({"coordinates": coordinates, "dim": str(dim)})


def _read_parquet(path: Path) -> Read:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a whole Parquet file ({error}); write it again") from error
    said = (table.schema.metadata or {}).get(b"coordinates")
    return _parted(table, path, said.decode(errors="replace") if said else None)


def _write_csv(path: Path, columns: pa.Table, points: Points, further: pa.Table, coordinates: str) -> None:
    with atomic_write(path) as file:
        pa_csv.write_csv(_joined(columns, points, further, coordinates), file)


def _read_csv(path: Path) -> Read:
    texts = {"label": pa.string()} | ({"id": pa.string()} if _ids_are_quoted(path) else {})
    gaps = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    options = pa_csv.ConvertOptions(column_types=texts, **gaps)
    lines = pa_csv.ParseOptions(newlines_in_values=True)
    try:
        table = pa_csv.read_csv(path, parse_options=lines, convert_options=options)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a whole CSV file ({error}); write it again") from error
    return _parted(table, path, None)


def _ids_are_quoted(path: Path) -> bool:
    """Texts are written in quotes and integers are not, so that the id '12' stays a text."""
    with path.open("rb") as file:
        next(file, b"")
        return file.read(1) == b'"'


def _write_npz(path: Path, columns: pa.Table, points: Points, further: pa.Table, coordinates: str) -> None:
    arrays: dict[str, Any] = {name: ids_as_array(further[name].combine_chunks()) for name in further.column_names}
    arrays |= {"points": points, "coordinates": np.array(coordinates)}
    arrays["id"] = ids_as_array(columns["id"].combine_chunks())
    if "label" in columns.column_names:
        labels = columns["label"].combine_chunks()
        arrays["label"] = ids_as_array(pc.fill_null(labels, ""))
        arrays["label_missing"] = pc.is_null(labels).to_numpy(zero_copy_only=False)
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def _read_npz(path: Path) -> Read:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not a whole NPZ file of plain arrays ({error}); write it again") from error
    for name in ("points", "id"):
        if name not in arrays:
            raise DataError(f"{path} has no array {name!r}; it has {', '.join(arrays) or 'none'}")
    said = str(arrays.pop("coordinates")) if "coordinates" in arrays else None
    missing = arrays.pop("label_missing", None)
    if missing is not None and "label" in arrays and missing.shape == arrays["label"].shape:
        arrays["label"] = np.where(missing.astype(bool), None, arrays["label"].astype(object))
    return arrays, arrays.pop("points"), said


def _joined(columns: pa.Table, points: Points, further: pa.Table, coordinates: str) -> pa.Table:
    first = 0 if coordinates == "lorentz" else 1
    named = {f"x{first + place}": pa.array(np.ascontiguousarray(column)) for place, column in enumerate(points.T)}
    parts = {name: table[name] for table in (columns, further) for name in table.column_names}
    return pa.table({name: parts.pop(name) for name in columns.column_names} | named | parts)


def _parted(table: pa.Table, path: Path, said: str | None) -> Read:
    names = table.column_names
    if len(set(names)) < len(names) or "id" not in names:
        raise DataError(f"{path} needs one column 'id' and no name twice; its columns are {', '.join(names)}")
    places = sorted(int(name[1:]) for name in names if is_coordinate(name))
    if not places or places[0] > 1 or places != list(range(places[0], places[0] + len(places))):
        raise DataError(f"{path} needs the columns x1, x2, ... without a gap (x0 before them for Lorentz points)")
    said = said or ("lorentz" if places[0] == 0 else None)
    if (said == "lorentz") != (places[0] == 0):
        raise DataError(f"{path} says its coordinates are {said}, but begins with x{places[0]}; write it again")
    if not table.num_rows:
        raise DataError(f"{path} has no rows; write at least one point into it")
    points = np.column_stack([_numbers(table, f"x{place}", path) for place in places])
    others = [name for name in names if not is_coordinate(name)]
    return {name: table[name].combine_chunks() for name in others}, points, said


def _numbers(table: pa.Table, name: str, path: Path) -> Any:
    column = table[name]
    if column.null_count or not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise DataError(f"{path}: the column {name!r} holds something else than numbers, or a gap; mend it")
    return column.to_numpy()


FORMATS = {
    ".parquet": Format(_write_parquet, _read_parquet),
    ".npz": Format(_write_npz, _read_npz),
    ".csv": Format(_write_csv, _read_csv),
}
