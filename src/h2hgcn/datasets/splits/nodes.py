"""Splits for node classification: stratified, Planetoid's, and HGCN's."""

import warnings
from itertools import combinations
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import to_numpy
from h2hgcn.datasets.conventions import UNLABELLED
from h2hgcn.datasets.splits.splits import Indices, NodeProtocol, NodeSplit, check_fractions, check_protocol, check_seed
from h2hgcn.errors import DataError, DataWarning

# The shares of validation and test that each dataset is published with, as HGCN's function takes them.
_PUBLISHED = {"disease": (0.10, 0.60), "disease_lp": (0.10, 0.60), "disease_nc": (0.10, 0.60), "airport": (0.15, 0.15)}
_OTHERWISE = (0.15, 0.15)


def split_nodes(
    graph: Any,
    val: float | None = None,
    test: float | None = None,
    *,
    seed: int = 1234,
    protocol: NodeProtocol = "clean",
) -> NodeSplit:
    """Splits the labelled nodes of a PyG ``Data``.

    ``"clean"``: at random, every class in the same proportions. ``"given"``: ``train_mask``, ``val_mask`` and
    ``test_mask`` of the graph, from a PyG ``Data`` or from a column ``split`` beside the labels; ``"planetoid"`` is the
    same for Cora and PubMed. ``"legacy"``: the masks where there are any, else HGCN's function for two classes, bit for
    bit; given more classes, it puts nodes into several parts, and a warning counts them. Shares that are not given are
    those that the dataset is published with, else 15 % each.
    """
    check_protocol(protocol, get_args(NodeProtocol))
    check_seed(seed)
    if protocol in ("planetoid", "given") or (protocol == "legacy" and _has_masks(graph)):
        return _from_masks(graph, seed, protocol)
    published = _PUBLISHED.get(getattr(graph, "name", ""), _OTHERWISE)
    val = published[0] if val is None else val
    test = published[1] if test is None else test
    check_fractions(val, test)
    labels = node_labels(graph)
    if protocol == "legacy":
        split = _legacy(labels, val, test, seed)
        _warn_of_overlap(split)
        return split
    return _stratified(labels, val, test, seed)


def node_labels(graph: Any) -> NDArray[np.int64]:
    """The class of each node, known to be one integer each."""
    if graph.y is None:
        raise DataError("the graph has no labels (y); node classification needs them")
    labels = to_numpy(graph.y)
    if labels.ndim != 1:
        raise DataError(f"labels must be one class a node, but y has shape {labels.shape}")
    if labels.dtype.kind not in "iu" or len(labels) != graph.num_nodes:
        raise DataError(
            f"y is {labels.dtype} of length {len(labels)}; it takes an integer for each of {graph.num_nodes} nodes"
        )
    if len(labels) and labels.min() < UNLABELLED:
        raise DataError(
            f"y holds the class {labels.min()}; classes are counted from 0, and {UNLABELLED} is for nodes without one"
        )
    if (labels == UNLABELLED).all():
        raise DataError("no node has a label")
    return labels.astype(np.int64, copy=False)


def _stratified(labels: NDArray[np.int64], val: float, test: float, seed: int) -> NodeSplit:
    random = np.random.RandomState(seed)
    parts: tuple[list[Indices], ...] = ([], [], [])
    for label in np.unique(labels[labels != UNLABELLED]):
        nodes = np.flatnonzero(labels == label)
        random.shuffle(nodes)
        num_test = round(test * len(nodes))
        num_val = min(round(val * len(nodes)), len(nodes) - num_test)
        members = np.split(nodes, [len(nodes) - num_val - num_test, len(nodes) - num_test])
        for part, some in zip(parts, members, strict=True):
            part.append(some)
    train, validation, tested = (np.sort(np.concatenate(part)) for part in parts)
    if not len(train):
        raise DataError("no node is left to train on; lower val and test")
    return NodeSplit(train, validation, tested, seed, "clean")


def _legacy(labels: NDArray[np.int64], val: float, test: float, seed: int) -> NodeSplit:
    random = np.random.RandomState(seed)
    labelled = np.flatnonzero(labels != UNLABELLED)
    # meant for labels 0 and 1; of others, all but 1 count as negative, and as positive, too
    positive, negative = labelled[labels[labelled] != 0], labelled[labels[labelled] != 1]
    random.shuffle(positive)
    random.shuffle(negative)
    smaller = min(len(positive), len(negative))
    first, second = round(val * smaller), round(val * smaller) + round(test * smaller)
    return NodeSplit(
        train=np.concatenate([positive[second:], negative[second:]]),
        val=np.concatenate([positive[:first], negative[:first]]),
        test=np.concatenate([positive[first:second], negative[first:second]]),
        seed=seed,
        protocol="legacy",
    )


def _warn_of_overlap(split: NodeSplit) -> None:
    test, val = np.unique(split.test), np.unique(split.val)
    in_both = [
        int(np.isin(nodes, others).sum()) for nodes, others in ((test, split.train), (test, val), (val, split.train))
    ]
    if any(in_both):
        warnings.warn(
            f"of {len(test)} distinct test nodes, {in_both[0]} are also training nodes and {in_both[1]} validation "
            f"nodes; of {len(val)} distinct validation nodes, {in_both[2]} are also training nodes: the legacy split "
            "is made for labels 0 and 1. Figures on it are too good; protocol='clean' has disjoint parts",
            DataWarning,
            stacklevel=3,
        )


def _has_masks(graph: Any) -> bool:
    return all(getattr(graph, f"{part}_mask", None) is not None for part in ("train", "val", "test"))


def brings_split(graph: Any) -> bool:
    """Whether a graph has one split of its nodes as masks; several, in columns, leave a choice."""
    masks = [getattr(graph, f"{part}_mask", None) for part in ("train", "val", "test")]
    return all(mask is not None and np.shape(mask) == (graph.num_nodes,) for mask in masks)


def _from_masks(graph: Any, seed: int, protocol: NodeProtocol) -> NodeSplit:
    if not _has_masks(graph):
        raise DataError(
            "the graph came without train_mask, val_mask and test_mask; give labels with a column 'split', or use "
            "protocol='clean'"
        )
    masks = {part: _mask(graph, f"{part}_mask") for part in ("train", "val", "test")}
    for (one, mask), (other, another) in combinations(masks.items(), 2):
        shared = int((mask & another).sum())
        if shared:
            raise DataError(f"{one}_mask and {other}_mask share {shared} nodes; parts of a split are disjoint")
    train, val, test = (np.flatnonzero(mask) for mask in masks.values())
    return NodeSplit(train, val, test, seed, protocol)


def _mask(graph: Any, name: str) -> NDArray[np.bool_]:
    mask = to_numpy(getattr(graph, name))
    if mask.dtype.kind != "b" or mask.shape != (graph.num_nodes,):
        raise DataError(
            f"{name} is {mask.dtype} of shape {mask.shape}; it takes True or False for each of {graph.num_nodes} nodes "
            "(of several splits, choose one column)"
        )
    return mask
