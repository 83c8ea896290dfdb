"""What can be counted in a graph: size, degrees, likeness to a tree, links to hold out, labels across edges."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.datasets.inspection.blocks import count_bridges
from h2hgcn.datasets.inspection.degree_tail import PowerLaw, fit_power_law
from h2hgcn.datasets.inspection.simple_graph import Components, SimpleGraph
from h2hgcn.datasets.splits.edges import split_edges
from h2hgcn.errors import DataError, DataWarning


@dataclass(frozen=True)
class Size:
    """Edges are counted once, whichever way they point; self-loops are not among them."""

    nodes: int
    edges: int
    self_loops: int
    isolated_nodes: int
    components: int
    largest_component_share: float | None


@dataclass(frozen=True)
class Degrees:
    """``gini`` is 0 for equal degrees and near 1 where few nodes hold all edges.

    ``top_share`` is the share of edge ends held by the hundredth of the nodes with most of them, at least one node.
    """

    mean: float | None
    median: float | None
    max: int | None
    gini: float | None
    top_share: float | None
    tail: PowerLaw | None


@dataclass(frozen=True)
class TreeLikeness:
    """``independent_cycles`` edges would have to go for a forest, which keeps ``forest_share`` of the edges.

    ``bridges`` are edges whose removal disconnects their two ends.
    """

    independent_cycles: int
    forest_share: float | None
    is_forest: bool
    bridges: int


@dataclass(frozen=True)
class HeldOutLinks:
    """The test links of the default split of link prediction, and how many end at a node without a training edge."""

    links: int
    unanswerable: int


@dataclass(frozen=True)
class LabelHomophily:
    """The share of edges that join equal labels, among the edges both of whose nodes have one.

    ``adjusted`` is 0 where edges ignore the labels and 1 where all join equal ones (Platonov et al. 2023).
    """

    labelled_nodes: int
    classes: int
    edges: int
    homophily: float | None
    adjusted: float | None


def measure_size(graph: SimpleGraph, components: Components) -> Size:
    return Size(
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        self_loops=graph.self_loops,
        isolated_nodes=int(np.count_nonzero(graph.degrees == 0)),
        components=len(components.sizes),
        largest_component_share=float(components.sizes.max() / graph.num_nodes) if graph.num_nodes else None,
    )


def measure_degrees(graph: SimpleGraph) -> Degrees:
    degrees = np.sort(graph.degrees)
    if not len(degrees):
        return Degrees(None, None, None, None, None, None)
    mean, median, largest = float(degrees.mean()), float(np.median(degrees)), int(degrees[-1])
    if not largest:
        return Degrees(mean, median, largest, None, None, None)
    top = math.ceil(len(degrees) / 100)
    top_share = float(degrees[-top:].sum() / degrees.sum())
    return Degrees(mean, median, largest, _gini(degrees), top_share, fit_power_law(degrees))


def measure_tree_likeness(graph: SimpleGraph, components: Components) -> TreeLikeness:
    kept = graph.num_nodes - len(components.sizes)
    cycles = graph.num_edges - kept
    forest_share = kept / graph.num_edges if graph.num_edges else None
    return TreeLikeness(cycles, forest_share, cycles == 0, count_bridges(graph))


def measure_held_out(graph: Any) -> HeldOutLinks | None:
    """Splits the edges as ``LinkPrediction`` does by default; None where there is no test link."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            split = split_edges(graph)
    except DataError:  # too few pairs without an edge to test against
        return None
    unanswerable = int(np.count_nonzero(~split.answerable(split.test)))
    return HeldOutLinks(len(split.test), unanswerable) if len(split.test) else None


def measure_homophily(graph: SimpleGraph, y: Any) -> LabelHomophily | None:
    """For one class a node, -1 where it is unknown; nothing for other kinds of label."""
    labels = _class_labels(y, graph.num_nodes)
    if labels is None:
        return None
    first, second = (labels[ends] for ends in graph.edges())
    both = (first >= 0) & (second >= 0)
    first, second = first[both], second[both]
    known = labels[labels >= 0]
    counts = (len(known), len(np.unique(known)), len(first))
    if not len(first):
        return LabelHomophily(*counts, None, None)
    homophily = float((first == second).mean())
    shares = np.unique(np.concatenate([first, second]), return_counts=True)[1] / (2 * len(first))
    by_chance = float(shares @ shares)
    adjusted = (homophily - by_chance) / (1 - by_chance) if len(shares) > 1 else None
    return LabelHomophily(*counts, homophily, adjusted)


def _class_labels(y: Any, num_nodes: int) -> NDArray[np.int64] | None:
    if y is None or not num_nodes:
        return None
    try:
        given = np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)
    except ValueError:  # lists of different lengths
        return None
    if given.dtype.kind not in "biu" or given.size != num_nodes:
        return None
    labels: NDArray[np.int64] = given.reshape(-1).astype(np.int64)
    return labels if (labels >= 0).any() else None


def _gini(ordered: NDArray[np.int64]) -> float:
    ranks = np.arange(1, len(ordered) + 1)
    return float(2 * (ranks @ ordered) / (len(ordered) * ordered.sum()) - (len(ordered) + 1) / len(ordered))
