"""The tables as text: ours beside the paper's."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from h2hgcn.errors import DataError
from h2hgcn.experiments.compare import LEVEL, p_value
from h2hgcn.experiments.config import Chosen
from h2hgcn.experiments.reproduce import Score, TableScores, table_scores, usable
from h2hgcn.experiments.runner import Record, Records
from h2hgcn.experiments.tables import TABLES, Column, PaperTable, Row, paper_table
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
        yield f"H2H-GCN has {score.mean:.1f} on {len(score.values)} of {column.folds} folds; the others are missing."
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
        yield f"Best other row: {best.title}{kind} with {other.mean:.1f}, {relation}."
    trivial = scores.trivial[column.id]
    if trivial:
        name = max(trivial, key=lambda name: trivial[name])
        if trivial[name] > max(score.mean, _chance(column)):
            yield f"A baseline without training is better: {name} has {trivial[name]:.1f}."
    below = [row.title for row, other in [(ours, score), *found] if other.mean < _chance(column)]
    if below:
        yield f"Below chance ({_chance(column):.0f}): {', '.join(below)}."


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


MISSING = "missing"

_INTRODUCTION = """# Results

Written by `h2hgcn reproduce --write docs/results.md` from the records in `results/`; none of our numbers is typed.

A cell shows mean ± standard deviation in per cent, the number of runs in brackets, and the paper's number after the
stroke. `legacy` is the paper's protocol: one split, several seeds. `clean` draws a new split for each seed. Seeds are
averaged within a fold; the table shows mean ± std over folds. Where several settings are named, each fold chose one on
its own validation part. "Highest known" is the highest number that we found reported, by any protocol.

"Within noise" means p ≥ 0.05 in a t-test over seeds, paired where rows share splits or folds, and not corrected for the
number of rows. Runs had one CPU thread on a busy machine: seconds vary severalfold, and memory may include
earlier cells.

To run a cell with the settings frozen in `src/h2hgcn/experiments/dai2021/`:
`h2hgcn reproduce TABLE --protocol PROTOCOL --cells COLUMN --models ROW --seeds N`.
"""

_BUDGETS = """
Settings tried for each cell on validation data: by `h2hgcn tune`, at random, or by hand; "?" is not recorded. "As"
names where settings were copied from, without a search.
"""

_FIRST_LINES = _INTRODUCTION[: _INTRODUCTION.index(" from the records")].encode()


def results_page(folder: Path) -> str:
    """All tables of which there are records, as Markdown."""
    parts = [_INTRODUCTION]
    for name in TABLES:
        table = paper_table(name)
        records = usable(Records(folder / f"{name}.jsonl"))
        there = {record["protocol"] for record in records}
        known = [table_scores(table, records, protocol) for protocol in table.protocols if protocol in there]
        parts += ["\n".join(_section(scores)) for scores in known]
    return "\n".join(parts)


def has_records(folder: Path) -> bool:
    """Whether there is anything to say of a table."""
    return any(usable(Records(folder / f"{name}.jsonl")) for name in TABLES)


def check_page(path: Path) -> None:
    """Raises if what is there was not written from records, and would be lost."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no file that a page could be written to; name another one")
    if path.exists():
        with path.open("rb") as file:
            start = file.read(len(_FIRST_LINES))
        if start and start != _FIRST_LINES:
            raise DataError(f"{path} is there already, and is no page of results; name another file")


def table_lines(
    table: PaperTable, records: Iterable[Record], protocol: str, columns: Sequence[str] = (), rows: Sequence[str] = ()
) -> list[list[str]]:
    """Header and rows, as texts; all columns and rows, or those that are named."""
    return _lines(table_scores(table.part(columns, rows), records, protocol))


def shown(score: Score) -> str:
    """A score as it stands in a table."""
    deviation = "" if score.deviation is None else f" ± {score.deviation:.1f}"
    lost = f", {score.diverged} diverged" if score.diverged else ""
    choices = f", {score.choices} settings" if score.choices > 1 else ""
    count = f"{len(score.values)} folds, {score.runs} runs{choices}" if score.has_folds else f"{score.runs}"
    return f"{score.mean:.1f}{deviation} ({count}{lost})"


def _lines(scores: TableScores) -> list[list[str]]:
    columns = scores.columns
    lines = [["", *(column.title for column in columns)]]
    lines += [[row.title, *(_cell(scores, row, column) for column in columns)] for row in scores.rows]
    for name in scores.trivial_names:
        found = (scores.trivial[column.id].get(name) for column in columns)
        lines.append([f"no learning: {name}", *("" if score is None else f"{score:.1f}" for score in found)])
    if scores.protocol == "legacy" and any(column.highest is not None for column in columns):
        lines.append(["highest known", *("" if column.highest is None else f"{column.highest}" for column in columns)])
    return lines


def _cell(scores: TableScores, row: Row, column: Column) -> str:
    if not row.has(column):
        return ""
    score, paper = scores.of(row, column), row.paper.get(column.id)
    diverged = scores.lost.get((row.name, column.id))
    ours = shown(score) if score is not None else MISSING if diverged is None else f"diverged ({diverged})"
    return ours if paper is None else f"{ours} / {paper}"


def _is_others(row: Row) -> bool:
    return bool(row.paper) and row.source != Row.source


def _section(scores: TableScores) -> Iterator[str]:
    table, protocol = scores.table, scores.protocol
    header, *rows = _lines(scores)
    yield f"## {_name(table)}, {protocol}: {table.title}\n"
    if protocol in table.notes:
        yield f"{table.notes[protocol].strip()}\n"
    names = ["`ROW` / `COLUMN`", *(f"`{column.id}`" for column in scores.columns)]
    ids = {row.title: f"{row.title} `{row.name}`" for row in scores.rows}
    yield from _markdown(header, [names, *([ids.get(line[0], line[0]), *line[1:]] for line in rows)])
    yield ""
    yield from (f"- {column.title}: {column.note}." for column in scores.columns if column.note)
    yield from (f"- The other numbers of {row.title} are of {row.source}." for row in scores.rows if _is_others(row))
    yield from (f"- {sentence}" for sentence in words_of(scores))
    budgets = [[row.title, *(_budget(scores, row, column) for column in scores.columns)] for row in scores.rows]
    if any(any(cells) for _, *cells in budgets):
        yield _BUDGETS
        yield from _markdown(header, budgets)
    yield "\nMedian seconds of a run / largest peak memory in megabytes:\n"
    costs = [[row.title, *(_cost(scores, row, column) for column in scores.columns)] for row in scores.rows]
    yield from _markdown(header, costs)
    yield ""


def _name(table: PaperTable) -> str:
    """``table1`` as "Table 1"."""
    return re.sub(r"(?<=[a-z])(?=\d)", " ", table.name).capitalize()


def _budget(scores: TableScores, row: Row, column: Column) -> str:
    is_there = scores.of(row, column) is not None and not any(row.settings for row in scores.rows)
    return budget(row.chosen_for(column, scores.protocol)) if is_there else ""


def _cost(scores: TableScores, row: Row, column: Column) -> str:
    score = scores.of(row, column)
    if score is None:
        return ""
    return f"{score.seconds:.1f}" + ("" if score.megabytes is None else f" / {score.megabytes:.0f}")


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" + "---:|" * (len(header) - 1)
    yield from (f"| {' | '.join(row)} |" for row in rows)
