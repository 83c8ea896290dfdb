"""A graph's shape in numbers, and what they say about hyperbolic geometry."""

import math
import warnings
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

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
        given = np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)
    except ValueError:  # lists of different lengths
        return None
    if given.dtype.kind not in "biu" or given.size != num_nodes:
        return None
    labels: NDArray[np.int64] = given.reshape(-1).astype(np.int64)
    return labels if (labels >= 0).any() else None


def evidence(
    size: Size, degrees: Degrees, tree: TreeLikeness, homophily: LabelHomophily | None, shape: Hyperbolicity
) -> tuple[str, ...]:
    if not size.edges:
        return (f"nodes: {size.nodes:,}, edges: none",)
    return (*_shape(shape), *_component(size), *_tree(size, tree), *_degrees(degrees), *_labels(homophily))


def _shape(shape: Hyperbolicity) -> list[str]:
    facts = [_largest(shape)]
    if shape.mean is not None and shape.relative_mean is not None:
        error = f" ± {shape.mean_error:.1g}" if shape.mean_error else ""
        facts.append(
            f"mean δ = {shape.mean:.3g}{error} over {shape.quadruples:,} quadruples of {shape.sampled_nodes:,} nodes, "
            f"at a mean distance of {shape.mean_distance:.3g}: twice their ratio is {shape.relative_mean:.3f} "
            "(0 in trees, 0.2 in grids)"
        )
    least = "" if shape.diameter_exact else "at least "
    facts.append(
        f"diameter {least}{shape.diameter}; distances deviate by {shape.distance_deviation:.2g} from their mean"
    )
    if shape.relative_spread is not None:
        facts.append(
            f"twice the mean δ over that deviation is {shape.relative_spread:.2f} "
            "(0 in trees, above 0.7 in random graphs)"
        )
    return facts


def _largest(shape: Hyperbolicity) -> str:
    sign, sample = ("=", "exact") if shape.exact else ("≥", f"in a sample of {shape.sampled_nodes:,} nodes")
    return f"largest δ {sign} {shape.delta:g} ({sample}), 2δ/diameter = {shape.relative or 0:.2f}"


def _component(size: Size) -> list[str]:
    if size.components == 1:
        return []
    return [
        f"δ and the distances' mean and deviation are those of the largest of {size.components:,} components, "
        f"with {size.largest_component_share:.0%} of the nodes; the diameter is the largest of any"
    ]


def _tree(size: Size, tree: TreeLikeness) -> list[str]:
    return [
        f"independent cycles: {tree.independent_cycles:,}; "
        f"a spanning forest holds {tree.forest_share:.0%} of the {size.edges:,} edges; bridges: {tree.bridges:,}"
    ]


def _degrees(degrees: Degrees) -> list[str]:
    return [f"mean degree {degrees.mean:.3g}, largest {degrees.max:,}"]


def _labels(homophily: LabelHomophily | None) -> list[str]:
    if homophily is None or homophily.homophily is None:
        return []
    adjusted = "undefined" if homophily.adjusted is None else f"{homophily.adjusted:.2f}"
    return [f"{homophily.homophily:.0%} of {homophily.edges:,} edges join equal labels; adjusted homophily {adjusted}"]


Outlook = Literal["likely", "possible", "unlikely", "unknown"]

# Twice the mean δ over the mean distance is 0 in trees, about 0.1 in networks with hubs, and 0.2 in all that is flat:
# grids, cycles, points joined to the nearest. The largest δ alone would not do: it hangs on one quadruple.
CLOSE_TO_TREE, FAR_FROM_TREE = 0.06, 0.15
# Random graphs get under that by mere size, since their distances grow and keep their deviation. Twice the mean δ over
# the deviation is 0.75 and more in them at any size (unless they fall apart), and 0.3 to 0.6 in networks with hubs.
STEADY_BRANCHES, MERE_NOISE = 0.3, 0.7
# Below two steps nearly all pairs are one or two steps apart: δ is then at most 1 and any geometry is as good.
FEW_STEPS = 2.0
# Where nine of ten edges lie in a spanning forest, trees hang on the cycles that spoil the distances between them.
MOSTLY_FOREST = 0.9
# Where at least half of the edges are bridges, most held-out links leave one of their nodes in another component.
MOSTLY_BRIDGES = 0.5
# A smaller fraction of held-out links at nodes without another edge hardly changes a metric.
MANY_UNANSWERABLE = 0.1
# A geometry of so few nodes is an accident.
FEWEST_NODES = 20
# A largest degree of ten times the mean is out of reach of random graphs of this many edges.
HUB_FACTOR = 10.0
# Adjusted homophily: citation networks lie above a half; graphs that are called heterophilous around 0.
CLEAR_HOMOPHILY = 0.5
LOW_HOMOPHILY = 0.1


