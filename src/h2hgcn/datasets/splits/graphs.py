"""Folds for graph classification: those of the fair comparison (Errica et al. 2020), and our own."""

import json
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.datasets.folders import cache_folder, data_root
from h2hgcn.datasets.graph_list import as_collection
from h2hgcn.datasets.named.origins import TU_FACTS
from h2hgcn.datasets.splits.splits import GraphSplit, check_protocol, check_seed
from h2hgcn.errors import DataError

# The share of what is left after the test fold that selects hyper-parameters, as in the fair comparison.
_INNER_VALIDATION = 0.1

_PUBLISHED_FOLDS = 10
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

    ``graphs`` is what ``fit`` takes: a list of ``Data``, a PyG dataset, or what ``load_graphs`` returns.

    ``"clean"``: stratified at random. ``"fair-comparison"``: the ten published folds of ``dd``, ``proteins`` or
    ``enzymes``, from ``splits/fair-comparison/*_splits.json`` in the data folder, which is ``root`` or the one that the
    collection came from.
    """
    check_protocol(protocol, ("clean", "fair-comparison"))
    check_seed(seed)
    graphs = as_collection(graphs)
    if protocol == "fair-comparison":
        return _published(graphs, seed, getattr(graphs, "data_root", None) if root is None else root)
    labels = _classes(graphs)
    sizes = np.bincount(labels)
    smallest = int(sizes[sizes > 0].min())
    if smallest < 2:
        rare = int(np.flatnonzero(sizes == smallest)[0])
        name = rare if getattr(graphs, "label_names", None) is None else graphs.label_names[rare]
        raise DataError(f"the class {name} has one graph; give every class several, at least one for each part")
    if not isinstance(folds, int | np.integer) or not 2 <= folds <= smallest:
        raise DataError(
            f"folds={folds!r} must lie between 2 and {smallest}, the size of the smallest class; "
            f"choose fewer folds (--set task.num_folds={smallest}), or add graphs"
        )
    from sklearn.model_selection import StratifiedKFold, train_test_split  # takes a while, and serves this alone

    splitter = StratifiedKFold(folds, shuffle=True, random_state=np.random.RandomState(seed))
    result = []
    for rest, test in splitter.split(labels, labels):
        random = np.random.RandomState(seed)
        try:
            held_out = max(math.ceil(_INNER_VALIDATION * len(rest)), int((sizes > 0).sum()))  # each class, if few
            train, val = train_test_split(rest, test_size=held_out, stratify=labels[rest], random_state=random)
        except ValueError as error:  # of some class there is nobody to spare
            raise DataError(
                f"with folds={folds}, {len(rest)} graphs are left to train and validate, of which "
                f"{held_out} cannot be held out class by class ({error}); give more graphs of every class"
            ) from error
        result.append(GraphSplit(np.sort(train), np.sort(val), test, seed, protocol))
    return tuple(result)


def _classes(graphs: Any) -> NDArray[np.int64]:
    y = getattr(graphs, "y", None)
    if y is None:
        raise DataError(f"{type(graphs).__name__} has no y; give a collection with one class a graph in its y")
    try:
        given = np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)
    except ValueError as error:
        raise DataError(f"y must hold one class for each of {len(graphs)} graphs ({error})") from error
    if given.size != len(graphs) or not given.size or given.dtype.kind not in "biuf":
        raise DataError(f"y must hold one class for each of {len(graphs)} graphs, but is {given.dtype} {given.shape}")
    values = given.reshape(-1).astype(np.float64)
    is_class = np.isfinite(values) & (np.floor(values) == values) & (values >= 0)
    if not is_class.all():
        raise DataError(f"y has {values[~is_class][0]:g} among its classes; count classes from 0 in whole numbers")
    return values.astype(np.int64)


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
    _check_order(graphs)
    try:
        splits = tuple(
            GraphSplit(
                _members(fold["model_selection"][0]["train"]),
                _members(fold["model_selection"][0]["validation"]),
                _members(fold["test"]),
                seed,
                "fair-comparison",
            )
            for fold in json.loads(path.read_text())
        )
    except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise DataError(f"{path} is not a file of folds ({error!r}); put the original in its place") from error
    _check_folds(path, splits, len(graphs))
    return splits


def _members(numbers: Any) -> NDArray[np.int64]:
    return np.asarray(numbers, dtype=np.int64).reshape(-1)


def _check_order(graphs: Any) -> None:
    """The published folds count graphs as the files have them."""
    if hasattr(graphs, "indices") and list(graphs.indices()) != list(range(graphs.len())):
        raise DataError(
            f"the folds of the fair comparison are for {graphs.name} whole and in its order, not for a selection or a "
            "shuffled copy; pass it as load_dataset gives it"
        )


def _check_folds(path: Path, splits: tuple[GraphSplit, ...], size: int) -> None:
    for number, split in enumerate(splits):
        if not _holds_each_once([split.train, split.val, split.test], size):
            raise DataError(
                f"{path}: fold {number} does not hold each of {size} graphs once; put the original in its place"
            )
    if len(splits) != _PUBLISHED_FOLDS or not _holds_each_once([split.test for split in splits], size):
        raise DataError(
            f"{path}: its {len(splits)} folds are not {_PUBLISHED_FOLDS} that test each of {size} graphs once; put the "
            "original in its place"
        )


def _holds_each_once(parts: list[NDArray[np.int64]], size: int) -> bool:
    return np.array_equal(np.sort(np.concatenate(parts)), np.arange(size))
