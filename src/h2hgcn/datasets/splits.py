"""Splits of edges, nodes and graphs, by named protocols."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.datasets.arrays import MASKS, UNLABELLED, edge_ends, edge_weights, to_numpy
from h2hgcn.datasets.collection import as_collection
from h2hgcn.datasets.legacy_splits import draw_legacy_negatives, removed_loops, split_legacy_nodes
from h2hgcn.datasets.pairs import Pairs, PairSpace, Ranks, contains, nth_absent
from h2hgcn.datasets.registry import TU_FACTS, cache_folder, data_root
from h2hgcn.errors import DataError, DataWarning

Protocol = Literal["clean", "legacy"]
NodeProtocol = Literal["clean", "legacy", "planetoid", "given"]
Indices = NDArray[np.int64]
Parts = tuple[Indices, Indices, Indices]


class _Split:
    def __repr__(self) -> str:
        given = {k: v for k, v in vars(self).items() if v is not None}
        shown = (f"{k}={len(v) if isinstance(v, np.ndarray) else repr(v)}" for k, v in given.items())
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, eq=False, repr=False)
class EdgeSplit(_Split):
    """Pairs of nodes (NumPy arrays ``(k, 2)``) to train, validate and test on, and as many pairs without an edge to
    validate and test against.

    An encoder may see the graph of ``train`` alone: ``train_edge_index`` and ``train_edge_weight``, as PyG wants them.
    Negatives to train with are not part of a split, but drawn afresh: ``draw_negatives``.
    """

    train: Pairs
    val: Pairs
    test: Pairs
    val_neg: Pairs
    test_neg: Pairs
    num_nodes: int
    seed: int
    protocol: Protocol
    directed: bool = False
    train_weights: NDArray[np.float32] | None = None

    def train_edge_weight(self) -> Tensor | None:
        """The weights of ``train_edge_index``, if the graph has any."""
        if self.train_weights is None:
            return None
        weights = torch.from_numpy(self.train_weights)
        if self.directed:
            return weights
        return torch.cat([weights, weights[torch.from_numpy(self.train[:, 0] != self.train[:, 1])]])

    def train_edge_index(self) -> Tensor:
        """The training graph as PyG wants it, both directions of undirected edges."""
        edges = torch.from_numpy(self.train.T.copy())
        if self.directed:
            return edges
        return torch.cat([edges, edges[:, edges[0] != edges[1]].flip(0)], dim=1)

    def answerable(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Whether both nodes of each pair have an edge in the training graph, in either direction.

        Of a pair with a node that has none, the training graph says nothing; only features can.
        """
        linked = np.zeros(self.num_nodes, dtype=bool)
        linked[self.train[self.train[:, 0] != self.train[:, 1]]] = True
        return linked[pairs[:, 0]] & linked[pairs[:, 1]]

    def table(self) -> dict[str, NDArray[Any]]:
        """Pairs as columns ``source``, ``target``, ``split`` and ``label``, which is 0 for pairs without an edge."""
        kinds = ("train", "val", "val_neg", "test", "test_neg")
        pairs = np.concatenate([getattr(self, kind) for kind in kinds])
        sizes = [len(getattr(self, kind)) for kind in kinds]
        parts = np.repeat([kind.removesuffix("_neg") for kind in kinds], sizes)
        return {
            "source": pairs[:, 0],
            "target": pairs[:, 1],
            "split": parts,
            "label": np.repeat([1, 1, 0, 1, 0], sizes),
        }

    @property
    def space(self) -> PairSpace:
        """The pairs that negatives are drawn from."""
        return PairSpace(self.num_nodes, self.directed, with_self=self.protocol == "legacy")


@dataclass(frozen=True, eq=False, repr=False)
class _IndexSplit(_Split):
    train: Indices
    val: Indices
    test: Indices
    seed: int
    protocol: str
    item: ClassVar[str]

    def table(self) -> dict[str, NDArray[Any]]:
        """The indices and the part (column ``split``) of each."""
        parts = {part: getattr(self, part) for part in ("train", "val", "test")}
        sizes = [len(members) for members in parts.values()]
        return {self.item: np.concatenate(list(parts.values())), "split": np.repeat(list(parts), sizes)}


class NodeSplit(_IndexSplit):
    """Indices of nodes to train, validate and test on: ``train``, ``val`` and ``test``."""

    item = "node"


