"""The table of a comparison, out of what became of its runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from h2hgcn.experiments.averages import mean_by_name
from h2hgcn.experiments.cells import Outcome
from h2hgcn.experiments.comparison import Comparison
from h2hgcn.experiments.significance import LEVEL, p_value

# What always says the most frequent class, among the scores that need no learning.
_MAJORITY = "majority class"


@dataclass(frozen=True)
class Row:
    """A model's scores by seed, None where its numbers went bad, and how it compares with the best.

    ``learnt`` tells whether it is better than chance.
    """

    model: str
    space: str
    test: dict[int, float | None]
    val: dict[int, float | None]
    parameters: int | None
    seconds: float | None
    learnt: bool = True
    p_value: float | None = None

    @property
    def scores(self) -> dict[int, float]:
        """The test scores that there are."""
        return {seed: score for seed, score in self.test.items() if score is not None}

    @property
    def diverged(self) -> int:
        return len(self.test) - len(self.scores)

    @property
    def mean(self) -> float | None:
        return _mean(self.test)

    @property
    def val_mean(self) -> float | None:
        return _mean(self.val)

    @property
    def deviation(self) -> float | None:
        return stdev(self.scores.values()) if len(self.scores) > 1 else None


@dataclass(frozen=True)
class ComparisonTable:
    """Rows by score, the best first; ``differs`` is decided at ``level`` for each comparison with the best."""

    metric: str
    rows: tuple[Row, ...]
    trivial: dict[str, float]
    level: float

    @property
    def best(self) -> Row | None:
        """The first row, if it has learnt anything."""
        return self.rows[0] if self.rows[0].mean is not None and self.rows[0].learnt else None

    def differs(self, row: Row) -> bool | None:
        return None if row.p_value is None else row.p_value < self.level


def tabulate(
    comparison: Comparison, outcomes: Mapping[tuple[str, int], Outcome], spaces: Mapping[str, str], metric: str
) -> ComparisonTable:
    """The table of all outcomes by the metric that selects."""
    trivial = mean_by_name(outcome.result.get("trivial") or {} for outcome in outcomes.values())
    rows = [_row(model, spaces[model], comparison.seeds, outcomes) for model in comparison.experiments]
    rows = [replace(row, learnt=_has_learnt(row, metric, trivial.get(_MAJORITY))) for row in rows]
    rows.sort(key=lambda row: (row.mean is not None, row.learnt, row.mean or 0.0), reverse=True)
    table = ComparisonTable(metric, tuple(rows), trivial, LEVEL / max(len(rows) - 1, 1))
    if table.best is None:
        return table
    best, *others = rows
    compared = [replace(row, p_value=p_value(best.scores, row.scores, comparison.vary_split)) for row in others]
    return replace(table, rows=(best, *compared))


def _row(model: str, space: str, seeds: Sequence[int], outcomes: Mapping[tuple[str, int], Outcome]) -> Row:
    own = {seed: outcomes[model, seed] for seed in seeds if (model, seed) in outcomes}
    over = {seed: outcome for seed, outcome in own.items() if outcome.status in ("finished", "diverged")}
    results = [outcome.result for outcome in over.values() if outcome.status == "finished"]
    return Row(
        model,
        space,
        {seed: outcome.score("test") for seed, outcome in over.items()},
        {seed: outcome.score("val") for seed, outcome in over.items()},
        results[0]["parameters"] if results else None,
        fmean(result["seconds"] for result in results) if results else None,
    )


def _has_learnt(row: Row, metric: str, majority: float | None) -> bool:
    """Whether links are ranked better than by lot, or classes told better than by always saying the same."""
    if row.mean is None or row.val_mean is None:
        return False
    if metric == "auc":
        return min(row.val_mean, row.mean) > 0.5
    return majority is None or row.mean > majority


def _mean(scores: Mapping[int, float | None]) -> float | None:
    known = [score for score in scores.values() if score is not None]
    return fmean(known) if known else None
