"""What records say of the cells of a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from h2hgcn.experiments.records import Record
from h2hgcn.experiments.reproduction import runs_of
from h2hgcn.experiments.tables import Column, PaperTable, Row


@dataclass(frozen=True)
class Score:
    """Test metrics in per cent, one for each seed; with folds, one for each fold, averaged over seeds.

    ``megabytes`` is the largest peak of a run, if it was measured.
    """

    values: tuple[float, ...]
    diverged: int = 0
    seconds: float = 0.0
    megabytes: float | None = None

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float | None:
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class TableScores:
    """All that there is of a table by one protocol: scores by row and column, and what needs no learning by column."""

    table: PaperTable
    protocol: str
    scores: dict[tuple[str, str], Score]
    trivial: dict[str, dict[str, float]]

    @property
    def columns(self) -> list[Column]:
        return [column for column in self.table.columns if self.protocol in column.protocols]

    def of(self, row: Row, column: Column) -> Score | None:
        return self.scores.get((row.name, column.id))

    @property
    def trivial_names(self) -> list[str]:
        """The trivial rows, in the order in which they appear."""
        return list(dict.fromkeys(name for column in self.columns for name in self.trivial[column.id]))


def table_scores(table: PaperTable, records: list[Record], protocol: str) -> TableScores:
    """The scores by the settings that hold now: records of others are kept, but not shown."""
    seeds = 1 + max((record["seed"] for record in records), default=0)
    scores = {}
    for column in table.columns:
        own = [record for record in records if (record["column"], record["protocol"]) == (column.id, protocol)]
        for row in table.rows:
            if own and row.has(column):
                # two rows may have the same settings, and then the same runs: a variant may be what was chosen
                digests = {run.digest for run in runs_of(table, protocol, seeds, (column.id,), (row.name,))}
                score = _score([record for record in own if record["hash"] in digests], column)
                if score is not None:
                    scores[row.name, column.id] = score
    return TableScores(
        table, protocol, scores, {column.id: _trivial_scores(records, column, protocol) for column in table.columns}
    )


def _score(records: list[Record], column: Column) -> Score | None:
    finished = [record for record in records if record["status"] == "finished"]
    if not finished:
        return None
    peaks = [record["peak_megabytes"] for record in finished if record.get("peak_megabytes") is not None]
    return Score(
        tuple(_by_fold(finished, column) if column.folds else (_value(record, column) for record in finished)),
        sum(record["status"] == "diverged" for record in records),
        fmean(record["seconds"] for record in finished),
        max(peaks, default=None),
    )


def _trivial_scores(records: Iterable[Record], column: Column, protocol: str) -> dict[str, float]:
    """What needs no learning, averaged over splits, in per cent."""
    own = [
        record["trivial"]
        for record in records
        if (record["column"], record["protocol"]) == (column.id, protocol) and record.get("trivial")
    ]
    found: dict[str, list[float]] = {}
    for scores in own:
        for name, score in scores.items():
            if score is not None:
                found.setdefault(name, []).append(100 * score)
    return {name: fmean(values) for name, values in found.items()}


def _by_fold(records: list[Record], column: Column) -> list[float]:
    """The mean over seeds of each fold, as the fair comparison has it."""
    folds = sorted({record["fold"] for record in records})
    return [fmean(_value(record, column) for record in records if record["fold"] == fold) for fold in folds]


def _value(record: Record, column: Column) -> float:
    return 100 * float(record["metrics"]["test"][column.metric])