class GraphSplit(_IndexSplit):
    """Indices of graphs to train, validate and test on, ``train``, ``val`` and ``test``: one fold."""

    item = "graph"


def _check_protocol(protocol: str, known: tuple[str, ...]) -> None:
    if protocol not in known:
        raise DataError(f"protocol={protocol!r} is not known; use one of {', '.join(map(repr, known))}")


def _check_fractions(val: float, test: float) -> None:
    if not (0 <= val < 1 and 0 <= test < 1 and val + test < 1):
        raise DataError(f"val={val} and test={test} must be shares of the whole that leave something to train on")


def check_seed(seed: int) -> None:
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise DataError(f"seed={seed!r} must be an integer between 0 and {2**32 - 1}")


def split_edges(
    graph: Any, val: float = 0.05, test: float = 0.1, *, seed: int = 1234, protocol: Protocol = "clean"
) -> EdgeSplit:
    """Splits the edges of a PyG ``Data``.

    ``"clean"``: edges are shared out at random; negatives are distinct pairs of different nodes without an edge,
    none of them in two parts. ``"legacy"``: HGCN's procedure bit for bit, self-pairs among edges and negatives
    included. The same seed gives the same split everywhere: NumPy's ``RandomState`` is frozen.
    """
    _check_protocol(protocol, get_args(Protocol))
    _check_fractions(val, test)
    check_seed(seed)
    given, weights = _given_edges(graph, protocol)
    directed = bool(getattr(graph, "directed", False))
    space = PairSpace(int(graph.num_nodes or 0), directed, with_self=protocol == "legacy")
    inside = space.with_self | (given[:, 0] != given[:, 1])
    ranks = space.ranks(space.ordered(given[inside]))
    ranks, first = (np.unique(ranks), None) if weights is None else np.unique(ranks, return_index=True)
    num_val, num_test = int(len(ranks) * val), int(len(ranks) * test)
    held_out, absent = num_val + num_test, len(space) - len(ranks)
    random = np.random.RandomState(seed)
    order = np.arange(len(ranks))
    random.shuffle(order)
    if absent < held_out:
        advice = "lower val and test" if absent else "there is no link to predict"
        needed = f"{held_out} pairs without an edge are needed to validate and test against"
        raise DataError(f"{needed}, but the graph has {absent}; {advice}")
    edges = space.pairs(ranks[order])
    draw = draw_legacy_negatives if protocol == "legacy" else _clean_negatives
    negatives = space.pairs(draw(random, space, ranks, held_out))
    _warn_of_self_pairs(edges, negatives)
    for part, share, count in (("val", val, num_val), ("test", test, num_test)):
        if share and not count:
            warnings.warn(f"{len(edges)} edges leave none for {part}={share}", DataWarning, stacklevel=2)
    return EdgeSplit(
        train=edges[held_out:], val=edges[:num_val], test=edges[num_val:held_out],
        val_neg=negatives[:num_val], test_neg=negatives[num_val:],
        num_nodes=space.num_nodes, seed=seed, protocol=protocol, directed=directed,
        train_weights=None if weights is None else weights[inside][first][order[held_out:]],
    )  # fmt: skip


def _given_edges(graph: Any, protocol: Protocol) -> tuple[Pairs, NDArray[np.float32] | None]:
    """The edges of a graph, with the self-loops that the legacy protocol puts back, and their weights."""
    if protocol == "legacy" and getattr(graph, "directed", False):
        raise DataError("the legacy protocol knows undirected graphs only; use protocol='clean'")
    if getattr(graph, "edge_index", None) is None:
        raise DataError("the graph has no edge_index; link prediction needs edges")
    edges, weights = edge_ends(graph).T, edge_weights(graph)
    if protocol == "clean" or not len(loops := removed_loops(graph)):
        return edges, weights
    if weights is not None:
        raise DataError("the legacy protocol puts back self-loops, which have no weights here; use protocol='clean'")
    return np.concatenate([edges, loops]), None


# Pairs are drawn and rejected up to this share of edges among all pairs; above it the absent ones are numbered.
_SPARSE = 0.5


def _clean_negatives(random: np.random.RandomState, space: PairSpace, edges: Ranks, count: int) -> Ranks:
    if len(edges) + count > _SPARSE * len(space):
        return nth_absent(edges, random.permutation(len(space) - len(edges))[:count])
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        fresh = random.randint(0, len(space), 2 * count, dtype=np.int64)
        drawn = np.concatenate([drawn, fresh[~contains(edges, fresh)]])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]  # the first of equals, in the order drawn
    return drawn[:count]


