"""The paper's tables as data, their runs, which of these are done, and what they say."""

import math
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.compare import mean_by_name
from h2hgcn.experiments.config import read_experiment
from h2hgcn.experiments.presets import Chosen, Sections, chosen_from, find_preset, merged, read_packaged
from h2hgcn.experiments.runner import Cell, Outcome, Record, Records, code_fingerprint
from h2hgcn.options import suggestion

TABLES = ("table1", "table2", "table3", "table4", "ablations")


@dataclass(frozen=True)
class Column:
    """A graph and a task. ``protocols`` are the splits that stand for the paper's (legacy) and a clean protocol.

    ``tried`` is a remark on what was tried to reach the paper's number. With ``other_task`` the data are not those of
    the paper.
    """

    id: str
    title: str
    metric: str
    protocols: Mapping[str, str]
    settings: Sections
    folds: int = 0
    highest: float | None = None
    note: str = ""
    tried: str = ""
    other_task: bool = False


@dataclass(frozen=True)
class Row:
    """A model, and what the paper (or ``source``) reports of it in each column, in per cent.

    ``settings`` make it a variant of the model, which needs an ``id`` of its own; ``columns`` and ``protocols`` are
    those that it is for, all if there are none. ``by_column`` has the settings of single columns, where the model was
    tuned for each, and ``chosen`` how they were chosen. ``choices`` has other settings for columns with folds: each
    fold chooses one of them, or those without, on its own validation part.
    """

    model: str
    title: str
    id: str = ""
    settings: Sections = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    by_column: Mapping[str, Sections] = field(default_factory=dict)
    chosen: tuple[Chosen, ...] = ()
    choices: Mapping[str, Sequence[Sections]] = field(default_factory=dict)
    paper: Mapping[str, float] = field(default_factory=dict)
    source: str = "Dai et al. 2021"

    @property
    def name(self) -> str:
        return self.id or self.model

    def settings_for(self, column: Column) -> list[Sections]:
        """The settings that a run may have, all but one of which are ``choices``."""
        own = merged(self.settings, self.by_column.get(column.id, {}))
        return [own, *(merged(own, choice) for choice in self.choices.get(column.id, ()))]

    def chosen_for(self, column: Column, protocol: str) -> tuple[Chosen, ...]:
        """How the settings of a cell were chosen; nothing for a variant of a model, which has those of the model."""
        if self.settings:
            return ()
        if column.id in self.by_column:
            return self.chosen
        data, task = column.settings["data"], column.settings["task"]
        return find_preset(data["dataset"], task["name"], self.model, protocol).chosen

    def has(self, column: Column) -> bool:
        return not self.columns or column.id in self.columns

    def is_for(self, protocol: str) -> bool:
        return not self.protocols or protocol in self.protocols


@dataclass(frozen=True)
class PaperTable:
    """Rows and columns; ``notes`` are what a reader has to know before comparing its rows, for each protocol."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols that some column has."""
        known = [name for column in self.columns for name in column.protocols]
        return tuple(dict.fromkeys(known))

    def column(self, name: str) -> Column:
        return _named(name, {column.id: column for column in self.columns}, f"{self.name} has no column")

    def row(self, name: str) -> Row:
        return _named(name, {row.name: row for row in self.rows}, f"{self.name} has no row")

    def part(self, columns: Sequence[str] = (), rows: Sequence[str] = ()) -> "PaperTable":
        """The table with these columns and rows alone; all, if none are named. Rows that are named are for all
        protocols.
        """
        chosen = tuple(self.column(name) for name in dict.fromkeys(columns)) or self.columns
        named = tuple(replace(self.row(name), protocols=()) for name in dict.fromkeys(rows))
        return replace(self, columns=chosen, rows=named or self.rows)


def paper_table(name: str) -> PaperTable:
    """A table by its name."""
    if name not in TABLES:
        raise DataError(f"there is no {name!r}; there are: {', '.join(TABLES)}")
    table = read_packaged(f"tables/{name}.toml")
    return PaperTable(
        name,
        table["title"],
        tuple(Column(**column) for column in table["columns"]),
        tuple(Row(**{**row, "chosen": chosen_from(row.get("chosen", []))}) for row in table["rows"]),
        table.get("notes", {}),
    )


def _named(name: str, known: Mapping[str, Any], problem: str) -> Any:
    if name not in known:
        raise DataError(f"{problem} {name!r}; {suggestion(name, known)}")
    return known[name]


PROTOCOLS = ("legacy", "clean")
# The split of the published figures; clean runs count on from it, one for each seed.
_SPLIT_SEED = 1234
# Nobody runs as many, and all seeds up to the largest are looked for.
_MOST_SEEDS = 10_000

# The digest of a run's settings, and its seed.
Key = tuple[str, int]


def usable(records: Iterable[Record]) -> dict[Key, Record]:
    """Records by settings and seed; of two processes that carried out the same run the first counts."""
    first: dict[Key, Record] = {}
    for record in records:
        if _is_usable(record):
            first.setdefault((record["hash"], record["seed"]), record)
    return first


def unusable_lines(records: Records) -> list[int]:
    """The numbers of the lines that are no records, or lack something."""
    return [number for number, record in records.numbered() if not _is_usable(record or {})]


