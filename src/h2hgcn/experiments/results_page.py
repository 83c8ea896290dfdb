"""The tables as text: ours beside the paper's."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from h2hgcn.errors import DataError
from h2hgcn.experiments.compare import LEVEL, p_value
from h2hgcn.experiments.presets import Chosen
from h2hgcn.experiments.reproduce import (
    TABLES,
    Column,
    PaperTable,
    Row,
    Score,
    TableScores,
    paper_table,
    table_scores,
    usable,
)
from h2hgcn.experiments.runner import Record, Records
from h2hgcn.models import ENCODERS

OURS = "h2h-gcn"
MISSING = "missing"


def words_of(scores: TableScores) -> Iterator[str]:
    """A sentence or two for each column in which H2H-GCN has a score."""
    ours = next((row for row in scores.rows if row.name == OURS), None)
    told: dict[tuple[Chosen, ...], str] = {}  # searches, and the column that told them first
    for column in scores.columns:
        score = None if ours is None else scores.of(ours, column)
        if ours is not None and score is not None:
            yield f"{column.title}: " + " ".join(_sentences(scores, ours, column, score, told))


def _sentences(
    scores: TableScores, ours: Row, column: Column, score: Score, told: dict[tuple[Chosen, ...], str]
) -> Iterator[str]:
    if len(score.values) < column.folds:
        yield f"H2H-GCN has {score.mean:.1f} on {len(score.values)} of {column.folds} folds; the others are missing."
        return
    paper = ours.paper.get(column.id) if scores.protocol == "legacy" else None  # by other protocols it is another task
    yield f"H2H-GCN has {score.mean:.1f}{_against_paper(score, paper, column.other_task)}."
    if paper is not None and round(score.mean, 1) < paper:
        if searches := ours.chosen_for(column, scores.protocol):
            first = told.setdefault(searches, column.title)
            words = "; ".join(map(_search_words, searches))
            yield f"Tried: {words}." if first == column.title else f"Tried: as for {first}."
        if column.tried:
            yield f"{column.tried.rstrip('.')}."
    others = [(row, scores.of(row, column)) for row in scores.rows if row.name != OURS]
    found = [(row, other) for row, other in others if other is not None and len(other.values) >= column.folds]
    if found:
        best, other = max(found, key=lambda pair: pair[1].mean)
        kind = " (Euclidean)" if best.model != OURS and ENCODERS[best.model].space == "euclidean" else ""
        chance = p_value(other.by_seed, score.by_seed, paired=scores.protocol == "clean" or column.folds > 0)
        relation = f"{'above' if other.mean > score.mean else 'below'} H2H-GCN"
        if chance is None:
            relation += ", with too few runs to tell"
        elif chance >= LEVEL:
            relation += f", within noise (p = {chance:.2f})"
        yield f"Best other row: {best.title}{kind} with {other.mean:.1f}, {relation}."
    lot = 50.0 if column.metric == "auc" else 0.0  # what scores that know nothing have; of most metrics it is not known
    name, trivial = max(scores.trivial[column.id].items(), key=lambda pair: pair[1], default=("", 0.0))
    if trivial > max(score.mean, lot):
        yield f"A baseline without training is better: {name} has {trivial:.1f}."
    below = [row.title for row, other in [(ours, score), *found] if other.mean < lot]
    if below:
        yield f"Below chance ({lot:.0f}): {', '.join(below)}."


def _against_paper(score: Score, paper: float | None, other_task: bool) -> str:
    if paper is None:
        return ""
    if other_task:
        return f"; the paper's {paper} is of another task"
    difference = round(score.mean, 1) - paper
    if abs(difference) < 0.05:
        return f", as in the paper ({paper})"
    return f", {abs(difference):.1f} {'above' if difference > 0 else 'below'} the paper's {paper}"


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
        table, records = paper_table(name), usable(Records(folder / f"{name}.jsonl")).values()
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
    start = path.read_bytes()[: len(_FIRST_LINES)] if path.exists() else b""
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


def _table(scores: TableScores, cell: Callable[[Row, Column], str]) -> list[list[str]]:
    return [[row.title, *(cell(row, column) for column in scores.columns)] for row in scores.rows]


def _lines(scores: TableScores) -> list[list[str]]:
    def cell(row: Row, column: Column) -> str:
        if not row.has(column):
            return ""
        score, paper = scores.of(row, column), row.paper.get(column.id)
        diverged = scores.lost.get((row.name, column.id))
        ours = shown(score) if score is not None else MISSING if diverged is None else f"diverged ({diverged})"
        return ours if paper is None else f"{ours} / {paper}"

    columns = scores.columns
    lines = [["", *(column.title for column in columns)], *_table(scores, cell)]
    for name in dict.fromkeys(name for column in columns for name in scores.trivial[column.id]):
        found = (scores.trivial[column.id].get(name) for column in columns)
        lines.append([f"no learning: {name}", *("" if score is None else f"{score:.1f}" for score in found)])
    if scores.protocol == "legacy" and any(column.highest is not None for column in columns):
        lines.append(["highest known", *("" if column.highest is None else f"{column.highest}" for column in columns)])
    return lines


def _section(scores: TableScores) -> Iterator[str]:
    def tried(row: Row, column: Column) -> str:
        known = scores.of(row, column) is not None and not any(row.settings for row in scores.rows)
        return budget(row.chosen_for(column, scores.protocol)) if known else ""

    def cost(row: Row, column: Column) -> str:
        score = scores.of(row, column)
        memory = "" if score is None or score.megabytes is None else f" / {score.megabytes:.0f}"
        return "" if score is None else f"{score.seconds:.1f}{memory}"

    table, protocol = scores.table, scores.protocol
    header, *rows = _lines(scores)
    title = re.sub(r"(?<=[a-z])(?=\d)", " ", table.name).capitalize()  # "Table 1"
    yield f"## {title}, {protocol}: {table.title}\n"
    if protocol in table.notes:
        yield f"{table.notes[protocol].strip()}\n"
    names = ["`ROW` / `COLUMN`", *(f"`{column.id}`" for column in scores.columns)]
    ids = {row.title: f"{row.title} `{row.name}`" for row in scores.rows}
    yield from _markdown(header, [names, *([ids.get(line[0], line[0]), *line[1:]] for line in rows)])
    yield ""
    yield from (f"- {column.title}: {column.note}." for column in scores.columns if column.note)
    others = [row for row in scores.rows if row.paper and row.source != Row.source]
    yield from (f"- The other numbers of {row.title} are of {row.source}." for row in others)
    yield from (f"- {sentence}" for sentence in words_of(scores))
    budgets = _table(scores, tried)
    if any(any(cells) for _, *cells in budgets):
        yield _BUDGETS
        yield from _markdown(header, budgets)
    yield "\nMedian seconds of a run / largest peak memory in megabytes:\n"
    yield from _markdown(header, _table(scores, cost))
    yield ""


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" + "---:|" * (len(header) - 1)
    yield from (f"| {' | '.join(row)} |" for row in rows)