def _warn_of_self_pairs(edges: Pairs, negatives: Pairs) -> None:
    counts = {"edges": (edges[:, 0] == edges[:, 1]).sum(), "negatives": (negatives[:, 0] == negatives[:, 1]).sum()}
    found = " and ".join(f"{count} among its {name}" for name, count in counts.items() if count)
    if found:
        message = f"the legacy split has self-pairs: {found}; protocol='clean' has none"
        warnings.warn(message, DataWarning, stacklevel=3)


def draw_negatives(split: EdgeSplit, count: int, random: np.random.RandomState | np.random.Generator | int) -> Pairs:
    """``count`` pairs ``(count, 2)`` to train against, drawn afresh with replacement from all that are not training
    edges. ``random`` is one of NumPy's generators, which continues from call to call, or a seed.

    Pairs held out for validation and test may be among them, in both protocols: to leave them out would tell the
    model which pairs these are. Legacy has self-pairs, clean has none.
    """
    if not isinstance(count, int | np.integer) or count < 0:
        raise DataError(f"count={count!r} must be a whole number, 0 or more")
    if not isinstance(random, np.random.RandomState | np.random.Generator):
        check_seed(random)
        random = np.random.RandomState(random)
    space = split.space
    known = np.sort(space.ranks(split.train))
    if count and len(known) >= len(space):
        raise DataError(f"all {len(space)} pairs of nodes are training edges; there are no negatives to draw")
    integers = random.integers if isinstance(random, np.random.Generator) else random.randint
    return space.pairs(nth_absent(known, integers(0, max(len(space) - len(known), 1), count, dtype=np.int64)))


# The shares of validation and test that datasets are published with, and those of all others.
_PUBLISHED = dict.fromkeys(("disease", "disease_lp", "disease_nc"), (0.10, 0.60))
_OTHERWISE = (0.15, 0.15)


def split_nodes(
    graph: Any,
    val: float | None = None,
    test: float | None = None,
    *,
    seed: int = 1234,
    protocol: NodeProtocol = "clean",
) -> NodeSplit:
    """Splits the labeled nodes of a PyG ``Data``.

    ``"clean"``: at random, every class in the same proportions. ``"given"``: ``train_mask``, ``val_mask`` and
    ``test_mask`` of the graph, from a PyG ``Data`` or from a column ``split`` beside the labels; ``"planetoid"`` is the
    same for Cora and PubMed. ``"legacy"``: the masks where there are any, else HGCN's function for two classes, bit for
    bit; given more classes, it puts nodes into several parts, and a warning counts them. Shares that are not given are
    those that the dataset is published with, else 15 % each.
    """
    _check_protocol(protocol, get_args(NodeProtocol))
    check_seed(seed)
    has_masks = all(getattr(graph, name, None) is not None for name in MASKS)
    if protocol in ("planetoid", "given") or (protocol == "legacy" and has_masks):
        if not has_masks:
            raise DataError(
                "the graph came without train_mask, val_mask and test_mask; give labels with a column 'split', or use "
                "protocol='clean'"
            )
        return NodeSplit(*_from_masks(graph), seed, protocol)
    published = _PUBLISHED.get(getattr(graph, "name", ""), _OTHERWISE)
    val = published[0] if val is None else val
    test = published[1] if test is None else test
    _check_fractions(val, test)
    draw = split_legacy_nodes if protocol == "legacy" else _stratified
    return NodeSplit(*draw(node_labels(graph), val, test, np.random.RandomState(seed)), seed, protocol)


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


def _stratified(labels: Indices, val: float, test: float, random: np.random.RandomState) -> Parts:
    members = []
    for label in np.unique(labels[labels != UNLABELLED]):
        nodes = np.flatnonzero(labels == label)
        random.shuffle(nodes)
        num_test = round(test * len(nodes))
        num_val = min(round(val * len(nodes)), len(nodes) - num_test)
        members.append(np.split(nodes, [len(nodes) - num_val - num_test, len(nodes) - num_test]))
    train, validation, tested = (np.sort(np.concatenate(part)) for part in zip(*members, strict=True))
    if not len(train):
        raise DataError("no node is left to train on; lower val and test")
    return train, validation, tested


