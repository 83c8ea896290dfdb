"""Embeddings in Parquet, NPZ and CSV files."""

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
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

FORMATS, STREAMED = (".parquet", ".npz", ".csv"), (".parquet", ".npy")

_COORDINATE = re.compile(r"x(0|[1-9][0-9]*)", re.ASCII)

# Names that mean something else than a further column, in a file or to ``np.savez``.
_RESERVED = frozenset({"id", "label", "label_missing", "points", "coordinates", "file", "allow_pickle"})

_Columns = dict[str, Any]


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
    suffix = _format_of(path)
    if path.exists() and not overwrite:
        raise DataError(f"{path} is there already; name another file, or say overwrite=True")
    wanted = _coordinates_for(coordinates, space)
    array = convert(points, wanted, space)
    columns, further = _named_columns(ids, labels, len(array)), {}
    for name, values in (extra or {}).items():
        if not isinstance(name, str) or not name or "\n" in name or name in _RESERVED or _COORDINATE.fullmatch(name):
            raise DataError(f"a further column cannot be called {name!r}; choose another name")
        further[name] = _extra_column(values, name, len(array))
        _refuse_gaps(further[name], f"values of {name!r}")
    with atomic_write(path) as file:
        if suffix == ".npz":
            np.savez(file, **_plain_arrays(columns, array, further, wanted))
        elif suffix == ".csv":
            pa_csv.write_csv(_table(columns, array, further, wanted), file)
        else:
            pq.write_table(_table(columns, array, further, wanted), file, write_page_checksum=True)
    return path


def read_embeddings(path: str | Path, coordinates: str | None = None) -> Embeddings:
    """Embeddings from a file that ``write_embeddings`` wrote, or one with the same columns.

    ``coordinates`` tells what a file cannot: a CSV file does not say of which model its ``x1``, ``x2``, ... are.
    Further columns may have gaps; those that hold neither numbers nor texts are left out with a ``DataWarning``.
    """
    path = Path(path)
    kind, read = _READERS[_format_of(path)]
    if not path.is_file():
        raise DataError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; name a file of embeddings")
    try:
        columns, points, said = read(path)
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        EOFError,
        OSError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not a whole {kind} file ({error}); write it again") from error
    if said is None and coordinates is None:
        raise DataError(
            f"{path} does not say which coordinates it holds; pass coordinates='poincare' (--coordinates), say"
        )
    try:
        known = check_coordinates(said or coordinates or "")
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    if coordinates is not None and check_coordinates(coordinates) != known:
        raise DataError(f"{path} holds {known} coordinates, not {coordinates} ones; leave `coordinates` out")
    try:
        array = check_points(points, known)
        ids = as_array(id_column(columns.pop("id"), len(array)))
        labels = _read_labels(columns.pop("label"), len(array)) if "label" in columns else None
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    extra = {}
    for name, values in columns.items():
        try:
            extra[name] = as_array(_extra_column(values, name, len(array)))
        except DataError as error:
            warnings.warn(f"{path}: the column {name!r} is left out: {error}", DataWarning, stacklevel=2)
    return Embeddings(array, ids, labels, known, extra)


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
    wanted = _coordinates_for(coordinates, space)
    plain = path.suffix.lower() == ".npy"
    columns = {} if plain else _named_columns(ids, labels, len(ids))
    first, writer = 0, None
    with atomic_write(path) as file:
        for block in blocks:
            points = convert(block, wanted, space)
            if plain:
                if not first:
                    descr = np.lib.format.dtype_to_descr(points.dtype)
                    header = {"descr": descr, "fortran_order": False, "shape": (len(ids), points.shape[1])}
                    np.lib.format.write_array_header_1_0(file, header)
                file.write(np.ascontiguousarray(points).data)
            else:
                part = {name: column.slice(first, len(points)) for name, column in columns.items()}
                table = _table(part, points, {}, wanted)
                writer = writer or pq.ParquetWriter(file, table.schema, write_page_checksum=True)
                writer.write_table(table)
            first += len(points)
        if writer is not None:
            writer.close()


def _format_of(path: Path) -> str:
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"{path}: embeddings are kept in {', '.join(FORMATS)} files; end the name with one of these")
    return path.suffix.lower()


def _coordinates_for(coordinates: str | None, space: str) -> Coordinates:
    own = "euclidean" if check_coordinates(space) == "euclidean" else "lorentz"
    return check_coordinates(coordinates or own)


def _table(columns: _Columns, points: Points, further: _Columns, coordinates: str) -> pa.Table:
    """All columns, and which coordinates they hold."""
    hyperboloid = coordinates == "lorentz"
    numbered = enumerate(points.T, 0 if hyperboloid else 1)
    named = {f"x{place}": pa.array(np.ascontiguousarray(column)) for place, column in numbered}
    metadata = {"coordinates": coordinates, "dim": str(points.shape[1] - hyperboloid)}
    return pa.table(columns | named | further, metadata=metadata)


def _plain_arrays(columns: _Columns, points: Points, further: _Columns, coordinates: str) -> dict[str, Any]:
    arrays = {name: as_array(column) for name, column in further.items()}
    arrays |= {"points": points, "coordinates": np.array(coordinates), "id": as_array(columns["id"])}
    if "label" in columns:
        arrays["label"] = as_array(pc.fill_null(columns["label"], ""))
        arrays["label_missing"] = pc.is_null(columns["label"]).to_numpy(zero_copy_only=False)
    return arrays


def _read_parquet(path: Path) -> tuple[_Columns, Points, str | None]:
    table = pq.read_table(path, page_checksum_verification=True)
    said = (table.schema.metadata or {}).get(b"coordinates")
    return _parted(table, path, said.decode(errors="replace") if said else None)


