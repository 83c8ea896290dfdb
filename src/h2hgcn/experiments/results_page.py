"""The tables as text: ours beside the paper's."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from h2hgcn.errors import DataError
from h2hgcn.experiments.records import Record, Records
from h2hgcn.experiments.results_words import budget, words_of
from h2hgcn.experiments.table_cells import Score, TableScores, table_scores
from h2hgcn.experiments.table_records import usable
from h2hgcn.experiments.tables import TABLES, Column, PaperTable, Row, paper_table

MISSING = "missing"

_INTRODUCTION = """# Results

Written by `h2hgcn reproduce --write docs/results.md` from the records in `results/`; none of our numbers is typed.

A cell has our mean ± deviation in per cent, the number of runs in brackets, and the paper's number after the stroke.
`legacy` is the paper's protocol: one split, the seed of weights, negatives and dropout varied. `clean` varies the split
with the seed. With folds, mean and deviation are over the folds, of each of which the mean over seeds is taken; where
several settings are named, each fold chose among them on its own validation part.
Settings are those that `h2hgcn train` starts from, frozen in `src/h2hgcn/experiments/dai2021/`. "Highest known" is the
highest number that we found reported by anybody, by whatever protocol.

Below each table stands what follows from it. "Within noise" is said from p = 0.05 on, by a t-test over seeds, which is
paired where both rows have the same splits or folds; p is not corrected for the number of rows, the best of which is
compared, so that a p just below is no evidence. Every run has one thread of a CPU; the machine had other work, too, so
that seconds differ by a factor of several, and memory is that of a process that may have run other cells before.

The number in row `ROW` and column `COLUMN` of table `TABLE` comes from
`h2hgcn reproduce TABLE --protocol PROTOCOL --cells COLUMN --models ROW --seeds N`, where `N` is the number of runs, or
that of runs of a fold.
"""

_BUDGETS = """
How many settings were tried for each cell, on validation data: trials of `h2hgcn tune`, random settings, or settings
picked by hand; "?" where the number was not recorded. "As" names where settings were copied from, without a search.
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
    yield "\nSeconds of a run, the median, and the largest peak memory in megabytes:\n"
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
