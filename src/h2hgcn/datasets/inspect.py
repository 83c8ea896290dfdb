"""A graph's shape in numbers, as a report and as a picture."""

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

    mean: float | None
    median: float | None
    max: int | None
    top_share: float | None


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
        return Degrees(None, None, None, None)
    mean, median, largest = float(degrees.mean()), float(np.median(degrees)), int(degrees[-1])
    if not largest:
        return Degrees(mean, median, largest, None)
    top = math.ceil(len(degrees) / 100)
    top_share = float(degrees[-top:].sum() / degrees.sum())
    return Degrees(mean, median, largest, top_share)


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
        given = to_numpy(y)
    except ValueError:  # lists of different lengths
        return None
    if given.dtype.kind not in "biu" or given.size != num_nodes:
        return None
    labels: NDArray[np.int64] = given.reshape(-1).astype(np.int64)
    return labels if (labels >= 0).any() else None


MOST_EFFORT = 1e9


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
        ready: dict[str, Any] = _json_ready(asdict(self))
        return ready


def inspect_graph(graph: Any, *, seed: int = 0, effort: float = 1.0) -> GraphReport:
    """Measures a PyG graph; ``effort`` stretches the budgets of searches and samples, and the time with them."""
    if not hasattr(graph, "edge_index"):
        raise DataError(
            f"inspect_graph takes one PyG graph, not a {type(graph).__name__}; load it, or take one of many"
        )
    check_seed(seed)
    effort = _within_reach(effort)
    simple = simple_graph(graph)
    components = connected_components(simple)
    found = Measurements(
        measure_size(simple, components),
        measure_degrees(simple),
        measure_tree_likeness(simple, components),
        measure_held_out(graph) if simple.num_edges else None,
        measure_homophily(simple, getattr(graph, "y", None)),
        measure_hyperbolicity(simple, components, seed=seed, effort=effort),
        bool(getattr(graph, "directed", False)),
    )
    verdict = judge(
        found,
        weighted=getattr(graph, "edge_weight", None) is not None,
        has_features=getattr(graph, "x", None) is not None and not getattr(graph, "structural", False),
    )
    return GraphReport(**vars(found), verdict=verdict, seed=seed)


def _within_reach(effort: float) -> float:
    """The effort, infinity included, as far as budgets can be counted in 64 bits."""
    if not isinstance(effort, Real) or not effort >= 0:
        raise DataError(f"effort={effort!r} must be a number, 0 or more; 1 takes some seconds, 10 about ten times that")
    return min(float(effort), MOST_EFFORT)


def _json_ready(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json_ready(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_json_ready(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


FORMATS = (".pdf", ".png", ".svg")
# So many different degrees are read off bars; more make a curve.
FEW_DEGREES = 6


def plot_inspection(graph: Any, report: GraphReport, path: str | Path) -> Path:
    """Draws the graph's report into a file, whose ending says the format."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"cannot draw into {path}; end the name with one of {', '.join(FORMATS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError("drawing needs matplotlib; install it with: pip install h2hgcn[plot]") from error
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_degrees(left, graph)
    _draw_delta(right, report)
    figure.savefig(path, dpi=150)
    return path


def draw_degrees(axes: Any, graph: Any) -> None:
    degrees = simple_graph(graph).degrees
    values, counts = np.unique(degrees, return_counts=True)
    if 0 < len(values) <= FEW_DEGREES:
        _draw_bars(axes, values, counts)
    else:
        _draw_tail(axes, degrees[degrees > 0], len(degrees))


def _draw_bars(axes: Any, values: Any, counts: Any) -> None:
    """A bar for every degree with its number of nodes, side by side however far apart: few degrees are no curve."""
    bars = axes.bar([f"{value:,}" for value in values], counts / counts.sum(), width=0.6, color="tab:blue")
    axes.bar_label(bars, [f"{count:,}" for count in counts], padding=2)
    middle, room = (len(values) - 1) / 2, max(len(values), 3) / 2
    axes.set(title="Degrees, with numbers of nodes", xlabel="degree", ylabel="share of nodes of this degree")
    axes.set(xlim=(middle - room, middle + room), ylim=(0, 1.1))


def _draw_tail(axes: Any, degrees: Any, num_nodes: int) -> None:
    values, counts = np.unique(degrees, return_counts=True)
    if len(values):
        at_least = counts[::-1].cumsum()[::-1] / num_nodes
        axes.loglog(values, at_least, ".", color="tab:blue")
        _label_by_numbers(axes.xaxis)
    axes.set(title="Degrees", xlabel="degree", ylabel="share of nodes of at least this degree")


def _label_by_numbers(axis: Any) -> None:
    """1, 2, 5, 10, ...; matplotlib's labels of a short logarithmic axis run into each other."""
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())


def _draw_delta(axes: Any, report: GraphReport) -> None:
    counts = np.array(report.hyperbolicity.histogram, float)
    if len(counts):
        axes.bar(np.arange(len(counts)) / 2, counts / counts.sum(), width=0.4, color="tab:blue")
        axes.set(yscale="log" if len(counts) > 1 else "linear", xlim=(-0.5, max(len(counts) / 2, 1.5)))
    sign = "=" if report.hyperbolicity.exact else "≥"
    axes.set(title=f"Largest δ {sign} {report.hyperbolicity.delta:g}", xlabel="δ", ylabel="share of quadruples")
