"""The runs of a table that are missing, carried out and recorded."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from h2hgcn.cli.cell_runs import run_cells
from h2hgcn.cli.output import counted, say, stderr
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.experiments.cells import Cell, Outcome
    from h2hgcn.experiments.records import Records
    from h2hgcn.experiments.reproduction import TableRun

# For how long runs that another process trains are waited for, once nothing else is left: it may have been killed.
_WAIT_SECONDS = 30.0


def run_table(
    name: str, cells: Sequence[str], models: Sequence[str], protocol: str, seeds: int, jobs: int | None,
    data: Path | None, results: Path,
) -> bool:  # fmt: skip
    """Runs what is missing; whether all of it is recorded then, from here or from elsewhere."""
    from h2hgcn.experiments.records import Records
    from h2hgcn.experiments.reproduction import runs_of, unfinished
    from h2hgcn.experiments.tables import paper_table

    records = Records(results / f"{name}.jsonl")
    asked = runs_of(paper_table(name), protocol, seeds, cells, models)
    if not asked:
        raise DataError(
            f"{name} has no {protocol} runs of these columns and rows; h2hgcn reproduce {name} --show has all"
        )
    missing = unfinished(asked, records)
    if not missing:
        stderr.print("all of these runs are finished")
        return True
    busy = _Round(records, results / "unfinished", data).run(missing, jobs)
    if busy and len(unfinished(missing, records)) == len(busy):  # else it was told to stop
        busy = _Round(records, results / "unfinished", data, _WAIT_SECONDS).run(busy, jobs)
    busy = unfinished(busy, records)
    if busy:
        say("note", "bold yellow", f"{counted(len(busy), 'run')} left to another process, which is at it now")
    return not unfinished(asked, records)


class _Round:
    """Runs are begun unless another process has recorded them by then, and left alone while one trains them."""

    def __init__(self, records: "Records", folder: Path, root: Path | None, wait_seconds: float = 0.0) -> None:
        self._records, self._folder, self._root, self._wait_seconds = records, folder, root, wait_seconds
        self._begun: list[TableRun] = []
        self._places: list[Cell] = []
        self._busy: list[TableRun] = []

    def run(self, runs: "Sequence[TableRun]", jobs: int | None) -> "list[TableRun]":
        """Carries out and records runs; those that another process is at."""
        run_cells(self._cells(runs), len(runs), jobs, self._finished)
        return self._busy

    def _cells(self, runs: "Sequence[TableRun]") -> "Iterator[Cell]":
        from h2hgcn.experiments.reproduction import cell_of, still_unfinished

        for run in still_unfinished(runs, self._records):
            self._begun.append(run)
            self._places.append(cell_of(run, self._records, self._folder, self._root, self._wait_seconds))
            yield self._places[-1]

    def _finished(self, number: int, outcome: "Outcome") -> str:
        from h2hgcn.experiments.reproduction import record_of, unfinished
        from h2hgcn.training.folder import BusyFolderError

        run = self._begun[number]
        if isinstance(outcome.error, BusyFolderError):
            self._busy.append(run)
        elif outcome.error is not None:
            raise outcome.error
        else:
            if unfinished([run], self._records):  # another process may have begun when this one's lock was gone
                self._records.add(record_of(run, outcome))
            shutil.rmtree(self._places[number].folder, ignore_errors=True)
        return f"{run.row.name}, {run.column.id}, seed {run.seed}"
