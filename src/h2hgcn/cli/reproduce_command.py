"""``h2hgcn reproduce``: the paper's tables, run and shown."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from h2hgcn.atomic import atomic_write
from h2hgcn.cli.cell_runs import run_cells
from h2hgcn.cli.graph_options import DataFolder
from h2hgcn.cli.output import print_title, say, starting, stderr, stdout
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.experiments.cells import Outcome
    from h2hgcn.experiments.reproduction import TableRun

Results = Annotated[Path, typer.Option(help="Folder of the records, one file a table.")]


def reproduce(
    table: Annotated[str | None, typer.Argument(help="table1, table2, table3, table4 or ablations.")] = None,
    cells: Annotated[str | None, typer.Option(help="Columns, joined by commas, such as cora-lp. Default: all.")] = None,
    models: Annotated[str | None, typer.Option(help="Rows, joined by commas. Default: all.")] = None,
    protocol: Annotated[str, typer.Option(help="legacy (the paper's) or clean.")] = "legacy",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes, of one thread each. Default: one a core.")] = None,
    data: DataFolder = None,
    results: Results = Path("results"),
    show: Annotated[bool, typer.Option("--show", help="Only print what there is, the paper beside it.")] = False,
    write: Annotated[Path | None, typer.Option(help="Write all tables to this Markdown file.")] = None,
) -> None:
    """Run the paper's tables. What is finished is never run again; the same command goes on.

    Examples: h2hgcn reproduce table1 --show;
    h2hgcn reproduce table4 --cells dim3 --models h2h-gcn --seeds 1 --show
    """
    if table is None and write is None and not show:
        raise DataError("say which table: table1, table2, table3, table4 or ablations; or --show, or --write FILE")
    with starting():
        from h2hgcn.experiments.results_page import results_page
        from h2hgcn.experiments.tables import TABLES
    finished = True
    if table is not None and not show:
        finished = _run(table, cells, models, protocol, seeds, jobs, data, results)
    if write is not None:
        with atomic_write(write) as file:
            file.write(results_page(results).encode())
        stderr.print(f"{write}", soft_wrap=True)
    else:
        for name in TABLES if table is None else (table,):
            _show(name, protocol, results)
    if not finished:
        say("stopped", "bold yellow", "the same command goes on")
        raise typer.Exit(1)


def _run(
    name: str, cells: str | None, models: str | None, protocol: str, seeds: int, jobs: int | None, data: Path | None,
    results: Path,
) -> bool:  # fmt: skip
    """Runs what is missing; whether all of it came to an end."""
    from h2hgcn.experiments.records import Records
    from h2hgcn.experiments.reproduction import cell_of, record_of, runs_of, unfinished
    from h2hgcn.experiments.tables import paper_table

    records = Records(results / f"{name}.jsonl")
    runs = unfinished(runs_of(paper_table(name), protocol, seeds, _names(cells), _names(models)), records)
    if not runs:
        stderr.print("all of these runs are finished")
        return True
    places = [cell_of(run, results / "unfinished", data) for run in runs]

    def finished(number: int, outcome: "Outcome") -> str:
        records.add(record_of(runs[number], outcome))
        shutil.rmtree(places[number].folder, ignore_errors=True)
        return _words(runs[number])

    return run_cells(places, len(places), jobs, finished) == len(runs)


def _words(run: "TableRun") -> str:
    return f"{run.row.name}, {run.column.id}, seed {run.seed}"


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _show(name: str, protocol: str, results: Path) -> None:
    from h2hgcn.experiments.records import Records
    from h2hgcn.experiments.results_page import table_lines
    from h2hgcn.experiments.tables import paper_table

    paper = paper_table(name)
    header, *lines = table_lines(paper, list(Records(results / f"{name}.jsonl")), protocol)
    shown = Table(*(Column(title) for title in header), box=None, header_style="bold", pad_edge=False)
    for line in lines:
        shown.add_row(*line)
    stdout.print()
    print_title(f"{paper.title}, {protocol}: ours (runs) / the paper's")
    stdout.print(shown)
