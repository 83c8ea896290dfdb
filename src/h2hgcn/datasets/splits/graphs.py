"""Folds for graph classification: those of the fair comparison (Errica et al. 2020), and our own."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np

from h2hgcn.datasets.folders import cache_folder, data_root
from h2hgcn.datasets.named.tu import TU_FACTS
from h2hgcn.datasets.splits.splits import GraphSplit, check_protocol, check_seed
from h2hgcn.errors import DataError

# The share of what is left after the test fold that selects hyper-parameters, as in the fair comparison.
_INNER_VALIDATION = 0.1

_ADDRESS = "https://github.com/diningphil/gnn-comparison"


def split_graphs(
    graphs: Any,
    folds: int = 10,
    *,
    seed: int = 1234,
    protocol: Literal["clean", "fair-comparison"] = "clean",
    root: str | Path | None = None,
) -> tuple[GraphSplit, ...]:
    """Folds of a collection with a class ``y`` for every graph; each has its own test part and an inner hold-out.

    ``"clean"``: stratified at random. ``"fair-comparison"``: the ten published folds of ``dd``, ``proteins`` or
    ``enzymes``, from ``splits/fair-comparison/*_splits.json`` in the data folder.
    """
    check_protocol(protocol, ("clean", "fair-comparison"))
    check_seed(seed)
    if protocol == "fair-comparison":
        return _published(graphs, seed, root)
    labels = np.asarray([int(label) for label in graphs.y])
    smallest = np.bincount(labels)[np.unique(labels)].min()
    if not 2 <= folds <= smallest:
        raise DataError(f"folds={folds} must lie between 2 and {smallest}, the size of the smallest class")
    from sklearn.model_selection import StratifiedKFold, train_test_split  # takes a while, and serves this alone

    splitter = StratifiedKFold(folds, shuffle=True, random_state=np.random.RandomState(seed))
    result = []
    for rest, test in splitter.split(labels, labels):
        random = np.random.RandomState(seed)
        train, val = train_test_split(rest, test_size=_INNER_VALIDATION, stratify=labels[rest], random_state=random)
        result.append(GraphSplit(np.sort(train), np.sort(val), test, seed, protocol))
    return tuple(result)


def _published(graphs: Any, seed: int, root: str | Path | None) -> tuple[GraphSplit, ...]:
    name = getattr(graphs, "name", None)
    if name not in TU_FACTS:
        raise DataError(
            f"the fair comparison has folds for {', '.join(TU_FACTS)}, not for {name!r}; use protocol='clean'"
        )
    file = f"{TU_FACTS[name].folder}_splits.json"
    places = [base / "splits" / "fair-comparison" / file for base in dict.fromkeys([data_root(root), cache_folder()])]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise DataError(f"{file} is missing: put it (from {_ADDRESS}) into {places[0].parent}, or use protocol='clean'")
    try:
        folds = json.loads(path.read_text())
        splits = tuple(
            GraphSplit(
                np.asarray(fold["model_selection"][0]["train"], dtype=np.int64),
                np.asarray(fold["model_selection"][0]["validation"], dtype=np.int64),
                np.asarray(fold["test"], dtype=np.int64),
                seed,
                "fair-comparison",
            )
            for fold in folds
        )
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DataError(f"{path} is not a file of folds ({error!r}); put the original in its place") from error
    _check_folds(path, splits, len(graphs))
    return splits


def _check_folds(path: Path, splits: tuple[GraphSplit, ...], size: int) -> None:
    for number, split in enumerate(splits):
        members = np.sort(np.concatenate([split.train, split.val, split.test]))
        if not np.array_equal(members, np.arange(size)):
            raise DataError(
                f"{path}: fold {number} does not hold each of {size} graphs once; put the original in its place"
            )
