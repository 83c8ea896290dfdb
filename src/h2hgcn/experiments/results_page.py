"""The tables as text: ours beside the paper's."""

from collections.abc import Sequence
from pathlib import Path

from h2hgcn.experiments.records import Record, Records
from h2hgcn.experiments.reproduction import runs_of
from h2hgcn.experiments.table_cells import Score, score_of, trivial_names, trivial_scores
from h2hgcn.experiments.tables import TABLES, Column, PaperTable, Row, paper_table

MISSING = "missing"

_INTRODUCTION = """# Results

Written by `h2hgcn reproduce --write docs/results.md` from the records in `results/`; nothing here is typed by hand.

A cell has our mean ± deviation in per cent, the number of runs in brackets, and the paper's number after the stroke.
`legacy` is the paper's protocol: one split, the seed of weights, negatives and dropout varied. `clean` varies the split
with the seed. Graph classification has ten folds: the deviation is over the means of the folds. Every run has one
thread of a CPU. Settings are the presets of `h2hgcn train`, which say how they were chosen.
"""


def results_page(folder: Path) -> str:
    """All tables of which there are records, as Markdown."""
    parts = [_INTRODUCTION]
    for name in TABLES:
        table = paper_table(name)
        records = list(Records(folder / f"{name}.jsonl"))
        there = {record["protocol"] for record in records}
        parts += [_section(table, records, protocol) for protocol in table.protocols if protocol in there]
    return "\n".join(parts)


def table_lines(table: PaperTable, records: list[Record], protocol: str) -> list[list[str]]:
    """Header and rows, as texts."""
    columns = [column for column in table.columns if protocol in column.protocols]
    lines = [["", *(column.title for column in columns)]]
    lines += [[row.title, *(_cell(table, records, row, column, protocol) for column in columns)] for row in table.rows]
    for name in trivial_names(table, records, protocol):
        scores = [trivial_scores(records, column, protocol).get(name) for column in columns]
        lines.append([f"no learning: {name}", *("" if score is None else f"{score:.1f}" for score in scores)])
    if any(column.highest is not None for column in columns):
        lines.append(["highest known", *("" if column.highest is None else f"{column.highest}" for column in columns)])
    return lines


def _section(table: PaperTable, records: list[Record], protocol: str) -> str:
    header, *rows = table_lines(table, records, protocol)
    lines = [f"## {table.name.capitalize()}, {protocol}: {table.title}", "", _markdown(header)]
    lines += ["|" + "---|" + "---:|" * (len(header) - 1), *map(_markdown, rows), ""]
    lines += [f"- {column.title}: {column.note}." for column in table.columns if column.note]
    lines += [f"- `h2hgcn reproduce {table.name} --protocol {protocol}` runs what is missing.", ""]
    return "\n".join(lines)


def _markdown(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(table: PaperTable, records: list[Record], row: Row, column: Column, protocol: str) -> str:
    if not row.has(column):
        return ""
    paper = row.paper.get(column.id)
    score = score_of(records, column, protocol, _digests(table, records, row, column, protocol))
    ours = MISSING if score is None else shown(score)
    return ours if paper is None else f"{ours} / {paper}"


def shown(score: Score) -> str:
    """A score as it stands in a table."""
    deviation = "" if score.deviation is None else f" ± {score.deviation:.1f}"
    lost = f", {score.diverged} diverged" if score.diverged else ""
    return f"{score.mean:.1f}{deviation} ({score.runs}{lost})"


def _digests(table: PaperTable, records: list[Record], row: Row, column: Column, protocol: str) -> set[str]:
    """The hashes of the settings that hold now: records of others are kept, but not shown."""
    seeds = 1 + max((record["seed"] for record in records), default=0)
    if column.id not in {record["column"] for record in records}:
        return set()
    return {run.digest for run in runs_of(table, protocol, seeds, (column.id,), (row.name,))}