@dataclass(frozen=True)
class Verdict:
    """Whether hyperbolic geometry is worth a try, why, what to try first, and the measurements it rests on."""

    outlook: Outlook
    sentences: tuple[str, ...]
    try_first: tuple[str, ...]
    rests_on: tuple[str, ...]


def judge(
    size: Size,
    degrees: Degrees,
    tree: TreeLikeness,
    homophily: LabelHomophily | None,
    shape: Hyperbolicity,
    directed: bool = False,
    weighted: bool = False,
    held_out: HeldOutLinks | None = None,
    *,
    has_features: bool = True,
) -> Verdict:
    outlook, why = _judge_shape(size, degrees, tree, shape)
    bridges_only = not has_features and size.edges > 0 and tree.bridges >= MOSTLY_BRIDGES * size.edges
    links = _links_of_bridges(size, tree, held_out) if bridges_only else _links(outlook, held_out, has_features)
    sentences = [*why, *links, *_node_classification(outlook, homophily)]
    if directed:
        sentences.append("The edges have a direction, which was ignored here: distances go both ways.")
    if weighted:
        sentences.append("The edges have weights, which were ignored here: every edge is one step.")
    return Verdict(
        outlook,
        tuple(sentences),
        (
            *(["h2hgcn train --task embed, instead of link prediction."] * bridges_only),
            *_try_first(outlook, shape, features_alone=not size.edges or _labels_ignore_edges(homophily)),
        ),
        evidence(size, degrees, tree, homophily, shape),
    )


def _judge_shape(
    size: Size, degrees: Degrees, tree: TreeLikeness, shape: Hyperbolicity
) -> tuple[Outlook, tuple[str, ...]]:
    if not size.edges:
        return "unknown", ("This graph has no edges, so it has no shape that a geometry could fit.",)
    if tree.is_forest:
        return _judge_forest(size, degrees, shape)
    if shape.relative_mean is None or shape.mean_distance is None or shape.sampled_nodes < FEWEST_NODES:
        return "unknown", ("The largest component is too small to judge its shape.",)
    if shape.mean_distance < FEW_STEPS:
        return "unlikely", (
            "Hyperbolic geometry is unlikely to help: distances hardly vary, as nearly all nodes "
            f"{'' if size.components == 1 else 'of the largest component '}are one or two steps apart.",
            *(
                [f"That δ is only {shape.delta:g} says nothing here, as δ never exceeds half the diameter."]
                * (shape.delta <= FEW_STEPS / 2)
            ),
        )
    noise = shape.relative_spread or 0.0
    if shape.relative_mean <= CLOSE_TO_TREE and noise <= STEADY_BRANCHES:
        return "likely", (
            "Hyperbolic geometry is likely to help: distances are close to those of a tree, "
            "which hyperbolic space fits in few dimensions.",
        )
    if shape.relative_mean <= FAR_FROM_TREE and noise <= MERE_NOISE:
        return "possible", (
            "Hyperbolic geometry may help in low dimension: distances are nearer to a tree's than those of grids, "
            "cycles and random graphs without hubs, but no tree describes them well.",
            *(["A few hubs hold many of the edges, as in a hierarchy, which speaks for it."] * _has_hubs(degrees)),
        )
    if (tree.forest_share or 0) >= MOSTLY_FOREST and (degrees.max or 0) > 2:
        return "possible", (
            "Hyperbolic geometry may help in low dimension: most edges could be a tree's, but long cycles join the "
            "branches, and no tree describes the distances between them.",
        )
    return "unlikely", (
        "Hyperbolic geometry is unlikely to help: distances are no closer to those of a tree than in grids, cycles and "
        "random graphs without hubs.",
        *(["A few hubs hold many of the edges, so a try in low dimension may still be worth it."] * _has_hubs(degrees)),
    )


def _judge_forest(size: Size, degrees: Degrees, shape: Hyperbolicity) -> tuple[Outlook, tuple[str, ...]]:
    what = f"This graph is a {'tree' if size.components == 1 else 'forest, a tree in every component'} (δ = 0)"
    if (degrees.max or 0) <= 2:
        return "unlikely", (f"{what} without branches: a line fits its paths as well as hyperbolic space does.",)
    if shape.diameter <= 2:
        return "unlikely", (f"{what} of at most two steps, a star: every geometry fits it.",)
    return "likely", (
        f"{what}, and hyperbolic geometry is likely to help: hyperbolic space fits trees with few dimensions.",
    )


def _has_hubs(degrees: Degrees) -> bool:
    return bool(degrees.mean and degrees.max and degrees.max >= HUB_FACTOR * degrees.mean)


_LINK_PREDICTION: dict[Outlook, str] = {
    "likely": "For link prediction, expect a gain that is largest in few dimensions.",
    "possible": "For link prediction, look for a gain in 16 dimensions or fewer; it tends to vanish with more.",
    "unlikely": "For link prediction, expect no gain over a Euclidean model.",
    "unknown": "For link prediction, no prediction is possible.",
}


