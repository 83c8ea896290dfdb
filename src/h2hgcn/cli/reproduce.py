"""``h2hgcn reproduce``: the paper's tables, run and shown."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Column

from h2hgcn.cli import console
from h2hgcn.cli import options as flags
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

if TYPE_CHECKING:
    from h2hgcn.experiments.reproduce import TableRun
    from h2hgcn.experiments.runner import Cell, Outcome, Records

# For how long runs that another process trains are waited for, once nothing else is left: it may have been killed.
_WAIT_SECONDS = 30.0

# Of tables that are shown: the longest names of rows that stay on one line, and blanks between columns.
_NAMES, _BETWEEN = 24, 2


def reproduce(
    table: Annotated[
        Literal["table1", "table2", "table3", "table4", "ablations"] | None,
        typer.Argument(help="A table of the paper, or our ablations."),
    ] = None,
    cells: Annotated[str | None, typer.Option(help="Columns, joined by commas, such as cora-lp. Default: all.")] = None,
    models: Annotated[str | None, typer.Option(help="Rows, joined by commas. Default: all.")] = None,
    protocol: Annotated[Literal["legacy", "clean"], typer.Option(help="legacy is the paper's.")] = "legacy",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    jobs: flags.Jobs = None,
    data: flags.DataFolder = None,
    results: Annotated[Path, typer.Option(help="Folder of the records, one file a table.")] = Path("results"),
    show: Annotated[bool, typer.Option("--show", help="Only print what there is of these cells and models.")] = False,
    write: Annotated[Path | None, typer.Option(help="Write all tables to this Markdown file.")] = None,
) -> None:
    """Run the paper's tables. What is finished is never run again; run the same command to resume.

    Examples: h2hgcn reproduce table1 --show;
    h2hgcn reproduce table4 --cells dim3 --models h2h-gcn --seeds 1 --show
    """
    if table is None and write is None and not show:
        raise DataError("say which table: table1, table2, table3, table4 or ablations; or --show, or --write FILE")
    if table is None and (cells or models):
        raise DataError("--cells and --models: say of which table they are, such as table1")
    if write is not None:
        console.check_free(write, force=True)
    if results.exists() and not results.is_dir():
        raise DataError(f"--results {results} is a file; name the folder that holds the records")
    with console.starting():
        from h2hgcn.experiments.reproduce import TABLES, check_protocol, paper_table, runs_of
        from h2hgcn.experiments.results_page import check_page, has_records, results_page
        from h2hgcn.experiments.runner import Records
    if write is not None:
        check_page(write)
    columns, rows = flags.split_names(cells), flags.split_names(models)
    names = TABLES if table is None else (table,)
    for name in names:
        check_protocol(paper_table(name).part(columns, rows), protocol, columns)
    records = {name: Records(results / f"{name}.jsonl") for name in TABLES}
    finished = True
    if table is not None and not show:
        asked = runs_of(paper_table(table), protocol, seeds, columns, rows)
        if not asked:
            raise DataError(
                f"{table} has no {protocol} runs of these columns and rows; h2hgcn reproduce {table} --show has all"
            )
        finished = _run_table(asked, records[table], results / "unfinished", data, jobs)
    for name in TABLES if write is not None else names:
        _note_broken_lines(records[name])
    if not results.is_dir() and write is None:
        console.note(f"{results} does not exist, so there are no records; --results names another folder")
    if write is None:
        for name in names:
            _show(name, columns, rows, protocol, records[name])
    elif has_records(results):
        with atomic_write(write) as file:
            file.write(results_page(results).encode())
        console.tell(write)
    else:
        raise DataError(f"{results} has no records of any table, so {write} is not written; name another --results")
    if not finished:
        console.stop("not all runs are finished")


def _run_table(
    asked: "Sequence[TableRun]", records: "Records", place: Path, data: Path | None, jobs: int | None
) -> bool:
    """Runs what is missing; whether all of it is recorded then, from here or from elsewhere."""
    from h2hgcn.experiments.reproduce import unfinished

    missing = unfinished(asked, records)
    if not missing:
        console.tell("all of these runs are finished")
        return True
    busy = _run_missing(missing, records, place, data, jobs)
    if busy and len(unfinished(missing, records)) == len(busy):  # else it was asked to stop
        busy = _run_missing(busy, records, place, data, jobs, _WAIT_SECONDS)
    busy = unfinished(busy, records)
    if busy:
        console.note(f"{console.counted(len(busy), 'run')} left to another process, which is running now")
    return not unfinished(asked, records)


def _run_missing(
    runs: "Sequence[TableRun]", records: "Records", folder: Path, root: Path | None, jobs: int | None, wait: float = 0.0
) -> "list[TableRun]":
    """Runs what no process has recorded yet; returns the runs that another process is training now."""
    from h2hgcn.experiments.reproduce import cell_of, record_of, still_unfinished, unfinished
    from h2hgcn.training.folder import BusyFolderError

    busy: list[TableRun] = []

    def finished(cell: "Cell", outcome: "Outcome") -> str:
        run = cell.key
        if isinstance(outcome.error, BusyFolderError):
            busy.append(run)
        elif outcome.error is not None:
            raise outcome.error
        else:
            if unfinished([run], records):  # another process may have started when this one's lock was gone
                records.add(record_of(run, outcome))
            shutil.rmtree(cell.folder, ignore_errors=True)
        return f"{run.row.name}, {run.column.id}, seed {run.seed}"

    cells = (cell_of(run, records, folder, root, wait) for run in still_unfinished(runs, records))
    console.run_cells(cells, len(runs), jobs, finished)
    return busy


def _note_broken_lines(records: "Records") -> None:
    """A run whose line is damaged is not shown, which nobody would notice."""
    from h2hgcn.experiments.reproduce import unusable_lines

    broken = unusable_lines(records)
    if broken:
        which = ", ".join(map(str, broken[:5])) + (", ..." if len(broken) > 5 else "")
        console.note(
            f"{records.path} has {console.counted(len(broken), 'line')} that cannot be used ({which}). Such a run "
            "counts as not done and is run again; delete the line to remove this note."
        )


def _show(name: str, cells: Sequence[str], models: Sequence[str], protocol: str, records: "Records") -> None:
    from h2hgcn.experiments.reproduce import paper_table
    from h2hgcn.experiments.results_page import table_lines

    paper = paper_table(name)
    if protocol not in paper.part(cells).protocols:
        console.note(f"{name} has no {protocol} protocol")
        return
    titles, *lines = table_lines(paper, records, protocol, cells, models)
    console.stdout.print()
    console.print_title(f"{paper.title}, {protocol}: ours (runs) / the paper's")
    widths = [max(map(len, texts)) + _BETWEEN for texts in zip(titles, *lines, strict=True)]
    for number, group in enumerate(_that_fit(widths[1:], console.stdout.width - min(widths[0], _NAMES + _BETWEEN))):
        if number:
            console.stdout.print()
        rows = ((line[0], *(line[column] for column in group)) for line in lines if any(line[k] for k in group))
        heads = (Column(titles[column], no_wrap=True) for column in group)
        console.stdout.print(console.plain_table(Column(max_width=_NAMES), *heads, rows=rows))


def _that_fit(widths: list[int], room: int) -> list[list[int]]:
    """The columns behind the first one, which has the names of rows, in groups that fit side by side."""
    groups: list[list[int]] = [[]]
    for column, width in enumerate(widths, 1):
        if groups[-1] and sum(widths[other - 1] for other in groups[-1]) + width > room:
            groups.append([])
        groups[-1].append(column)
    return groups
