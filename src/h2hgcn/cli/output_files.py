"""Files that commands write: never over another without --force, whole or not at all."""

from pathlib import Path
from typing import Annotated, Any

import typer

from h2hgcn.errors import DataError

Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]

_TABLES = (".csv", ".parquet")


def check_free(path: Path, force: bool) -> None:
    """Refuses to write over a file, before any work is done."""
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise DataError(f"{path} is there already; name another file, or use --force")
    if (blocked := next((folder for folder in path.parents if folder.is_file()), None)) is not None:
        raise DataError(f"{blocked} is a file, so nothing can be written below it; name another place")


def check_table(path: Path, force: bool) -> None:
    """Refuses what ``write_table`` could not write."""
    check_free(path, force)
    if path.suffix.lower() not in _TABLES:
        raise DataError(f"{path}: tables are written as {' or '.join(_TABLES)}; end the name with one of these")


def write_table(path: Path, columns: dict[str, Any]) -> None:
    """Columns as a Parquet or CSV file, by its ending."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from h2hgcn.files import atomic_write

    write = pa.parquet.write_table if path.suffix.lower() == ".parquet" else pa.csv.write_csv
    with atomic_write(path) as file:
        write(pa.table(columns), file)
