"""Several models on one graph and one split."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy import stats

from h2hgcn.errors import DataError, DataWarning
from h2hgcn.experiments.config import COMMAND_LINE, SPLIT, Experiment, Layer, choose_graph, open_graph, read_experiment
from h2hgcn.experiments.presets import Sections, merged
from h2hgcn.experiments.runner import Cell, Outcome

# The share of comparisons of equal models that may be called a difference, over all comparisons of a table.
LEVEL = 0.05
# Differences of scores below this share of them are rounding.
_ROUNDING = 1e-12


def p_value(scores: Mapping[int, float], others: Mapping[int, float], paired: bool) -> float | None:
    """The probability of such a difference of means between equal models, of which there are scores by seed: Welch's
    t-test, or where each seed has a split of its own the paired one, over the seeds that both have.

    None if there are too few seeds to tell.
    """
    if paired:
        common = sorted(scores.keys() & others.keys())
        scores, others = ({seed: each[seed] for seed in common} for each in (scores, others))
    if min(len(scores), len(others)) < 2:
        return None
    first, second = np.array(list(scores.values())), np.array(list(others.values()))
    spread = (first - second).std() if paired else first.std() + second.std()
    size = _ROUNDING * max(abs(first).max(), abs(second).max())
    if spread <= size:
        return 1.0 if abs(first.mean() - second.mean()) <= size else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of one model whose scores are all the same
        test = stats.ttest_rel(first, second) if paired else stats.ttest_ind(first, second, equal_var=False)
    return float(test.pvalue)


def mean_by_name(scores: Iterable[Mapping[str, float | None]]) -> dict[str, float]:
    """The mean of each name over those that have it, in the order in which names appear."""
    found: dict[str, list[float]] = {}
    for each in scores:
        for name, score in each.items():
            if score is not None:
                found.setdefault(name, []).append(score)
    return {name: fmean(values) for name, values in found.items()}


# What `train` adds to every model alike, which would make them look alike; unless somebody asks for it.
_TERMS = ("neighborhood_terms", "feature_terms")

# Models that are compared if none are named: those that answer whether hyperbolic space and edges help. Without
# features there is nothing for an MLP to see, and a vector for each node takes its place.
_WITH_FEATURES = ("h2h-gcn", "hgcn", "gcn", "mlp")
_WITHOUT_FEATURES = ("h2h-gcn", "gcn", "hyp", "euc")
_OF_COLLECTIONS = ("h2h-gcn", "gin", "fingerprint")


@dataclass(frozen=True)
class Comparison:
    """Models and seeds, and a cell for each pair of them, which is its key."""

    experiments: dict[str, Experiment]
    seeds: tuple[int, ...]
    cells: list[Cell]
    vary_split: bool

    @property
    def first(self) -> Experiment:
        return next(iter(self.experiments.values()))

    @property
    def varied(self) -> str:
        """What another seed changes beside the weights, in a word."""
        return "fold" if self.first.task.of_collections else "split"


def _model_of(file: Layer) -> str | None:
    name = file.sections.get("model", {}).get("name")
    return None if name is None else str(name)


def _shared(flags: Sections, files: Sequence[Layer]) -> Sections:
    """Flags, and the graph, the task and the split where only files name them; these must agree."""
    said = Layer(COMMAND_LINE, flags)
    graph = choose_graph([*files, said])
    for file in files:
        if {"dataset", "edges", "graphs"} & file.sections.get("data", {}).keys():
            other = choose_graph([file, said])
            if other.options != graph.options:
                raise DataError(
                    f"{file.origin} is about the graph {other.name}, another file about {graph.name}; models are "
                    "compared on one graph: say which, with --dataset, --edges or --graphs"
                )
    task = {}
    for name in ("name", *SPLIT):
        given = [file for file in files if name in file.sections.get("task", {})]
        if given and name not in flags.get("task", {}):
            task[name] = value = given[0].sections["task"][name]
            for file in given:
                if (other := file.sections["task"][name]) != value:
                    flag = {"name": "--task", "protocol": "--protocol"}.get(name, f"--set task.{name}=...")
                    raise DataError(
                        f"task.{name} is {value} in {given[0].origin} and {other} in {file.origin}; models are "
                        f"compared on one split: say which, with {flag}"
                    )
    known = {} if graph.fingerprint is None else {"fingerprint": graph.fingerprint}
    return merged({"data": {**graph.options, **known}, "task": task}, flags)


def default_models(flags: Sections, files: Sequence[Layer] = (), root: Path | None = None) -> list[str]:
    """The models to compare on the graph that flags and files name, if nobody says which: the usual ones, and those
    that files have settings for.
    """
    first = read_experiment(_shared(flags, files))
    first.check_held_out()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # given when the comparison opens the graph
        data = open_graph(first.graph, root)
    usual: Sequence[str] = _WITHOUT_FEATURES if getattr(data, "structural", False) else _WITH_FEATURES
    usual = _OF_COLLECTIONS if first.task.of_collections else usual
    return list(dict.fromkeys([*usual, *(name for file in files if (name := _model_of(file)) is not None)]))


def plan(
    flags: Sections,
    models: Sequence[str],
    num_seeds: int,
    folder: Path | None = None,
    files: Sequence[Layer] = (),
    root: Path | None = None,
    force: bool = False,
    vary_split: bool = False,
) -> Comparison:
    """A cell for each model and seed. All settings are checked here, before anything is run."""
    if num_seeds < 1:
        raise DataError(f"--seeds {num_seeds}: at least one is needed; with three or more one sees their noise")
    if len(set(models)) < len(models) or not models:
        raise DataError(f"--models {','.join(models)}: name each model once, such as h2h-gcn,gcn,mlp")
    for file in files:
        if (name := _model_of(file)) not in (None, *models):
            raise DataError(f"{file.origin} is for the model {name}, which is not among --models {','.join(models)}")
    files_of = {model: tuple(file for file in files if _model_of(file) in (None, model)) for model in models}
    common = _shared(flags, files)
    first = read_experiment(merged(common, {"model": {"name": models[0]}}), files_of[models[0]])
    first.check_held_out()
    split = {name: getattr(first.task, name) for name in SPLIT if hasattr(first.task, name)}
    in_files = {name for layer in files for name in layer.sections.get("task", {})}
    terms = {name: False for name in _TERMS if hasattr(first.task, name) and name not in in_files}
    seeds = tuple(range(first.seed, first.seed + num_seeds))
    splits = _varied_splits(first.task, seeds) if vary_split else {seed: {} for seed in seeds}
    place = folder or Path("runs") / f"compare-{first.graph.name}-{first.task.name}"
    experiments: dict[str, Experiment] = {}
    cells: list[Cell] = []
    for model, own in files_of.items():
        for seed in seeds:
            task = {"name": first.task.name, **split, **splits[seed]}
            chosen = merged({"task": terms}, common, {"task": task, "model": {"name": model}, "seed": seed})
            if model not in experiments:
                experiments[model] = read_experiment(chosen, own)
            cells.append(Cell(chosen, place / f"{model}-seed{seed}", (model, seed), own, root, force))
    return Comparison(experiments, seeds, cells, vary_split)


def _varied_splits(task: Any, seeds: Sequence[int]) -> dict[int, Sections]:
    """What makes the split of each seed: another fold of a collection, another draw of nodes or links."""
    if not task.of_collections:
        return {seed: {"split_seed": task.split_seed + seed} for seed in seeds}
    if len(seeds) > task.num_folds:
        raise DataError(f"--vary-split: there are {task.num_folds} folds for {len(seeds)} seeds; take fewer --seeds")
    return {seed: {"fold": (task.fold + k) % task.num_folds} for k, seed in enumerate(seeds)}


def check_varied(comparison: Comparison, data: Any) -> None:
    """Raises if every seed is to have a split of its own, and the data have but one."""
    if not comparison.vary_split or len(comparison.seeds) < 2:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # given when the task is bound
        tests = [read_experiment(cell.flags, cell.files).task.bind(data).split.test for cell in comparison.cells[:2]]
    if np.array_equal(*tests):
        task, graph = comparison.first.task, comparison.first.graph
        advice = "leave it out" if task.protocol == "clean" else "use --protocol clean with it"
        raise DataError(f"--vary-split: {graph.name} has one {task.protocol} split for {task.name}; {advice}")


@dataclass(frozen=True)
class Row:
    """A model's scores by seed, None where it failed on NaN, and how it compares with the best.

    ``learnt`` says whether it is better than chance.
    """

    model: str
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
        return fmean(self.scores.values()) if self.scores else None

    @property
    def val_mean(self) -> float | None:
        known = [score for score in self.val.values() if score is not None]
        return fmean(known) if known else None

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
        """The first row, if it has learned anything."""
        return self.rows[0] if self.rows[0].mean is not None and self.rows[0].learnt else None

    def differs(self, row: Row) -> bool | None:
        return None if row.p_value is None else row.p_value < self.level


def tabulate(comparison: Comparison, outcomes: Mapping[tuple[str, int], Outcome], metric: str) -> ComparisonTable:
    """The table of all outcomes by the metric that selects."""
    trivial = mean_by_name(outcome.result.get("trivial") or {} for outcome in outcomes.values())
    rows = []
    for model in comparison.experiments:
        own = {seed: outcomes[model, seed] for seed in comparison.seeds if (model, seed) in outcomes}
        over = {seed: outcome for seed, outcome in own.items() if outcome.status in ("finished", "diverged")}
        results = [outcome.result for outcome in over.values() if outcome.status == "finished"]
        test, val = ({seed: outcome.score(part) for seed, outcome in over.items()} for part in ("test", "val"))
        parameters = results[0]["parameters"] if results else None
        row = Row(model, test, val, parameters, fmean(each["seconds"] for each in results) if results else None)
        rows.append(replace(row, learnt=_has_learnt(row, metric, trivial.get("majority class"))))
    rows.sort(key=lambda row: (row.mean is not None, row.learnt, row.mean or 0.0), reverse=True)
    table = ComparisonTable(metric, tuple(rows), trivial, LEVEL / max(len(rows) - 1, 1))
    if table.best is None:
        return table
    best, *others = rows
    compared = [replace(row, p_value=p_value(best.scores, row.scores, comparison.vary_split)) for row in others]
    return replace(table, rows=(best, *compared))


def _has_learnt(row: Row, metric: str, majority: float | None) -> bool:
    """Whether links are ranked better than by lot, or classes predicted better than by always taking the same."""
    if row.mean is None or row.val_mean is None:
        return False
    if metric == "auc":
        return min(row.val_mean, row.mean) > 0.5
    return majority is None or row.mean > majority
