"""Runs of the paper's tables: which there are, which are done, and what is written of each."""

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.cells import Cell, Outcome
from h2hgcn.experiments.code_state import code_fingerprint
from h2hgcn.experiments.config import read_experiment
from h2hgcn.experiments.records import Record, Records
from h2hgcn.experiments.sections import Sections, merged
from h2hgcn.experiments.table_records import usable
from h2hgcn.experiments.tables import Column, PaperTable, Row
from h2hgcn.options import suggestion

PROTOCOLS = ("legacy", "clean")
# The split of the published figures; clean runs count on from it, one for each seed.
_SPLIT_SEED = 1234


@dataclass(frozen=True)
class TableRun:
    """One run of one cell of a table: a row, a column, a protocol, a seed and, with folds, a fold.

    ``choice`` is the number of its settings among those that the row has for the column.
    """

    table: str
    row: Row
    column: Column
    protocol: str
    seed: int
    fold: int | None
    flags: Sections
    digest: str
    choice: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all other runs."""
        return self.digest, self.seed

    @property
    def name(self) -> str:
        fold = "" if self.fold is None else f", fold {self.fold}"
        choice = f", choice {self.choice}" if self.choice else ""
        return f"{self.row.name} on {self.column.id}, {self.protocol}{fold}{choice}, seed {self.seed}"


def runs_of(
    table: PaperTable,
    protocol: str,
    num_seeds: int,
    columns: Sequence[str] = (),
    models: Sequence[str] = (),
) -> list[TableRun]:
    """All runs that are asked for, seed by seed, so that what is there when time runs out is as even as can be."""
    if num_seeds < 1:
        raise DataError(f"--seeds {num_seeds}: at least one is needed")
    chosen = table.part(columns, models)
    check_protocol(chosen, protocol, columns)
    return [
        run
        for seed in range(num_seeds)
        for column in chosen.columns
        if protocol in column.protocols
        for row in chosen.rows
        if row.has(column) and row.is_for(protocol)
        for run in _runs(table.name, row, column, protocol, seed)
    ]


def check_protocol(table: PaperTable, protocol: str, columns: Sequence[str] = ()) -> None:
    """Raises if there is no such protocol, or none of the columns that were named has it."""
    if protocol not in PROTOCOLS:
        raise DataError(f"--protocol {protocol!r} is not known; {suggestion(protocol, PROTOCOLS)}")
    if columns and protocol not in table.protocols:
        raise DataError(f"{', '.join(columns)} of {table.name} have no {protocol} protocol")


def _runs(table: str, row: Row, column: Column, protocol: str, seed: int) -> Iterator[TableRun]:
    for fold in range(column.folds) if column.folds else (None,):
        split: Sections = {"protocol": column.protocols[protocol]}
        if fold is not None:
            split["fold"] = fold
        elif protocol == "clean":
            split["split_seed"] = _SPLIT_SEED + seed
        own = {"task": split, "model": {"name": row.model}, "seed": seed, "preset": protocol}
        below = merged(column.settings, own)
        for choice, settings in enumerate(row.settings_for(column)):
            flags = merged(below, settings)
            digest = read_experiment(flags).digest
            yield TableRun(table, row, column, protocol, seed, fold, flags, digest, choice)


def unfinished(runs: Sequence[TableRun], records: Records) -> list[TableRun]:
    """The runs that no record has, each once."""
    recorded = _recorded(records)
    return [run for key, run in {run.key: run for run in runs}.items() if key not in recorded]


def _recorded(records: Records) -> set[tuple[str, int]]:
    return {(record["hash"], record["seed"]) for record in usable(records)}


def _is_recorded(records: Records, key: tuple[str, int]) -> bool:
    return key in _recorded(records)


def still_unfinished(runs: Sequence[TableRun], records: Records) -> Iterator[TableRun]:
    """One run after the other, but for those that another process has recorded by then."""
    for run in runs:
        yield from unfinished([run], records)


def cell_of(run: TableRun, records: Records, folder: Path, root: Path | None, wait_seconds: float = 0.0) -> Cell:
    """What a process carries out, unless it is recorded while another one is at it; the folder keeps what is
    unfinished.
    """
    place = folder / f"{run.digest}-seed{run.seed}"
    elsewhere = partial(_is_recorded, records, run.key)
    return Cell(run.flags, place, root=root, scratch=True, wait_seconds=wait_seconds, elsewhere=elsewhere)


def record_of(run: TableRun, outcome: Outcome) -> Record:
    """What is written of a run that is over."""
    result = outcome.result
    record: Record = {
        "table": run.table, "row": run.row.name, "column": run.column.id, "protocol": run.protocol, "seed": run.seed,
        "fold": run.fold, "hash": run.digest, "status": outcome.status, "machine": _machine(),
        "code": code_fingerprint(), "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "peak_megabytes": outcome.peak_megabytes,
    }  # fmt: skip
    if outcome.status == "diverged":
        return record | {"message": outcome.message}
    config: dict[str, Any] = outcome.config
    return record | {
        **{name: result[name] for name in ("selection", "metrics", "trivial", "best_epoch", "epochs", "seconds")},
        "parameters": result["parameters"],
        **{name: config[name] for name in ("data", "task", "model", "training", "versions")},
    }


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, one thread"
