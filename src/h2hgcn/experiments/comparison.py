"""Several models on one graph and one split: what is to be run, and the table that comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.cells import Cell, Outcome
from h2hgcn.experiments.config import Experiment, read_experiment
from h2hgcn.experiments.sections import Sections, merged
from h2hgcn.experiments.significance import LEVEL, p_value

# What decides on the split: the first model's settings hold for all.
_SPLIT = ("protocol", "val", "test", "split_seed", "num_folds", "fold")


@dataclass(frozen=True)
class Comparison:
    """Models and seeds, and a cell for each pair of them."""

    experiments: dict[str, Experiment]
    seeds: tuple[int, ...]
    cells: dict[tuple[str, int], Cell]
    vary_split: bool

    @property
    def first(self) -> Experiment:
        return next(iter(self.experiments.values()))


@dataclass(frozen=True)
class Row:
    """A model's scores, one for each seed that came to an end, and how it compares with the best."""

    model: str
    space: str
    scores: tuple[float, ...]
    val_scores: tuple[float, ...]
    diverged: int
    parameters: int | None
    seconds: float | None
    p_value: float | None = None

    @property
    def mean(self) -> float | None:
        return fmean(self.scores) if self.scores else None

    @property
    def deviation(self) -> float | None:
        return stdev(self.scores) if len(self.scores) > 1 else None


@dataclass(frozen=True)
class ComparisonTable:
    """Rows by score, the best first; ``differs`` is decided at ``level`` for each comparison with the best."""

    metric: str
    rows: tuple[Row, ...]
    trivial: dict[str, float]
    level: float

    def differs(self, row: Row) -> bool | None:
        return None if row.p_value is None else row.p_value < self.level


def plan(
    flags: Sections,
    models: Sequence[str],
    num_seeds: int,
    folder: Path | None = None,
    config: Path | None = None,
    root: Path | None = None,
    force: bool = False,
    vary_split: bool = False,
) -> Comparison:
    """A cell for each model and seed. All settings are checked here, before anything is run."""
    if num_seeds < 1:
        raise DataError(f"--seeds {num_seeds}: at least one is needed; with three or more one sees their noise")
    if len(set(models)) < len(models) or not models:
        raise DataError(f"--models {','.join(models)}: name each model once, such as h2h-gcn,gcn,mlp")
    first = read_experiment(merged(flags, {"model": {"name": models[0]}}), config)
    split = {name: getattr(first.task, name) for name in _SPLIT if hasattr(first.task, name)}
    seeds = tuple(range(first.seed, first.seed + num_seeds))
    place = folder or Path("runs") / f"compare-{first.graph.name}-{first.task.name}"
    experiments: dict[str, Experiment] = {}
    cells: dict[tuple[str, int], Cell] = {}
    for model in models:
        for seed in seeds:
            own_split = split | ({"split_seed": split["split_seed"] + seed} if vary_split else {})
            chosen = merged(
                flags, {"task": {"name": first.task.name, **own_split}, "model": {"name": model}, "seed": seed}
            )
            experiments.setdefault(model, read_experiment(chosen, config))
            cells[model, seed] = Cell(chosen, place / f"{model}-seed{seed}", config, root, force)
    return Comparison(experiments, seeds, cells, vary_split)


def tabulate(
    comparison: Comparison, outcomes: Mapping[tuple[str, int], Outcome], spaces: Mapping[str, str]
) -> ComparisonTable:
    """The table of all outcomes."""
    rows = [_row(model, spaces[model], comparison.seeds, outcomes) for model in comparison.experiments]
    rows.sort(key=lambda row: -1.0 if row.mean is None else row.mean, reverse=True)
    best, *others = rows
    compared = [best, *(_against(best, row, comparison.vary_split) for row in others)]
    finished = [outcome.result for outcome in outcomes.values() if outcome.status == "finished"]
    return ComparisonTable(
        finished[0]["selection"] if finished else "",
        tuple(compared),
        _trivial(finished),
        LEVEL / max(len(others), 1),
    )


def _row(model: str, space: str, seeds: Sequence[int], outcomes: Mapping[tuple[str, int], Outcome]) -> Row:
    own = [outcomes[model, seed] for seed in seeds if (model, seed) in outcomes]
    results = [outcome.result for outcome in own if outcome.status == "finished"]
    return Row(
        model,
        space,
        tuple(_score(result, "test") for result in results),
        tuple(_score(result, "val") for result in results),
        sum(outcome.status == "diverged" for outcome in own),
        results[0]["parameters"] if results else None,
        fmean(result["seconds"] for result in results) if results else None,
    )


def _score(result: dict[str, Any], part: str) -> float:
    return float(result["metrics"][part][result["selection"]])


def _against(best: Row, row: Row, paired: bool) -> Row:
    fields = {**row.__dict__, "p_value": p_value(best.scores, row.scores, paired)}
    return Row(**fields)


def _trivial(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """What needs no learning, averaged over the splits."""
    known = [result["trivial"] for result in results if result.get("trivial")]
    return {name: fmean(scores[name] for scores in known) for name in known[0]} if known else {}
