"""What the scores of a table say, in sentences: where ours falls short, and who is better."""

from collections.abc import Iterator

from h2hgcn.experiments.significance import LEVEL, p_value
from h2hgcn.experiments.table_cells import Score, TableScores
from h2hgcn.experiments.tables import Column, Row
from h2hgcn.models import ENCODERS

OURS = "h2h-gcn"


def words_of(scores: TableScores) -> Iterator[str]:
    """A sentence or two for each column in which H2H-GCN has a score."""
    ours = next((row for row in scores.rows if row.name == OURS), None)
    for column in scores.columns:
        score = None if ours is None else scores.of(ours, column)
        if ours is not None and score is not None:
            yield f"{column.title}: " + " ".join(_sentences(scores, ours, column, score))


def _sentences(scores: TableScores, ours: Row, column: Column, score: Score) -> Iterator[str]:
    if len(score.values) < column.folds:
        yield f"H2H-GCN has {score.mean:.1f} on {len(score.values)} of {column.folds} folds, the others being missing."
        return
    paper = ours.paper.get(column.id) if scores.protocol == "legacy" else None  # by other protocols it is another task
    yield f"H2H-GCN has {score.mean:.1f}{_against_paper(score, paper, column.other_task)}."
    if column.tried and paper is not None and round(score.mean, 1) < paper:
        yield f"{column.tried.rstrip('.')}."
    others = [(row, scores.of(row, column)) for row in scores.rows if row.name != OURS]
    found = [(row, other) for row, other in others if other is not None and len(other.values) >= column.folds]
    if found:
        best, other = max(found, key=lambda pair: pair[1].mean)
        kind = " (Euclidean)" if best.model != OURS and ENCODERS[best.model].space == "euclidean" else ""
        relation = _compared(other, score, paired=scores.protocol == "clean" or column.folds > 0)
        yield f"The best other row is {best.title}{kind} with {other.mean:.1f}, {relation}."
    trivial = scores.trivial[column.id]
    if trivial:
        name = max(trivial, key=lambda name: trivial[name])
        if trivial[name] > max(score.mean, _chance(column)):
            yield f"No learning is better: {name} has {trivial[name]:.1f}."
    below = [row.title for row, other in [(ours, score), *found] if other.mean < _chance(column)]
    if below:
        yield f"Below chance, which is {_chance(column):.0f}: {', '.join(below)}."


def _against_paper(score: Score, paper: float | None, other_task: bool) -> str:
    if paper is None:
        return ""
    if other_task:
        return f"; the paper's {paper} is of another task"
    difference = round(score.mean, 1) - paper
    if abs(difference) < 0.05:
        return f", as in the paper ({paper})"
    return f", {abs(difference):.1f} {'above' if difference > 0 else 'below'} the paper's {paper}"


def _chance(column: Column) -> float:
    """What scores that know nothing have, in per cent; of most metrics it is not known."""
    return 50.0 if column.metric == "auc" else 0.0


def _compared(other: Score, ours: Score, paired: bool) -> str:
    """How another row stands to ours."""
    chance = p_value(other.by_seed, ours.by_seed, paired=paired)
    relation = "above H2H-GCN" if other.mean > ours.mean else "below H2H-GCN"
    if chance is None:
        return f"{relation}, with too few runs to tell"
    return f"{relation}" + ("" if chance < LEVEL else f", within noise (p = {chance:.2f})")
