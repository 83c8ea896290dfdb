"""Embeddings in files that other programs read.

Columns are ``id``, ``label`` (if there are any), the coordinates, ``x0`` being the time of Lorentz points and absent
from others, and whatever else was given.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from h2hgcn.embeddings.columns import (
    extra_column,
    id_column,
    ids_as_array,
    label_column,
    plain_column,
    read_labels,
    read_values,
)
from h2hgcn.embeddings.coordinates import Coordinates, Points, check_coordinates, check_points, convert
from h2hgcn.embeddings.table_files import RESERVED, format_of, is_coordinate
from h2hgcn.errors import DataError, DataWarning


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