def _links(outlook: Outlook, held_out: HeldOutLinks | None, has_features: bool) -> tuple[str, ...]:
    if held_out is None or held_out.unanswerable < MANY_UNANSWERABLE * held_out.links:
        return (_LINK_PREDICTION[outlook],)
    only = "only features can predict those" if has_features else "without features those cannot be predicted"
    return (_LINK_PREDICTION[outlook], f"{_unanswerable(held_out)}: {only}.")


def _links_of_bridges(size: Size, tree: TreeLikeness, held_out: HeldOutLinks | None) -> tuple[str, ...]:
    """For graphs without features most of whose edges are bridges."""
    which = "All edges" if tree.bridges == size.edges else f"{tree.bridges:,} of {size.edges:,} edges"
    return (
        f"{which} are bridges: when a bridge is held out, only features can predict it, and there are none.",
        *(() if held_out is None else (f"{_unanswerable(held_out)}.",)),
        "Give features, or use h2hgcn train --task embed: it embeds all edges and measures how well distances "
        "reconstruct them.",
    )


def _unanswerable(held_out: HeldOutLinks) -> str:
    return (
        f"{held_out.unanswerable:,} of {held_out.links:,} held-out links would end at a node with no other edge "
        "(the test part of the default split)"
    )


def _labels_ignore_edges(homophily: LabelHomophily | None) -> bool:
    return homophily is not None and homophily.adjusted is not None and homophily.adjusted < LOW_HOMOPHILY


def _node_classification(outlook: Outlook, homophily: LabelHomophily | None) -> tuple[str, ...]:
    if homophily is None:
        return ()
    if homophily.adjusted is None:
        return ("For node classification, no prediction is possible: no edge joins nodes that are known to differ.",)
    if _labels_ignore_edges(homophily):
        across = "hardly follow the edges" if homophily.adjusted > -LOW_HOMOPHILY else "tend to differ across edges"
        return (
            f"For node classification, labels {across}: models that smooth over neighbors are not going to profit from "
            "the graph, whatever their geometry.",
        )
    follow = "labels follow the edges" if homophily.adjusted >= CLEAR_HOMOPHILY else "labels follow the edges in part"
    gain = {
        "likely": "hyperbolic geometry may add to that in few dimensions",
        "possible": "hyperbolic geometry may add a little in low dimension",
        "unlikely": "a Euclidean model is as good a choice",
        "unknown": "which geometry is best is unknown",
    }
    return (f"For node classification, {follow}, so a graph convolution should profit from them; {gain[outlook]}.",)


def _try_first(outlook: Outlook, shape: Hyperbolicity, *, features_alone: bool) -> tuple[str, ...]:
    layers = 1 if shape.diameter <= 2 else 2
    ours = f"H2HGCN(in_features, dim={{}}, num_layers={layers})"
    steps = {
        "likely": (f"{ours.format(8)}; then dim=2, 4 and 16.", "A Euclidean GCN of the same dimensions and layers."),
        "possible": (
            f"{ours.format(16)}; then dim=64, to see whether a gain remains.",
            "A Euclidean GCN of the same dimensions and layers.",
        ),
        "unlikely": (
            f"A Euclidean GCN of dimension 64 with {layers} layer{'s' if layers > 1 else ''}.",
            f"{ours.format(16)} against a Euclidean GCN of that size, if you want to check.",
        ),
        "unknown": (f"{ours.format(16)} against a Euclidean GCN of that size.",),
    }
    without_graph = ("A classifier of the features alone, without the graph.",) if features_alone else ()
    return (*steps[outlook], *without_graph)


MOST_EFFORT = 1e9


@dataclass(frozen=True)
class GraphReport:
    """All measurements but ``held_out`` read the graph as undirected; ``directed`` says whether it was."""

    size: Size
    degrees: Degrees
    tree_likeness: TreeLikeness
    held_out: HeldOutLinks | None
    homophily: LabelHomophily | None
    hyperbolicity: Hyperbolicity
    verdict: Verdict
    directed: bool
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
    directed = bool(getattr(graph, "directed", False))
    size, degrees = measure_size(simple, components), measure_degrees(simple)
    tree = measure_tree_likeness(simple, components)
    held_out = measure_held_out(graph) if simple.num_edges else None
    homophily = measure_homophily(simple, getattr(graph, "y", None))
    shape = measure_hyperbolicity(simple, components, seed=seed, effort=effort)
    return GraphReport(
        size=size,
        degrees=degrees,
        tree_likeness=tree,
        held_out=held_out,
        homophily=homophily,
        hyperbolicity=shape,
        verdict=judge(
            size,
            degrees,
            tree,
            homophily,
            shape,
            directed,
            getattr(graph, "edge_weight", None) is not None,
            held_out,
            has_features=getattr(graph, "x", None) is not None and not getattr(graph, "structural", False),
        ),
        directed=directed,
        seed=seed,
    )


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
