"""Embeddings in files: Parquet, NPZ and CSV."""

import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from h2hgcn.embeddings.coordinates import Coordinates, Points, check_coordinates, check_points, convert
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.files import atomic_write


def id_column(ids: Any, count: int) -> pa.Array:
    """Different ids as int64 or text, as they came."""
    column = _column(ids, "ids", count)
    if pa.types.is_integer(column.type):
        column = _cast(column, pa.int64(), "ids")
    elif not _is_text(column.type):
        raise DataError(f"the ids are of type {column.type}; pass integers or texts")
    _refuse_gaps(column, "ids")
    counts = pc.value_counts(column)
    twice = pc.index(pc.greater(counts.field("counts"), 1), True).as_py()
    if twice >= 0:
        raise DataError(f"the id {counts.field('values')[twice].as_py()!r} is there twice; give every point its own")
    return column


def label_column(labels: Any, count: int) -> pa.Array:
    """Labels as text; None where there is none."""
    column = _column(labels, "labels", count)
    if pa.types.is_null(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.string())
    if not _is_text(column.type):
        raise DataError(f"the labels are of type {column.type}; pass texts or integers, and None for no label")
    return column


def extra_column(values: Any, name: str, count: int) -> pa.Array:
    """A further column of numbers, truth values or texts, without gaps."""
    column = _column(values, f"values of {name!r}", count)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or _is_text(kind)):
        raise DataError(f"the values of {name!r} are of type {kind}; pass numbers, truth values or texts")
    _refuse_gaps(column, f"values of {name!r}")
    return column


def plain_column(values: Any, what: str, count: int) -> pa.Array:
    """A column of a file that others wrote: categories as their values, dates as texts, decimals as numbers."""
    column = _column(values, what, count)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_temporal(column.type):
        return column.cast(pa.string())
    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column


def read_labels(values: Any, count: int) -> pa.Array:
    """Labels as text; a column of integers that has gaps may be one of floats, of which NaN is no label."""
    column = plain_column(values, "labels", count)
    if pa.types.is_floating(column.type):
        known = pc.if_else(pc.is_nan(column), None, column)
        if pc.all(pc.equal(known, pc.round(known))).as_py() is not False:
            column = _cast(known, pa.int64(), "labels")
    return label_column(column, count)


def read_values(values: Any, name: str, count: int) -> NDArray[Any]:
    """A further column; where there is no value, numbers are NaN and everything else is None."""
    column = plain_column(values, f"values of {name!r}", count)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(count, np.nan)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or _is_text(kind)):
        raise DataError(f"its values are of type {kind}, neither numbers, truth values nor texts")
    return column.to_numpy(zero_copy_only=False) if column.null_count else ids_as_array(column)


def ids_as_array(column: pa.Array) -> NDArray[Any]:
    """Integers, or NumPy's texts."""
    array = column.to_numpy(zero_copy_only=False)
    return array.astype(np.str_) if _is_text(column.type) else array


def _column(values: Any, what: str, count: int) -> pa.Array:
    try:
        column = values if isinstance(values, pa.Array) else pa.array(_sequence(values))
        column = column.cast(pa.string()) if pa.types.is_large_string(column.type) else column
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"the {what} cannot be used ({error}); pass a list of values of one kind") from error
    if len(column) != count:
        raise DataError(f"there are {len(column)} {what} for {count} points; pass one for each")
    return column


def _sequence(values: Any) -> Any:
    """Arrays as they are; of anything else a list, whose values NumPy would quietly turn into one kind."""
    return np.asarray(values) if hasattr(values, "__array__") else list(values)


def _cast(column: pa.Array, kind: pa.DataType, what: str) -> pa.Array:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise DataError(f"the {what} do not fit {kind} ({error}); pass them as texts") from error


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind))


def _refuse_gaps(column: pa.Array, what: str) -> None:
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"the {what} have a gap in row {row}; fill it")


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
        pq.write_table(parquet_table(columns, points, further, coordinates), file, write_page_checksum=True)


def parquet_table(columns: pa.Table, points: Points, further: pa.Table, coordinates: str) -> pa.Table:
    """All columns, and which coordinates they hold."""
    dim = points.shape[1] - (coordinates == "lorentz")
    table = _joined(columns, points, further, coordinates)
    return table.replace_schema_metadata({"coordinates": coordinates, "dim": str(dim)})


def _read_parquet(path: Path) -> Read:
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a whole Parquet file ({error}); write it again") from error
    said = (table.schema.metadata or {}).get(b"coordinates")
    return _parted(table, path, said.decode(errors="replace") if said else None)


def _write_csv(path: Path, columns: pa.Table, points: Points, further: pa.Table, coordinates: str) -> None:
    with atomic_write(path) as file:
        pa_csv.write_csv(_joined(columns, points, further, coordinates), file)


def _read_csv(path: Path) -> Read:
    texts = {"label": pa.string(), "id": pa.string()}  # ids may be 007
    gaps = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    options = pa_csv.ConvertOptions(column_types=texts, **gaps)
    lines = pa_csv.ParseOptions(newlines_in_values=True)
    try:
        table = pa_csv.read_csv(path, parse_options=lines, convert_options=options)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a whole CSV file ({error}); write it again") from error
    columns, points, said = _parted(table, path, None)
    whole = pc.match_substring_regex(columns["id"], r"^(0|-?[1-9][0-9]{0,18})$")
    if pc.all(whole, skip_nulls=False).as_py() and not _ids_are_quoted(path):
        columns["id"] = _cast(columns["id"], pa.int64(), "ids")
    return columns, points, said


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
        raise DataError(f"{path}: the column {name!r} holds something else than numbers, or a gap; fix it")
    return column.to_numpy()