def _is_usable(record: Record) -> bool:
    """Whether a record has everything that tables show, in the right types."""
    try:
        texts = [record[name] for name in ("hash", "column", "protocol", "status")]
        counts = [number for number in (record["seed"], record["fold"]) if number is not None]
        if not all(isinstance(text, str) for text in texts) or not all(isinstance(count, int) for count in counts):
            return False
        numbers: list[Any] = []
        if record["status"] == "finished":
            parts = [record["metrics"]["val"], record["metrics"]["test"]]
            if not all(record["selection"] in part for part in parts):
                return False
            named = parts if record.get("trivial") is None else [*parts, record["trivial"]]
            numbers = [record["seconds"], *(score for scores in named for score in scores.values())]
            numbers += [] if record.get("peak_megabytes") is None else [record["peak_megabytes"]]
        finite = all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
        return finite and 0 <= record["seed"] < _MOST_SEEDS
    except (KeyError, TypeError, AttributeError):
        return False


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
    def key(self) -> Key:
        """What tells it from all other runs."""
        return self.digest, self.seed

    def is_recorded(self, records: Records) -> bool:
        return self.key in usable(records)


def runs_of(
    table: PaperTable, protocol: str, num_seeds: int, columns: Sequence[str] = (), models: Sequence[str] = ()
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
        for choice, settings in enumerate(row.settings_for(column)):
            flags = merged(column.settings, own, settings)
            digest = read_experiment(flags).digest
            yield TableRun(table, row, column, protocol, seed, fold, flags, digest, choice)


def unfinished(runs: Sequence[TableRun], records: Records) -> list[TableRun]:
    """The runs that no record has, each once."""
    recorded = usable(records)
    return [run for key, run in {run.key: run for run in runs}.items() if key not in recorded]


def still_unfinished(runs: Sequence[TableRun], records: Records) -> Iterator[TableRun]:
    """One run after the other, but for those that another process has recorded by then."""
    return (run for run in runs if not run.is_recorded(records))


def cell_of(run: TableRun, records: Records, folder: Path, root: Path | None, wait_seconds: float = 0.0) -> Cell:
    """What a process carries out, unless it is recorded while another one is at it."""
    place = folder / f"{run.digest}-seed{run.seed}"
    elsewhere = partial(run.is_recorded, records)
    return Cell(run.flags, place, run, root=root, scratch=True, wait_seconds=wait_seconds, elsewhere=elsewhere)


def record_of(run: TableRun, outcome: Outcome) -> Record:
    """What is written of a run that is over."""
    record: Record = {
        "table": run.table, "row": run.row.name, "column": run.column.id, "protocol": run.protocol, "seed": run.seed,
        "fold": run.fold, "hash": run.digest, "status": outcome.status,
        "machine": f"{platform.system()} {platform.machine()}, one thread",
        "code": code_fingerprint(), "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "peak_megabytes": outcome.peak_megabytes,
    }  # fmt: skip
    if outcome.status == "diverged":
        return record | {"message": outcome.message}
    results = ("selection", "metrics", "trivial", "best_epoch", "epochs", "seconds", "parameters")
    settings = ("data", "task", "model", "training", "versions")
    return record | {name: outcome.result[name] for name in results} | {name: outcome.config[name] for name in settings}


def _chosen_records(runs: Sequence[TableRun], known: Mapping[Key, Record]) -> list[Record]:
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
    return [record for choices in by_choice.values() for record in max(choices.values(), key=_validation)]


def _validation(records: Sequence[Record]) -> float:
    """The mean validation metric; settings of which a run diverged are the last."""
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


def table_scores(table: PaperTable, records: Iterable[Record], protocol: str) -> TableScores:
    """The scores by the settings that hold now: records of others are kept, but not shown."""
    known = usable(records)
    scores, lost, trivial = {}, {}, {}
    for column in table.columns:
        seeds = max((record["seed"] + 1 for record in known.values() if record["column"] == column.id), default=0)
        holding: dict[Key, Record] = {}
        for row in table.rows:
            if not seeds or protocol not in column.protocols or not row.has(column):
                continue
            # two rows may have the same settings, and then the same runs: a variant may be what was chosen; so may
            # two protocols, for one of the seeds. A row that is not for the protocol has those asked for by it alone.
            runs = runs_of(table, protocol, seeds, (column.id,), (row.name,))
            there = {run.key: known[run.key] for run in runs if run.key in known}
            own = {key: each for key, each in there.items() if row.is_for(protocol) or each["protocol"] == protocol}
            holding |= own
            found = _chosen_records(runs, own)
            diverged = sum(record["status"] == "diverged" for record in found)
            finished = [
                record
                for record in found
                if record["status"] == "finished" and column.metric in record["metrics"]["test"]
            ]
            if finished:
                scores[row.name, column.id] = _score(finished, column, len(row.settings_for(column)), diverged)
            elif diverged:
                lost[row.name, column.id] = diverged
        means = mean_by_name(record.get("trivial") or {} for record in holding.values())
        trivial[column.id] = {name: 100 * score for name, score in means.items()}
    return TableScores(table, protocol, scores, trivial, lost)


def _score(records: list[Record], column: Column, choices: int, diverged: int) -> Score:
    values: dict[int, list[float]] = {}
    for record in sorted(records, key=lambda record: record["fold"] or 0):
        number = record["fold"] if column.folds else record["seed"]
        values.setdefault(number, []).append(100 * float(record["metrics"]["test"][column.metric]))
    peaks = [record["peak_megabytes"] for record in records if record.get("peak_megabytes") is not None]
    means = {number: fmean(each) for number, each in values.items()}
    seconds = median(record["seconds"] for record in records)
    return Score(means, len(records), column.folds > 0, choices, diverged, seconds, max(peaks, default=None))