def _read_csv(path: Path) -> tuple[_Columns, Points, str | None]:
    options = pa_csv.ConvertOptions(
        column_types={"label": pa.string(), "id": pa.string()},  # ids may be 007
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
    )  # fmt: skip
    table = pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(newlines_in_values=True), convert_options=options)
    columns, points, said = _parted(table, path, None)
    with path.open("rb") as file:
        next(file, b"")
        quoted = file.read(1) == b'"'  # as texts are written and integers are not: the id '12' stays a text
    whole = pc.match_substring_regex(columns["id"], r"^(0|-?[1-9][0-9]*)$")
    if not quoted and pc.all(whole, skip_nulls=False).as_py():
        with suppress(pa.ArrowInvalid):  # too large for an integer
            columns["id"] = columns["id"].cast(pa.int64())
    return columns, points, said


def _read_npz(path: Path) -> tuple[_Columns, Points, str | None]:
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    for name in ("points", "id"):
        if name not in arrays:
            raise DataError(f"{path} has no array {name!r}; it has {', '.join(arrays) or 'none'}")
    said = str(arrays.pop("coordinates")) if "coordinates" in arrays else None
    missing = arrays.pop("label_missing", None)
    if missing is not None and "label" in arrays and missing.shape == arrays["label"].shape:
        arrays["label"] = np.where(missing.astype(bool), None, arrays["label"].astype(object))
    return arrays, arrays.pop("points"), said


_READERS = {".parquet": ("Parquet", _read_parquet), ".npz": ("NPZ", _read_npz), ".csv": ("CSV", _read_csv)}


def _parted(table: pa.Table, path: Path, said: str | None) -> tuple[_Columns, Points, str | None]:
    """The columns of a table, the points in it, and their coordinates as far as they are known."""
    names = table.column_names
    if len(set(names)) < len(names) or "id" not in names:
        raise DataError(f"{path} needs one column 'id' and no name twice; its columns are {', '.join(names)}")
    places = sorted(int(name[1:]) for name in names if _COORDINATE.fullmatch(name))
    if not places or places[0] > 1 or places != list(range(places[0], places[0] + len(places))):
        raise DataError(f"{path} needs the columns x1, x2, ... without a gap (x0 before them for Lorentz points)")
    said = said or ("lorentz" if places[0] == 0 else None)
    if (said == "lorentz") != (places[0] == 0):
        raise DataError(f"{path} says its coordinates are {said}, but begins with x{places[0]}; write it again")
    if not table.num_rows:
        raise DataError(f"{path} has no rows; write at least one point into it")
    columns = {name: table[name].combine_chunks() for name in names}
    parts = [columns.pop(f"x{place}") for place in places]
    for place, part in zip(places, parts, strict=True):
        if part.null_count or not (pa.types.is_floating(part.type) or pa.types.is_integer(part.type)):
            raise DataError(f"{path}: the column 'x{place}' holds something else than numbers, or a gap; fix it")
    return columns, np.column_stack(parts), said


def _named_columns(ids: Any, labels: Any, count: int) -> _Columns:
    columns = {"id": id_column(ids, count)}
    return columns if labels is None else columns | {"label": label_column(labels, count)}


def id_column(ids: Any, count: int) -> pa.Array:
    """Different ids as int64 or text, as they came."""
    column = _column(ids, "ids", count)
    if pa.types.is_integer(column.type):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"the ids do not fit int64 ({error}); pass them as texts") from error
    elif not pa.types.is_string(column.type):
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
    if not pa.types.is_string(column.type):
        raise DataError(f"the labels are of type {column.type}; pass texts or integers, and None for no label")
    return column


def _read_labels(values: Any, count: int) -> NDArray[np.object_]:
    """Labels as texts; integers with gaps may have become floats, of which NaN is no label."""
    column = _column(values, "labels", count)
    if pa.types.is_floating(column.type):
        with suppress(pa.ArrowInvalid):  # fractions
            column = pc.if_else(pc.is_nan(column), None, column).cast(pa.int64())
    return label_column(column, count).to_numpy(zero_copy_only=False)


def _extra_column(values: Any, name: str, count: int) -> pa.Array:
    """A further column of numbers, truth values or texts."""
    column = _column(values, f"values of {name!r}", count)
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_string, pa.types.is_null)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise DataError(f"the values of {name!r} are of type {column.type}, not numbers, truth values or texts")
    return column.cast(pa.float64()) if pa.types.is_null(column.type) else column


def as_array(column: pa.Array) -> NDArray[Any]:
    """Numbers, truth values or NumPy's texts; of values with gaps, numbers with NaN or objects with None."""
    array = column.to_numpy(zero_copy_only=False)
    return array.astype(np.str_) if pa.types.is_string(column.type) and not column.null_count else array


def _column(values: Any, what: str, count: int) -> pa.Array:
    """A column of one kind: categories become their values, dates texts, and decimals floats."""
    try:
        if not isinstance(values, pa.Array):
            # arrays as they are; of anything else a list, whose values NumPy would quietly turn into one kind
            values = pa.array(np.asarray(values) if hasattr(values, "__array__") else list(values))
        kind = values.type
        if pa.types.is_dictionary(kind):
            values = values.dictionary_decode()
        if pa.types.is_temporal(kind) or pa.types.is_large_string(values.type):
            values = values.cast(pa.string())
        column = values.cast(pa.float64()) if pa.types.is_decimal(kind) else values
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"the {what} cannot be used ({error}); pass a list of values of one kind") from error
    if len(column) != count:
        raise DataError(f"there are {len(column)} {what} for {count} points; pass one for each")
    return column


def _refuse_gaps(column: pa.Array, what: str) -> None:
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"the {what} have a gap in row {row}; fill it")
