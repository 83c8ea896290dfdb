"""What records say of the cells of a table."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

from h2hgcn.experiments.records import Record
from h2hgcn.experiments.tables import Column, PaperTable


@dataclass(frozen=True)
class Score:
    """Mean and deviation in per cent over ``runs`` seeds; with folds, over the means of the folds."""

    mean: float
    deviation: float | None
    runs: int
    diverged: int = 0
    seconds: float = 0.0


def score_of(records: Iterable[Record], column: Column, protocol: str, digests: set[str]) -> Score | None:
    """The score of the settings with these hashes; None if there is no run.

    Two rows may have the same settings, and then the same runs: a variant may be what was chosen.
    """
    own = [
        record
        for record in records
        if (record["column"], record["protocol"]) == (column.id, protocol) and record["hash"] in digests
    ]
    finished = [record for record in own if record["status"] == "finished"]
    if not finished:
        return None
    values = _by_fold(finished, column) if column.folds else [_value(record, column) for record in finished]
    return Score(
        100 * fmean(values),
        100 * stdev(values) if len(values) > 1 else None,
        len(values),
        sum(record["status"] == "diverged" for record in own),
        fmean(record["seconds"] for record in finished),
    )


def trivial_scores(records: Iterable[Record], column: Column, protocol: str) -> dict[str, float]:
    """What needs no learning, averaged over splits, in per cent."""
    own = [
        record["trivial"]
        for record in records
        if (record["column"], record["protocol"]) == (column.id, protocol) and record.get("trivial")
    ]
    if not own:
        return {}
    return {name: 100 * fmean(scores[name] for scores in own if name in scores) for name in own[-1]}


def _by_fold(records: list[Record], column: Column) -> list[float]:
    """The mean over seeds of each fold, as the fair comparison has it."""
    folds = sorted({record["fold"] for record in records})
    return [fmean(_value(record, column) for record in records if record["fold"] == fold) for fold in folds]


def _value(record: Record, column: Column) -> float:
    return float(record["metrics"]["test"][column.metric])


def trivial_names(table: PaperTable, records: list[Record], protocol: str) -> list[str]:
    """The trivial rows of a table, in the order in which they appear."""
    return list(dict.fromkeys(name for column in table.columns for name in trivial_scores(records, column, protocol)))
