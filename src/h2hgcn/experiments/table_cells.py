"""What records say of the cells of a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median, stdev

from h2hgcn.experiments.averages import mean_by_name
from h2hgcn.experiments.fold_choices import chosen_records
from h2hgcn.experiments.records import Record
from h2hgcn.experiments.reproduction import runs_of
from h2hgcn.experiments.table_records import usable
from h2hgcn.experiments.tables import Column, PaperTable, Row


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
