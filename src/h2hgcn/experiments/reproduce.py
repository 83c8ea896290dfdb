"""Runs of the paper's tables: which there are, which are done, and what they say."""

import math
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.compare import mean_by_name
from h2hgcn.experiments.config import Sections, merged, read_experiment
from h2hgcn.experiments.runner import Cell, Outcome, Record, Records, code_fingerprint
from h2hgcn.experiments.tables import Column, PaperTable, Row
from h2hgcn.options import suggestion

_NEEDED: dict[str, Any] = {
    "hash": str, "seed": int, "column": str, "protocol": str, "fold": int | None, "status": str,
}  # fmt: skip

# Nobody runs as many, and all seeds up to the largest are looked for.
_MOST_SEEDS = 10_000


def usable(records: Iterable[Record]) -> list[Record]:
    """Lines that lack something are left out, and of two processes that carried out the same run the first counts."""
    first: dict[tuple[str, int], Record] = {}
    for record in records:
        if _is_whole(record):
            first.setdefault((record["hash"], record["seed"]), record)
    return list(first.values())


def unusable_lines(records: Records) -> list[int]:
    """The numbers of the lines that are no records, or lack something."""
    return [number for number, record in records.numbered() if record is None or not _is_whole(record)]


def _is_whole(record: Record) -> bool:
    if not all(name in record and isinstance(record[name], kind) for name, kind in _NEEDED.items()):
        return False
    if not 0 <= record["seed"] < _MOST_SEEDS:
        return False
    return record["status"] != "finished" or _has_results(record)


def _has_results(record: Record) -> bool:
    metrics, peak = record.get("metrics"), record.get("peak_megabytes")
    return (
        _is_number(record.get("seconds"))
        and isinstance(metrics, dict)
        and _holds_numbers(metrics.get("test"))
        and _holds_numbers(metrics.get("val"))
        and all(record.get("selection") in list(metrics[part]) for part in ("val", "test"))
        and (record.get("trivial") is None or _holds_numbers(record["trivial"]))
        and (peak is None or _is_number(peak))
    )


