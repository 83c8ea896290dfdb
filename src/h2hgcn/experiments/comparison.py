"""Several models on one graph and one split: what is to be run."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from h2hgcn.errors import DataError, DataWarning
from h2hgcn.experiments.cells import Cell
from h2hgcn.experiments.config import Experiment, read_experiment
from h2hgcn.experiments.graph_choice import open_graph
from h2hgcn.experiments.sections import Layer, Sections, merged
from h2hgcn.experiments.shared_settings import SPLIT, check_models, files_for, shared_settings

# What `train` adds to every model alike, which would make them look alike; unless somebody asks for it.
_TERMS = ("neighborhood_terms", "feature_terms")

# Models that are compared if none are named: those that answer whether hyperbolic space and edges help. Without
# features there is nothing for an MLP to see, and a vector for each node takes its place.
_WITH_FEATURES = ("h2h-gcn", "hgcn", "gcn", "mlp")
_WITHOUT_FEATURES = ("h2h-gcn", "gcn", "hyp", "euc")
_OF_COLLECTIONS = ("h2h-gcn", "gin", "fingerprint")


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

    @property
    def varied(self) -> str:
        """What another seed changes beside the weights, in a word."""
        return "fold" if self.first.task.name == "gc" else "split"


def default_models(flags: Sections, files: Sequence[Layer] = (), root: Path | None = None) -> list[str]:
    """The models to compare on the graph that flags and files name, if nobody says which: the usual ones, and those
    that files have settings for.
    """
    first = read_experiment(merged(shared_settings(flags, files), flags))
    first.check_held_out()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # said when the comparison opens the graph
        data = open_graph(first.graph, root)
    usual: Sequence[str] = _WITHOUT_FEATURES if getattr(data, "structural", False) else _WITH_FEATURES
    usual = _OF_COLLECTIONS if first.task.name == "gc" else usual
    named = [file.sections.get("model", {}).get("name") for file in files]
    return list(dict.fromkeys([*usual, *(str(name) for name in named if name is not None)]))


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
    check_models(files, models)
    common = merged(shared_settings(flags, files), flags)
    first = read_experiment(merged(common, {"model": {"name": models[0]}}), files_for(models[0], files))
    first.check_held_out()
    split = {name: getattr(first.task, name) for name in SPLIT if hasattr(first.task, name)}
    in_files = {name for layer in files for name in layer.sections.get("task", {})}
    terms = {name: False for name in _TERMS if hasattr(first.task, name) and name not in in_files}
    seeds = tuple(range(first.seed, first.seed + num_seeds))
    splits = _varied_splits(first.task, seeds) if vary_split else {seed: {} for seed in seeds}
    place = folder or Path("runs") / f"compare-{first.graph.name}-{first.task.name}"
    experiments: dict[str, Experiment] = {}
    cells: dict[tuple[str, int], Cell] = {}
    for model in models:
        own = files_for(model, files)
        for seed in seeds:
            task = {"name": first.task.name, **split, **splits[seed]}
            chosen = merged({"task": terms}, common, {"task": task, "model": {"name": model}, "seed": seed})
            experiments.setdefault(model, read_experiment(chosen, own))
            cells[model, seed] = Cell(chosen, place / f"{model}-seed{seed}", own, root, force)
    return Comparison(experiments, seeds, cells, vary_split)


def check_varied(comparison: Comparison, data: Any) -> None:
    """Raises if every seed is to have a split of its own, and the data have but one."""
    if not comparison.vary_split or len(comparison.seeds) < 2:
        return
    cells = list(comparison.cells.values())[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # said when the task is bound
        tests = [read_experiment(cell.flags, cell.files).task.bind(data).split.test for cell in cells]
    if np.array_equal(*tests):
        task, graph = comparison.first.task, comparison.first.graph
        advice = "leave it out" if task.protocol == "clean" else "use --protocol clean with it"
        raise DataError(f"--vary-split: {graph.name} has one {task.protocol} split for {task.name}; {advice}")


def _varied_splits(task: Any, seeds: Sequence[int]) -> dict[int, Sections]:
    """What makes the split of each seed: another fold of a collection, another draw of nodes or links."""
    if task.name != "gc":
        return {seed: {"split_seed": task.split_seed + seed} for seed in seeds}
    if len(seeds) > task.num_folds:
        raise DataError(f"--vary-split: there are {task.num_folds} folds for {len(seeds)} seeds; take fewer --seeds")
    return {seed: {"fold": (task.fold + k) % task.num_folds} for k, seed in enumerate(seeds)}
