"""What the scores of a table say, in sentences: where ours falls short, and who is better."""

from collections.abc import Iterator, Sequence

from h2hgcn.experiments.presets import Chosen
from h2hgcn.experiments.significance import LEVEL, p_value
from h2hgcn.experiments.table_cells import Score, TableScores
from h2hgcn.experiments.tables import Column, Row
from h2hgcn.models import ENCODERS

OURS = "h2h-gcn"


def words_of(scores: TableScores) -> Iterator[str]:
    """A sentence or two for each column in which H2H-GCN has a score."""
    ours = next((row for row in scores.rows if row.name == OURS), None)
    searched: dict[tuple[Chosen, ...], str] = {}
    for column in scores.columns:
        score = None if ours is None else scores.of(ours, column)
        if ours is not None and score is not None:
            yield f"{column.title}: " + " ".join(_sentences(scores, ours, column, score, searched))


def _sentences(
    scores: TableScores, ours: Row, column: Column, score: Score, searched: dict[tuple[Chosen, ...], str]
) -> Iterator[str]:
    """``searched`` has the searches that columns before this one have told, and which column told them first."""
    if len(score.values) < column.folds:
        yield f"H2H-GCN has {score.mean:.1f} on {len(score.values)} of {column.folds} folds, the others being missing."
        return
    paper = ours.paper.get(column.id) if scores.protocol == "legacy" else None  # by other protocols it is another task
    yield f"H2H-GCN has {score.mean:.1f}{_against_paper(score, paper, column.other_task)}."
    if paper is not None and round(score.mean, 1) < paper:
        if searches := ours.chosen_for(column, scores.protocol):
            first = searched.setdefault(searches, column.title)
            words = "; ".join(map(_search_words, searches))
            yield f"Tried: {words}." if first == column.title else f"Tried: as for {first}."
        if column.tried:
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


def budget(searches: Sequence[Chosen]) -> str:
    """How many settings were tried, in short: ``40 + 80 tune, 15 hand``."""
    counts: dict[str, list[str]] = {}
    for search in searches:
        counts.setdefault(search.by, []).append(str(search.trials or "?"))
    copied = [f"as {search.source}" for search in searches if search.by == "copied"]
    return ", ".join(copied + [f"{' + '.join(trials)} {by}" for by, trials in counts.items() if by != "copied"])


def _search_words(search: Chosen) -> str:
    """``80 trials of `h2hgcn tune` (with learn_decoder in the space)``."""
    kinds = {"tune": "trials of `h2hgcn tune`", "random": "random settings", "hand": "settings by hand"}
    seeds = f", {search.seeds} seeds each" if search.seeds > 1 else ""
    text = f"{search.trials or 'some'} {kinds[search.by]}{seeds}" if search.by in kinds else f"as {search.source}"
    note = search.note.rstrip(".")
    return f"{text} ({note[0].lower()}{note[1:]})" if note else text


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
