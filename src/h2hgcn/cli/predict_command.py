"""``h2hgcn predict``: probabilities for pairs of nodes, for nodes, or for graphs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from h2hgcn.cli.graph_options import DataFolder, Directed, Edges, Features, Unlinked, Weights
from h2hgcn.cli.output import print_json, stderr, stdout
from h2hgcn.cli.run_options import RunPath, open_other_graph, open_run, write_table
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.training import Run

# So many rows fit a screen; all of them go to a file or to JSON.
_SHOWN = 20


def predict(
    run: RunPath,
    file: Annotated[
        Path | None, typer.Argument(help="Pairs of nodes (lp), nodes (nc) or numbers of graphs (gc). Default: all.")
    ] = None,
    edges: Edges = None,
    features: Features = None,
    weights: Weights = None,
    directed: Directed = None,
    unlinked: Unlinked = "error",
    data: DataFolder = None,
    out: Annotated[Path | None, typer.Option(help="File to write: .csv or .parquet.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict links, classes of nodes, or classes of graphs, with probabilities.

    With --edges (and --features) the model is used on another graph, whose nodes it need not have seen.

    Example: h2hgcn predict runs/disease-lp-h2h-gcn-seed0 pairs.csv --out scores.csv
    """
    opened = open_run(run, data, with_collection=edges is None)
    other = open_other_graph(opened, edges, features=features, weights=weights, directed=directed, unlinked=unlinked)
    columns = _predict(opened, file, other)
    if out is not None:
        write_table(out, columns, force)
        stderr.print(f"{_length(columns):,} rows: {out}", soft_wrap=True)
    elif json:
        print_json([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    else:
        _print(columns)


def _predict(run: "Run", file: Path | None, other: Any) -> dict[str, list[Any]]:
    if run.task.name == "lp":
        return _links(run, file, other)
    if run.task.name == "nc":
        from h2hgcn.training.node_names import NodeNames

        graph = run.data if other is None else other
        nodes = NodeNames(graph).ids.tolist() if file is None else _ids(file)
        return _classes(run, "node", nodes, run.predict(nodes, other))
    if other is not None:
        return _classes(run, "graph", [other.name], run.predict(other))
    numbers = list(range(len(run.data))) if file is None else _graph_numbers(file, len(run.data))
    return _classes(run, "graph", numbers, run.predict([run.data[k] for k in numbers]))


def _links(run: "Run", file: Path | None, other: Any) -> dict[str, list[Any]]:
    from h2hgcn.datasets.own.edge_tables import EDGE_COLUMN_NAMES, end_columns
    from h2hgcn.datasets.own.tables import read_table

    if file is None:
        raise DataError("say which pairs: give a file with a source and a target in each row, or use h2hgcn recommend")
    table = read_table(file, known_names=EDGE_COLUMN_NAMES)
    if len(table.columns) < 2:
        raise DataError(f"{file} has one column; pairs need a source and a target")
    first, second = end_columns(table)
    sources, targets = table.ids(first).tolist(), table.ids(second).tolist()
    pairs = [[a, b] for a, b in zip(sources, targets, strict=True)]
    probabilities = run.predict(pairs, other).tolist() if pairs else []
    return {"source": sources, "target": targets, "probability": probabilities}


def _ids(file: Path) -> list[Any]:
    from h2hgcn.datasets.own.node_tables import id_column, read_node_table

    table, _ = read_node_table(file, None)
    return table.ids(id_column(table.columns)).tolist()


def _graph_numbers(file: Path, count: int) -> list[int]:
    numbers = _ids(file)
    for number in numbers:
        if not isinstance(number, int) or not 0 <= number < count:
            raise DataError(f"{file}: there is no graph {number}; they are numbered 0 to {count - 1}")
    return numbers


def _classes(run: "Run", what: str, names: list[Any], probabilities: Any) -> dict[str, list[Any]]:
    classes = run.classes or []
    columns: dict[str, list[Any]] = {
        what: names,
        "class": [classes[k] for k in probabilities.argmax(1).tolist()],
        "probability": probabilities.amax(1).tolist(),
    }
    return columns | {f"p({name})": probabilities[:, k].tolist() for k, name in enumerate(classes)}


def _length(columns: dict[str, list[Any]]) -> int:
    return len(next(iter(columns.values())))


def _print(columns: dict[str, list[Any]]) -> None:
    shown = list(columns)[:8]
    table = Table(*shown, box=None, header_style="bold", pad_edge=False)
    for row in list(zip(*(columns[name] for name in shown), strict=True))[:_SHOWN]:
        table.add_row(*(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row))
    stdout.print(table)
    if _length(columns) > _SHOWN:
        stderr.print(f"{_length(columns) - _SHOWN:,} more rows; --out FILE or --json has all")