def _holds_numbers(named: Any) -> bool:
    return isinstance(named, dict) and all(_is_number(value) for value in named.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


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
    return Cell(run.flags, place, run, root=root, scratch=True, wait_seconds=wait_seconds, elsewhere=elsewhere)


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


def chosen_records(runs: Sequence[TableRun], known: Mapping[tuple[str, int], Record]) -> list[Record]:
    """The records of a cell that count: of each fold those of the settings whose mean over seeds is best.

    Runs of one cell are given. A seed counts when all settings were run with it, so that no fold chooses among fewer.
    """
    rivals: dict[tuple[int | None, int], list[TableRun]] = {}
    for run in runs:
        rivals.setdefault((run.fold, run.seed), []).append(run)
    by_choice: dict[int | None, dict[int, list[Record]]] = {}
    for (fold, _), group in rivals.items():
        if all(run.key in known for run in group):
            for run in group:
                by_choice.setdefault(fold, {}).setdefault(run.choice, []).append(known[run.key])
    return [record for choices in by_choice.values() for record in _best(choices)]


def _best(choices: Mapping[int, list[Record]]) -> list[Record]:
    """The first of equals; settings of which a run diverged are the last."""
    return choices[max(sorted(choices), key=lambda choice: _validation(choices[choice]))]


def _validation(records: Sequence[Record]) -> float:
    if any(record["status"] != "finished" for record in records):
        return -1.0
    return fmean(float(record["metrics"]["val"][record["selection"]]) for record in records)


@dataclass(frozen=True)
class Score:
    """Test metrics in per cent by seed; with folds by fold, averaged over seeds. ``runs`` counts them all.

    ``choices`` is the number of settings among which each fold chose. ``seconds`` is the median of the runs,
    ``megabytes`` their largest peak, if it was measured.
    """

    by_seed: dict[int, float]
    runs: int
    has_folds: bool = False
    choices: int = 1
    diverged: int = 0
    seconds: float = 0.0
    megabytes: float | None = None

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(self.by_seed.values())

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float | None:
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class TableScores:
    """All that there is of a table by one protocol: scores by row and column, and what needs no learning by column.

    ``lost`` counts the runs of cells all of whose runs diverged.
    """

    table: PaperTable
    protocol: str
    scores: dict[tuple[str, str], Score]
    trivial: dict[str, dict[str, float]]
    lost: dict[tuple[str, str], int]

    @property
    def columns(self) -> list[Column]:
        return [column for column in self.table.columns if self.protocol in column.protocols]

    @property
    def rows(self) -> list[Row]:
        """Those that are for the protocol, and others that have scores."""
        found = {name for name, _ in (*self.scores, *self.lost)}
        return [row for row in self.table.rows if row.is_for(self.protocol) or row.name in found]

    def of(self, row: Row, column: Column) -> Score | None:
        return self.scores.get((row.name, column.id))

    @property
    def trivial_names(self) -> list[str]:
        """The trivial rows, in the order in which they appear."""
        return list(dict.fromkeys(name for column in self.columns for name in self.trivial[column.id]))


def table_scores(table: PaperTable, records: Iterable[Record], protocol: str) -> TableScores:
    """The scores by the settings that hold now: records of others are kept, but not shown."""
    known = {(record["hash"], record["seed"]): record for record in usable(records)}
    seeds = {column.id: 0 for column in table.columns}
    for record in known.values():
        seeds[record["column"]] = max(seeds.get(record["column"], 0), record["seed"] + 1)
    scores, lost, trivial = {}, {}, {}
    for column in table.columns:
        holding: dict[tuple[str, int], Record] = {}
        for row in table.rows:
            if seeds[column.id] and protocol in column.protocols and row.has(column):
                # two rows may have the same settings, and then the same runs: a variant may be what was chosen; so may
                # two protocols, for one of the seeds
                runs = runs_of(table, protocol, seeds[column.id], (column.id,), (row.name,))
                own = {run.key: known[run.key] for run in runs if _counts(known.get(run.key), row, protocol)}
                holding |= own
                found = chosen_records(runs, own)
                score = _score(found, column, len(row.settings_for(column)))
                if score is not None:
                    scores[row.name, column.id] = score
                elif diverged := sum(record["status"] == "diverged" for record in found):
                    lost[row.name, column.id] = diverged
        means = mean_by_name(record.get("trivial") or {} for record in holding.values())
        trivial[column.id] = {name: 100 * score for name, score in means.items()}
    return TableScores(table, protocol, scores, trivial, lost)


def _counts(record: Record | None, row: Row, protocol: str) -> bool:
    """A row that is not for a protocol has the runs that were asked for by it, not those that happen to be the same."""
    return record is not None and (row.is_for(protocol) or record["protocol"] == protocol)


def _score(records: list[Record], column: Column, choices: int) -> Score | None:
    finished = [
        record for record in records if record["status"] == "finished" and column.metric in record["metrics"]["test"]
    ]
    if not finished:
        return None
    peaks = [record["peak_megabytes"] for record in finished if record.get("peak_megabytes") is not None]
    return Score(
        _by_fold(finished, column) if column.folds else {record["seed"]: _value(record, column) for record in finished},
        len(finished),
        column.folds > 0,
        choices,
        sum(record["status"] == "diverged" for record in records),
        median(record["seconds"] for record in finished),
        max(peaks, default=None),
    )


def _by_fold(records: list[Record], column: Column) -> dict[int, float]:
    """The mean over seeds of each fold, as the fair comparison has it."""
    folds: dict[int, list[float]] = {}
    for record in records:
        folds.setdefault(record["fold"], []).append(_value(record, column))
    return {fold: fmean(folds[fold]) for fold in sorted(folds)}


def _value(record: Record, column: Column) -> float:
    return 100 * float(record["metrics"]["test"][column.metric])
