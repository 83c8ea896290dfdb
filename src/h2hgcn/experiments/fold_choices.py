"""The choice among several settings that each fold makes for itself, on its own validation part."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from h2hgcn.experiments.records import Record
from h2hgcn.experiments.reproduction import TableRun


def chosen_records(runs: Sequence[TableRun], known: Mapping[tuple[str, int], Record]) -> list[Record]:
    """The records of a cell that count: of each fold those of the settings whose mean over seeds is best.

    Runs of one cell are given. A seed counts when all settings were run with it, so that no fold chooses among fewer.
    """
    rivals: dict[tuple[int | None, int], list[TableRun]] = {}
    for run in runs:
        rivals.setdefault((run.fold, run.seed), []).append(run)
    by_choice: dict[int | None, dict[int, list[Record]]] = {}
    for (fold, _), group in rivals.items():
        if all(run.key in known for run in group):
            for run in group:
                by_choice.setdefault(fold, {}).setdefault(run.choice, []).append(known[run.key])
    return [record for choices in by_choice.values() for record in _best(choices)]


def _best(choices: Mapping[int, list[Record]]) -> list[Record]:
    """The first of equals; settings of which a run diverged are the last."""
    return choices[max(sorted(choices), key=lambda choice: _validation(choices[choice]))]


def _validation(records: Sequence[Record]) -> float:
    if any(record["status"] != "finished" for record in records):
        return -1.0
    return fmean(float(record["metrics"]["val"][record["selection"]]) for record in records)
