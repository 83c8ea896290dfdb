"""``h2hgcn reproduce``: the paper's tables, run and shown."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Column

from h2hgcn.cli.console import (
    check_free,
    counted,
    note,
    plain_table,
    print_title,
    run_cells,
    starting,
    stdout,
    stop,
    tell,
)
from h2hgcn.cli.options import DataFolder, Jobs
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

if TYPE_CHECKING:
    from h2hgcn.experiments.reproduce import TableRun
    from h2hgcn.experiments.runner import Cell, Outcome, Records

# For how long runs that another process trains are waited for, once nothing else is left: it may have been killed.
_WAIT_SECONDS = 30.0


def run_table(
    name: str, cells: Sequence[str], models: Sequence[str], protocol: str, seeds: int, jobs: int | None,
    data: Path | None, results: Path,
) -> bool:  # fmt: skip
    """Runs what is missing; whether all of it is recorded then, from here or from elsewhere."""
    from h2hgcn.experiments.reproduce import runs_of, unfinished
    from h2hgcn.experiments.runner import Records
    from h2hgcn.experiments.tables import paper_table

    records = Records(results / f"{name}.jsonl")
    asked = runs_of(paper_table(name), protocol, seeds, cells, models)
    if not asked:
        raise DataError(
            f"{name} has no {protocol} runs of these columns and rows; h2hgcn reproduce {name} --show has all"
        )
    missing = unfinished(asked, records)
    if not missing:
        tell("all of these runs are finished")
        return True
    place = results / "unfinished"
    busy = _run_missing(missing, records, place, data, jobs)
    if busy and len(unfinished(missing, records)) == len(busy):  # else it was told to stop
        busy = _run_missing(busy, records, place, data, jobs, _WAIT_SECONDS)
    busy = unfinished(busy, records)
    if busy:
        note(f"{counted(len(busy), 'run')} left to another process, which is running now")
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
    run_cells(cells, len(runs), jobs, finished)
    return busy


# Of tables that are shown: the longest names of rows that stay on one line, and blanks between columns.
_NAMES, _BETWEEN = 24, 2

Results = Annotated[Path, typer.Option(help="Folder of the records, one file a table.")]


def reproduce(
    table: Annotated[
        Literal["table1", "table2", "table3", "table4", "ablations"] | None,
        typer.Argument(help="A table of the paper, or our ablations."),
    ] = None,
    cells: Annotated[str | None, typer.Option(help="Columns, joined by commas, such as cora-lp. Default: all.")] = None,
    models: Annotated[str | None, typer.Option(help="Rows, joined by commas. Default: all.")] = None,
    protocol: Annotated[Literal["legacy", "clean"], typer.Option(help="legacy is the paper's.")] = "legacy",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    jobs: Jobs = None,
    data: DataFolder = None,
    results: Results = Path("results"),
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
        check_free(write, force=True)
    if results.exists() and not results.is_dir():
        raise DataError(f"--results {results} is a file; name the folder that holds the records")
    with starting():
        from h2hgcn.experiments.reproduce import check_protocol
        from h2hgcn.experiments.results_page import check_page
        from h2hgcn.experiments.runner import Records
        from h2hgcn.experiments.tables import TABLES, paper_table
    if write is not None:
        check_page(write)
    names = TABLES if table is None else (table,)
    for name in names:
        check_protocol(paper_table(name).part(_names(cells), _names(models)), protocol, _names(cells))
    finished = True
    if table is not None and not show:
        finished = run_table(table, _names(cells), _names(models), protocol, seeds, jobs, data, results)
    for name in TABLES if write is not None else names:
        _tell_of_broken_lines(Records(results / f"{name}.jsonl"))
    if not results.is_dir() and write is None:
        note(f"{results} does not exist, so there are no records; --results names another folder")
    if write is not None:
        _write(write, results)
    else:
        for name in names:
            _show(name, _names(cells), _names(models), protocol, results)
    if not finished:
        stop("not all runs are finished")


def _tell_of_broken_lines(records: "Records") -> None:
    """A run whose line is damaged is not shown, which nobody would notice."""
    from h2hgcn.experiments.reproduce import unusable_lines

    broken = unusable_lines(records)
    if broken:
        which = ", ".join(map(str, broken[:5])) + (", ..." if len(broken) > 5 else "")
        note(
            f"{records.path} has {counted(len(broken), 'line')} that cannot be used ({which}). Such a run counts as "
            "not done and is run again; delete the line to remove this note."
        )


def _write(path: Path, results: Path) -> None:
    from h2hgcn.experiments.results_page import has_records, results_page

    if not has_records(results):
        raise DataError(f"{results} has no records of any table, so {path} is not written; name another --results")
    with atomic_write(path) as file:
        file.write(results_page(results).encode())
    tell(path)


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _show(name: str, cells: Sequence[str], models: Sequence[str], protocol: str, results: Path) -> None:
    from h2hgcn.experiments.results_page import table_lines
    from h2hgcn.experiments.runner import Records
    from h2hgcn.experiments.tables import paper_table

    paper = paper_table(name)
    if protocol not in paper.part(cells).protocols:
        note(f"{name} has no {protocol} protocol")
        return
    lines = table_lines(paper, Records(results / f"{name}.jsonl"), protocol, cells, models)
    stdout.print()
    print_title(f"{paper.title}, {protocol}: ours (runs) / the paper's")
    for number, columns in enumerate(_that_fit(lines, stdout.width)):
        if number:
            stdout.print()
        titles = (Column(lines[0][column], no_wrap=True) for column in columns[1:])
        shown = plain_table(Column(max_width=_NAMES), *titles)
        for line in lines[1:]:
            if any(line[column] for column in columns[1:]):
                shown.add_row(*(line[column] for column in columns))
        stdout.print(shown)


def _that_fit(lines: list[list[str]], width: int) -> list[list[int]]:
    """Columns that fit side by side, the first, which has the names of rows, in each of the groups."""
    wide = [max(map(len, texts)) + _BETWEEN for texts in zip(*lines, strict=True)]
    wide[0] = min(wide[0], _NAMES + _BETWEEN)
    groups = [[0]]
    for column in range(1, len(wide)):
        there = sum(wide[other] for other in groups[-1])
        if len(groups[-1]) > 1 and there + wide[column] > width:
            groups.append([0])
        groups[-1].append(column)
    return groups
