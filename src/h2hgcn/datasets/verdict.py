"""What the measurements of a graph say about hyperbolic geometry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from h2hgcn.datasets.inspect import Degrees, HeldOutLinks, LabelHomophily, Measurements, Size, TreeLikeness
    from h2hgcn.datasets.shape import Hyperbolicity


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


def judge(found: Measurements, *, weighted: bool, has_features: bool) -> Verdict:
    size, shape, homophily = found.size, found.hyperbolicity, found.homophily
    outlook, why = _judge_shape(found)
    bridges_only = not has_features and size.edges > 0 and found.tree_likeness.bridges >= MOSTLY_BRIDGES * size.edges
    links = _links_of_bridges(found) if bridges_only else _links(outlook, found.held_out, has_features)
    sentences = [*why, *links, *_node_classification(outlook, homophily)]
    if found.directed:
        sentences.append("The edges have a direction, which was ignored here: distances go both ways.")
    if weighted:
        sentences.append("The edges have weights, which were ignored here: every edge is one step.")
    try_first = _try_first(outlook, shape, features_alone=not size.edges or _labels_ignore_edges(homophily))
    if bridges_only:
        try_first = ("h2hgcn train --task embed, instead of link prediction.", *try_first)
    return Verdict(outlook, tuple(sentences), try_first, _evidence(found))


def _evidence(found: Measurements) -> tuple[str, ...]:
    size = found.size
    if not size.edges:
        return (f"nodes: {size.nodes:,}, edges: none",)
    return (
        *_shape(found.hyperbolicity), *_component(size), *_tree(size, found.tree_likeness), *_degrees(found.degrees),
        *_labels(found.homophily),
    )  # fmt: skip


def _judge_shape(found: Measurements) -> tuple[Outlook, tuple[str, ...]]:
    size, degrees, tree, shape = found.size, found.degrees, found.tree_likeness, found.hyperbolicity
    if not size.edges:
        return "unknown", ("This graph has no edges, so it has no shape that a geometry could fit.",)
    if tree.is_forest:
        return _judge_forest(found)
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


def _judge_forest(found: Measurements) -> tuple[Outlook, tuple[str, ...]]:
    what = f"This graph is a {'tree' if found.size.components == 1 else 'forest, a tree in every component'} (δ = 0)"
    if (found.degrees.max or 0) <= 2:
        return "unlikely", (f"{what} without branches: a line fits its paths as well as hyperbolic space does.",)
    if found.hyperbolicity.diameter <= 2:
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


def _links_of_bridges(found: Measurements) -> tuple[str, ...]:
    """For graphs without features most of whose edges are bridges."""
    size, tree, held_out = found.size, found.tree_likeness, found.held_out
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
