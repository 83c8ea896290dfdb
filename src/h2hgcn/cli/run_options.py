"""A run by its folder, and the graph that it is to be used on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2hgcn.cli.graph_options import open_graph
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.training import Run

RunPath = Annotated[Path, typer.Argument(help="The folder of a finished run.")]
Output = Annotated[Path | None, typer.Option(help="File to write: .parquet, .npz or .csv.")]


def open_run(path: Path, root: Path | None = None, with_collection: bool = False) -> "Run":
    """A run; ``with_collection`` also opens the named collection that it was trained on."""
    from h2hgcn.datasets import load_dataset
    from h2hgcn.datasets.graph_file import fingerprint
    from h2hgcn.training import load_run

    if not path.is_dir():
        raise DataError(f"{path} is not a folder; give the folder of a run")
    run = load_run(path)
    if run.data is None and with_collection:
        name = run.config["data"].get("dataset")
        if name is None:
            raise DataError(f"{path} does not say where its graphs came from; use load_run(path, data=...) from Python")
        run.data = load_dataset(name, root)
        if fingerprint(run.data) != run.config["data"]["fingerprint"]:
            raise DataError(f"{name} is not what {path} was trained on; its graphs differ")
    return run


def open_other_graph(run: "Run", edges: str | None, **options: Any) -> Any:
    """A graph with nodes that the run has not seen; None if none is given."""
    if edges is None:
        given = [f"--{name}" for name, value in options.items() if value not in (None, "error")]
        if given:
            raise DataError(f"{', '.join(given)}: only with --edges, for another graph than that of the run")
        return None
    return open_graph(edges, **options)


def write_table(path: Path, columns: dict[str, Any], force: bool) -> None:
    """Columns as a Parquet or CSV file, by its ending."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from h2hgcn.atomic import atomic_write

    if path.exists() and not force:
        raise DataError(f"{path} is there already; name another file, or use --force")
    table = pa.table(columns)
    if path.suffix.lower() == ".parquet":
        with atomic_write(path) as file:
            pa.parquet.write_table(table, file)
    elif path.suffix.lower() == ".csv":
        with atomic_write(path) as file:
            pa.csv.write_csv(table, file)
    else:
        raise DataError(f"{path}: predictions are written as .csv or .parquet")
