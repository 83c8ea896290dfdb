"""A graph's shape in numbers, as a report and as a picture."""

import json
import math
import warnings
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import to_numpy
from h2hgcn.datasets.shape import (
    Components,
    Hyperbolicity,
    SimpleGraph,
    connected_components,
    count_bridges,
    measure_hyperbolicity,
    simple_graph,
)
from h2hgcn.datasets.splits import check_seed, split_edges
from h2hgcn.datasets.verdict import Verdict, judge
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.lazy import import_extra


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
    """``top_share`` is the fraction of edge ends at the 1 % of the nodes with the largest degrees."""

    mean: float | None = None
    median: float | None = None
    max: int | None = None
    top_share: float | None = None


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
    homophily: float | None = None
    adjusted: float | None = None


def measure_size(graph: SimpleGraph, components: Components) -> Size:
    isolated = int(np.count_nonzero(graph.degrees == 0))
    share = float(components.sizes.max() / graph.num_nodes) if graph.num_nodes else None
    return Size(graph.num_nodes, graph.num_edges, graph.self_loops, isolated, len(components.sizes), share)


def measure_degrees(graph: SimpleGraph) -> Degrees:
    degrees = np.sort(graph.degrees)
    if not len(degrees):
        return Degrees()
    top = degrees[-math.ceil(len(degrees) / 100) :]
    top_share = float(top.sum() / degrees.sum()) if degrees[-1] else None
    return Degrees(float(degrees.mean()), float(np.median(degrees)), int(degrees[-1]), top_share)


def measure_tree_likeness(graph: SimpleGraph, components: Components) -> TreeLikeness:
    kept = graph.num_nodes - len(components.sizes)
    cycles = graph.num_edges - kept
    forest_share = kept / graph.num_edges if graph.num_edges else None
    return TreeLikeness(cycles, forest_share, cycles == 0, count_bridges(graph))


def measure_held_out(graph: Any) -> HeldOutLinks | None:
    """Splits the edges as ``LinkPrediction`` does by default; None where there is no test link."""
    try:
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            split = split_edges(graph)
    except DataError:  # too few pairs without an edge to test against
        return None
    unanswerable = int(np.count_nonzero(~split.answerable(split.test)))
    return HeldOutLinks(len(split.test), unanswerable) if len(split.test) else None


def measure_homophily(graph: SimpleGraph, y: Any) -> LabelHomophily | None:
    """For one class a node, -1 where it is unknown; nothing for other kinds of label."""
    try:
        labels = to_numpy([] if y is None else y)
    except ValueError:  # lists of different lengths
        return None
    if labels.dtype.kind not in "biu" or labels.size != graph.num_nodes or not (labels >= 0).any():
        return None
    labels = labels.reshape(-1).astype(np.int64)
    first, second = labels[np.stack(graph.edges())]
    both = (first >= 0) & (second >= 0)
    first, second = first[both], second[both]
    known = labels[labels >= 0]
    counts = (len(known), len(np.unique(known)), len(first))
    if not len(first):
        return LabelHomophily(*counts)
    homophily = float((first == second).mean())
    shares = np.unique(np.concatenate([first, second]), return_counts=True)[1] / (2 * len(first))
    by_chance = float(shares @ shares)
    adjusted = (homophily - by_chance) / (1 - by_chance) if len(shares) > 1 else None
    return LabelHomophily(*counts, homophily, adjusted)


@dataclass(frozen=True)
class Measurements:
    """All but ``held_out`` read the graph as undirected; ``directed`` says whether it was."""

    size: Size
    degrees: Degrees
    tree_likeness: TreeLikeness
    held_out: HeldOutLinks | None
    homophily: LabelHomophily | None
    hyperbolicity: Hyperbolicity
    directed: bool


@dataclass(frozen=True)
class GraphReport(Measurements):
    """The measurements of a graph, and what they say about hyperbolic geometry."""

    verdict: Verdict
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Names, lists and finite numbers, ready for JSON."""
        ready: dict[str, Any] = json.loads(json.dumps(asdict(self), allow_nan=False))
        return ready


def inspect_graph(graph: Any, *, seed: int = 0, effort: float = 1.0) -> GraphReport:
    """Measures a PyG graph; ``effort`` stretches the budgets of searches and samples, and the time with them."""
    if not hasattr(graph, "edge_index"):
        raise DataError(
            f"inspect_graph takes one PyG graph, not a {type(graph).__name__}; load it, or take one of many"
        )
    check_seed(seed)
    if not isinstance(effort, Real) or not effort >= 0:
        raise DataError(f"effort={effort!r} must be a number, 0 or more; 1 takes some seconds, 10 about ten times that")
    simple = simple_graph(graph)
    components = connected_components(simple)
    found = Measurements(
        measure_size(simple, components),
        measure_degrees(simple),
        measure_tree_likeness(simple, components),
        measure_held_out(graph) if simple.num_edges else None,
        measure_homophily(simple, getattr(graph, "y", None)),
        measure_hyperbolicity(simple, components, seed=seed, effort=float(effort)),
        bool(getattr(graph, "directed", False)),
    )
    weighted = getattr(graph, "edge_weight", None) is not None
    has_features = getattr(graph, "x", None) is not None and not getattr(graph, "structural", False)
    verdict = judge(found, weighted=weighted, has_features=has_features)
    return GraphReport(**vars(found), verdict=verdict, seed=int(seed))


FORMATS = (".pdf", ".png", ".svg")
# So many different degrees are read off bars; more make a curve.
FEW_DEGREES = 6


def plot_inspection(graph: Any, report: GraphReport, path: str | Path) -> Path:
    """Draws the graph's report into a file, whose ending says the format."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"cannot draw into {path}; end the name with one of {', '.join(FORMATS)}")
    figure = import_extra("matplotlib.figure", "matplotlib", "plot").Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_degrees(left, simple_graph(graph).degrees)
    counts = np.array(report.hyperbolicity.histogram, float)
    if len(counts):
        right.bar(np.arange(len(counts)) / 2, counts / counts.sum(), width=0.4, color="tab:blue")
        right.set(yscale="log" if len(counts) > 1 else "linear", xlim=(-0.5, max(len(counts) / 2, 1.5)))
    sign = "=" if report.hyperbolicity.exact else "≥"
    right.set(title=f"Largest δ {sign} {report.hyperbolicity.delta:g}", xlabel="δ", ylabel="share of quadruples")
    figure.savefig(path, dpi=150)
    return path


def draw_degrees(axes: Any, degrees: NDArray[np.int64]) -> None:
    values, counts = np.unique(degrees, return_counts=True)
    if 0 < len(values) <= FEW_DEGREES:  # bars side by side, however far apart: few degrees are no curve
        bars = axes.bar([f"{value:,}" for value in values], counts / counts.sum(), width=0.6, color="tab:blue")
        axes.bar_label(bars, [f"{count:,}" for count in counts], padding=2)
        middle, room = (len(values) - 1) / 2, max(len(values), 3) / 2
        axes.set(title="Degrees, with numbers of nodes", xlabel="degree", ylabel="share of nodes of this degree")
        axes.set(xlim=(middle - room, middle + room), ylim=(0, 1.1))
        return
    if len(values):
        from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

        at_least = counts[::-1].cumsum()[::-1] / len(degrees)
        axes.loglog(values[values > 0], at_least[values > 0], ".", color="tab:blue")
        # 1, 2, 5, 10, ...: matplotlib's labels of a short logarithmic axis run into each other
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(title="Degrees", xlabel="degree", ylabel="share of nodes of at least this degree")