FORMATS = {
    ".parquet": Format(_write_parquet, _read_parquet),
    ".npz": Format(_write_npz, _read_npz),
    ".csv": Format(_write_csv, _read_csv),
}


@dataclass(frozen=True)
class Embeddings:
    """Points as a file has them: ``coordinates`` says which they are, and is the ``space`` to name elsewhere."""

    points: Points
    ids: NDArray[Any]
    labels: NDArray[np.object_] | None
    coordinates: Coordinates
    extra: dict[str, NDArray[Any]] = field(default_factory=dict)


def write_embeddings(
    path: str | Path,
    points: Any,
    ids: Any,
    labels: Any = None,
    coordinates: str | None = None,
    extra: Mapping[str, Any] | None = None,
    *,
    space: str = "lorentz",
    overwrite: bool = False,
) -> Path:
    """Writes points of ``space`` to a Parquet, NPZ or CSV file, by its ending.

    Without ``coordinates``, hyperbolic points are written in Lorentz coordinates and Euclidean ones as they are.
    ``extra`` holds further columns by name. A file that is there is replaced only if ``overwrite`` says so.
    """
    path = Path(path)
    file_format = format_of(path)
    if path.exists() and not overwrite:
        raise DataError(f"{path} is there already; name another file, or say overwrite=True")
    own = "euclidean" if check_coordinates(space) == "euclidean" else "lorentz"
    wanted = check_coordinates(coordinates or own)
    array = convert(points, wanted, space)
    columns = {"id": id_column(ids, len(array))}
    if labels is not None:
        columns["label"] = label_column(labels, len(array))
    further = {name: extra_column(values, name, len(array)) for name, values in _checked_names(extra or {}).items()}
    file_format.write(path, pa.table(columns), array, pa.table(further), wanted)
    return path


def read_embeddings(path: str | Path, coordinates: str | None = None) -> Embeddings:
    """Embeddings from a file that ``write_embeddings`` wrote, or one with the same columns.

    ``coordinates`` tells what a file cannot: a CSV file does not say of which model its ``x1``, ``x2``, ... are.
    Further columns may have gaps; those that hold neither numbers nor texts are left out with a ``DataWarning``.
    """
    path = Path(path)
    file_format = format_of(path)
    if not path.is_file():
        raise DataError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; name a file of embeddings")
    columns, points, said = file_format.read(path)
    kind = _agreed(path, said, coordinates)
    try:
        array = check_points(points, kind)
        ids = ids_as_array(id_column(plain_column(columns.pop("id"), "ids", len(array)), len(array)))
        labels = read_labels(columns.pop("label"), len(array)) if "label" in columns else None
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    extra = _further(path, columns, len(array))
    return Embeddings(array, ids, None if labels is None else labels.to_numpy(zero_copy_only=False), kind, extra)


def _further(path: Path, columns: Mapping[str, Any], count: int) -> dict[str, NDArray[Any]]:
    found = {}
    for name, values in columns.items():
        try:
            found[name] = read_values(values, name, count)
        except DataError as error:
            warnings.warn(f"{path}: the column {name!r} is left out: {error}", DataWarning, stacklevel=3)
    return found


def _checked_names(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in extra:
        if not isinstance(name, str) or not name or "\n" in name or name in RESERVED or is_coordinate(name):
            raise DataError(f"a further column cannot be called {name!r}; choose another name")
    return extra


def _agreed(path: Path, said: str | None, asked: str | None) -> Coordinates:
    """The coordinates that the file and the caller tell, if one does and the other does not contradict."""
    if said is None and asked is None:
        raise DataError(
            f"{path} does not say which coordinates it holds; pass coordinates='poincare' (--coordinates), say"
        )
    known = check_coordinates(said or asked or "")
    if asked is not None and check_coordinates(asked) != known:
        raise DataError(f"{path} holds {known} coordinates, not {asked} ones; leave `coordinates` out")
    return known


STREAMED = (".parquet", ".npy")


def stream_embeddings(
    path: Path,
    blocks: Iterable[Points],
    ids: Any,
    labels: Any = None,
    coordinates: str | None = None,
    *,
    space: str = "lorentz",
) -> None:
    """Writes what ``write_embeddings`` writes to a Parquet file, or points alone to an NPY file, by its ending.

    ``blocks`` are the points of all ``ids``, in their order.
    """
    if path.suffix.lower() not in STREAMED:
        raise DataError(f"{path}: points of any number are kept in {' or '.join(STREAMED)} files; end the name so")
    wanted = check_coordinates(coordinates or ("euclidean" if check_coordinates(space) == "euclidean" else "lorentz"))
    converted = (convert(block, wanted, space) for block in blocks)
    if path.suffix.lower() == ".npy":
        _write_npy(path, converted, len(ids))
        return
    columns = {"id": id_column(ids, len(ids))}
    if labels is not None:
        columns["label"] = label_column(labels, len(ids))
    _stream_parquet(path, converted, pa.table(columns), wanted)


def _write_npy(path: Path, blocks: Iterable[Points], count: int) -> None:
    with atomic_write(path) as file:
        for number, block in enumerate(blocks):
            if not number:
                descr = np.lib.format.dtype_to_descr(block.dtype)
                header = {"descr": descr, "fortran_order": False, "shape": (count, block.shape[1])}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(np.ascontiguousarray(block).data)


def _stream_parquet(path: Path, blocks: Iterable[Points], columns: pa.Table, coordinates: str) -> None:
    first, writer = 0, None
    with atomic_write(path) as file:
        for block in blocks:
            table = parquet_table(columns.slice(first, len(block)), block, pa.table({}), coordinates)
            writer = writer or pq.ParquetWriter(file, table.schema, write_page_checksum=True)
            writer.write_table(table)
            first += len(block)
        if writer is not None:
            writer.close()