def brings_split(graph: Any) -> bool:
    """Whether a graph has one split of its nodes as masks; several, in columns, leave a choice."""
    masks = [getattr(graph, name, None) for name in MASKS]
    return all(mask is not None and np.shape(mask) == (graph.num_nodes,) for mask in masks)


def _from_masks(graph: Any) -> Parts:
    masks = {name: to_numpy(getattr(graph, name)) for name in MASKS}
    for name, mask in masks.items():
        if mask.dtype.kind != "b" or mask.shape != (graph.num_nodes,):
            raise DataError(
                f"{name} is {mask.dtype} of shape {mask.shape}; it takes True or False for each of {graph.num_nodes} "
                "nodes (of several splits, choose one column)"
            )
    for one, other in combinations(MASKS, 2):
        shared = int((masks[one] & masks[other]).sum())
        if shared:
            raise DataError(f"{one} and {other} share {shared} nodes; parts of a split are disjoint")
    train, val, test = map(np.flatnonzero, masks.values())
    return train, val, test


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
    _check_protocol(protocol, ("clean", "fair-comparison"))
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
    return tuple(GraphSplit(*parts, seed, protocol) for parts in _stratified_folds(labels, folds, seed))


def _stratified_folds(labels: Indices, folds: int, seed: int) -> Iterator[Parts]:
    from sklearn.model_selection import StratifiedKFold, train_test_split  # takes a while, and serves this alone

    splitter = StratifiedKFold(folds, shuffle=True, random_state=np.random.RandomState(seed))
    num_classes = len(np.unique(labels))
    for rest, test in splitter.split(labels, labels):
        held_out = max(math.ceil(_INNER_VALIDATION * len(rest)), num_classes)  # each class, if few
        try:
            train, val = train_test_split(
                rest, test_size=held_out, stratify=labels[rest], random_state=np.random.RandomState(seed)
            )
        except ValueError as error:  # of some class there is nobody to spare
            raise DataError(
                f"with folds={folds}, {len(rest)} graphs are left to train and validate, of which "
                f"{held_out} cannot be held out class by class ({error}); give more graphs of every class"
            ) from error
        yield np.sort(train), np.sort(val), test


def _classes(graphs: Any) -> Indices:
    if getattr(graphs, "y", None) is None:
        raise DataError(f"{type(graphs).__name__} has no y; give a collection with one class a graph in its y")
    try:
        given = to_numpy(graphs.y)
    except ValueError as error:  # lists of different lengths
        raise DataError(f"y must hold one class for each of {len(graphs)} graphs ({error})") from error
    if given.size != len(graphs) or not given.size or given.dtype.kind not in "biuf":
        raise DataError(f"y must hold one class for each of {len(graphs)} graphs, but is {given.dtype} {given.shape}")
    values = given.reshape(-1).astype(np.float64)
    wrong = values[~np.isfinite(values) | (values != np.abs(np.floor(values)))]
    if len(wrong):
        raise DataError(f"y has {wrong[0]:g} among its classes; count classes from 0 in whole numbers")
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
    if hasattr(graphs, "indices") and list(graphs.indices()) != list(range(graphs.len())):
        raise DataError(
            f"the folds of the fair comparison are for {name} whole and in its order, not for a selection or a "
            "shuffled copy; pass it as load_dataset gives it"
        )
    try:
        found = json.loads(path.read_text())
        chosen = [fold["model_selection"][0] for fold in found]
        named = [(one["train"], one["validation"], fold["test"]) for one, fold in zip(chosen, found, strict=True)]
        folds = [[np.asarray(part, dtype=np.int64).reshape(-1) for part in parts] for parts in named]
    except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise DataError(f"{path} is not a file of folds ({error!r}); put the original in its place") from error

    def hold_each_once(parts: list[Indices]) -> bool:
        return np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(graphs)))

    wrong = next((number for number, fold in enumerate(folds) if not hold_each_once(fold)), None)
    if wrong is not None:
        raise DataError(
            f"{path}: fold {wrong} does not hold each of {len(graphs)} graphs once; put the original in its place"
        )
    if len(folds) != _PUBLISHED_FOLDS or not hold_each_once([test for _, _, test in folds]):
        raise DataError(
            f"{path}: its {len(folds)} folds are not {_PUBLISHED_FOLDS} that test each of {len(graphs)} graphs once; "
            "put the original in its place"
        )
    return tuple(GraphSplit(train, val, test, seed, "fair-comparison") for train, val, test in folds)
