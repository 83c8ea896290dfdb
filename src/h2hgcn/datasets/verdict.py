"""What the measurements of a graph say about hyperbolic geometry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from h2hgcn.datasets.inspect import LabelHomophily, Measurements


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
CLEAR_HOMOPHILY, LOW_HOMOPHILY = 0.5, 0.1


@dataclass(frozen=True)
class Verdict:
    """Whether hyperbolic geometry is worth a try, why, what to try first, and the measurements it rests on."""

    outlook: Outlook
    sentences: tuple[str, ...]
    try_first: tuple[str, ...]
    rests_on: tuple[str, ...]


def judge(found: Measurements, *, weighted: bool, has_features: bool) -> Verdict:
    size = found.size
    outlook, sentences = _outlook(found)
    bridges_only = not has_features and size.edges > 0 and found.tree_likeness.bridges >= MOSTLY_BRIDGES * size.edges
    sentences += _links(outlook, found, has_features, bridges_only) + _node_classification(outlook, found.homophily)
    if found.directed:
        sentences.append("The edges have a direction, which was ignored here: distances go both ways.")
    if weighted:
        sentences.append("The edges have weights, which were ignored here: every edge is one step.")
    try_first = ["h2hgcn train --task embed, instead of link prediction."] * bridges_only
    try_first += _models(outlook, layers=1 if found.hyperbolicity.diameter <= 2 else 2)
    if not size.edges or _labels_ignore_edges(found.homophily):
        try_first.append("A classifier of the features alone, without the graph.")
    return Verdict(outlook, tuple(sentences), tuple(try_first), tuple(_evidence(found)))


def _outlook(found: Measurements) -> tuple[Outlook, list[str]]:
    """The outlook, and the sentences that say why."""
    size, degrees, tree, shape = found.size, found.degrees, found.tree_likeness, found.hyperbolicity
    if not size.edges:
        return "unknown", ["This graph has no edges, so it has no shape that a geometry could fit."]
    if tree.is_forest:
        what = f"This graph is a {'tree' if size.components == 1 else 'forest, a tree in every component'} (δ = 0)"
        if (degrees.max or 0) <= 2:
            return "unlikely", [f"{what} without branches: a line fits its paths as well as hyperbolic space does."]
        if shape.diameter <= 2:
            return "unlikely", [f"{what} of at most two steps, a star: every geometry fits it."]
        why = "hyperbolic geometry is likely to help: hyperbolic space fits trees with few dimensions"
        return "likely", [f"{what}, and {why}."]
    if shape.relative_mean is None or shape.mean_distance is None or shape.sampled_nodes < FEWEST_NODES:
        return "unknown", ["The largest component is too small to judge its shape."]
    if shape.mean_distance < FEW_STEPS:
        which = "" if size.components == 1 else "of the largest component "
        why = f"distances hardly vary, as nearly all nodes {which}are one or two steps apart"
        says_nothing = f"That δ is only {shape.delta:g} says nothing here, as δ never exceeds half the diameter."
        small = shape.delta <= FEW_STEPS / 2
        return "unlikely", [f"Hyperbolic geometry is unlikely to help: {why}.", *[says_nothing] * small]
    noise = shape.relative_spread or 0.0
    if shape.relative_mean <= CLOSE_TO_TREE and noise <= STEADY_BRANCHES:
        why = "distances are close to those of a tree, which hyperbolic space fits in few dimensions"
        return "likely", [f"Hyperbolic geometry is likely to help: {why}."]
    hubs = ["A few hubs hold many of the edges, "] if (degrees.max or 0) >= HUB_FACTOR * (degrees.mean or 1) else []
    if shape.relative_mean <= FAR_FROM_TREE and noise <= MERE_NOISE:
        why = (
            "distances are nearer to a tree's than those of grids, cycles and random graphs without hubs, but no tree "
            "describes them well"
        )
        more = [f"{hub}as in a hierarchy, which speaks for it." for hub in hubs]
        return "possible", [f"Hyperbolic geometry may help in low dimension: {why}.", *more]
    if (tree.forest_share or 0) >= MOSTLY_FOREST and (degrees.max or 0) > 2:
        why = (
            "most edges could be a tree's, but long cycles join the branches, and no tree describes the distances "
            "between them"
        )
        return "possible", [f"Hyperbolic geometry may help in low dimension: {why}."]
    why = "distances are no closer to those of a tree than in grids, cycles and random graphs without hubs"
    more = [f"{hub}so a try in low dimension may still be worth it." for hub in hubs]
    return "unlikely", [f"Hyperbolic geometry is unlikely to help: {why}.", *more]


_LINK_PREDICTION: dict[Outlook, str] = {
    "likely": "For link prediction, expect a gain that is largest in few dimensions.",
    "possible": "For link prediction, look for a gain in 16 dimensions or fewer; it tends to vanish with more.",
    "unlikely": "For link prediction, expect no gain over a Euclidean model.",
    "unknown": "For link prediction, no prediction is possible.",
}


def _links(outlook: Outlook, found: Measurements, has_features: bool, bridges_only: bool) -> list[str]:
    size, bridges, held_out = found.size, found.tree_likeness.bridges, found.held_out
    unanswerable = "" if held_out is None else (
        f"{held_out.unanswerable:,} of {held_out.links:,} held-out links would end at a node with no other edge "
        "(the test part of the default split)"
    )  # fmt: skip
    if bridges_only:
        which = "All edges" if bridges == size.edges else f"{bridges:,} of {size.edges:,} edges"
        return [
            f"{which} are bridges: when a bridge is held out, only features can predict it, and there are none.",
            *([f"{unanswerable}."] if unanswerable else []),
            "Give features, or use h2hgcn train --task embed: it embeds all edges and measures how well distances "
            "reconstruct them.",
        ]
    if held_out is None or held_out.unanswerable < MANY_UNANSWERABLE * held_out.links:
        return [_LINK_PREDICTION[outlook]]
    only = "only features can predict those" if has_features else "without features those cannot be predicted"
    return [_LINK_PREDICTION[outlook], f"{unanswerable}: {only}."]


def _labels_ignore_edges(homophily: LabelHomophily | None) -> bool:
    return homophily is not None and homophily.adjusted is not None and homophily.adjusted < LOW_HOMOPHILY


_NODE_CLASSIFICATION: dict[Outlook, str] = {
    "likely": "hyperbolic geometry may add to that in few dimensions",
    "possible": "hyperbolic geometry may add a little in low dimension",
    "unlikely": "a Euclidean model is as good a choice",
    "unknown": "which geometry is best is unknown",
}


def _node_classification(outlook: Outlook, homophily: LabelHomophily | None) -> list[str]:
    if homophily is None:
        return []
    if homophily.adjusted is None:
        return ["For node classification, no prediction is possible: no edge joins nodes that are known to differ."]
    if _labels_ignore_edges(homophily):
        across = "hardly follow the edges" if homophily.adjusted > -LOW_HOMOPHILY else "tend to differ across edges"
        return [
            f"For node classification, labels {across}: models that smooth over neighbors are not going to profit from "
            "the graph, whatever their geometry."
        ]
    follow = "labels follow the edges" if homophily.adjusted >= CLEAR_HOMOPHILY else "labels follow the edges in part"
    gain = _NODE_CLASSIFICATION[outlook]
    return [f"For node classification, {follow}, so a graph convolution should profit from them; {gain}."]


def _models(outlook: Outlook, layers: int) -> list[str]:
    ours = f"H2HGCN(in_features, dim={8 if outlook == 'likely' else 16}, num_layers={layers})"
    if outlook == "likely":
        return [f"{ours}; then dim=2, 4 and 16.", "A Euclidean GCN of the same dimensions and layers."]
    if outlook == "possible":
        then = "then dim=64, to see whether a gain remains"
        return [f"{ours}; {then}.", "A Euclidean GCN of the same dimensions and layers."]
    against = f"{ours} against a Euclidean GCN of that size"
    if outlook == "unknown":
        return [f"{against}."]
    euclidean = f"A Euclidean GCN of dimension 64 with {layers} layer{'s' if layers > 1 else ''}."
    return [euclidean, f"{against}, if you want to check."]


def _evidence(found: Measurements) -> list[str]:
    size, shape, tree, homophily = found.size, found.hyperbolicity, found.tree_likeness, found.homophily
    if not size.edges:
        return [f"nodes: {size.nodes:,}, edges: none"]
    sign, sample = ("=", "exact") if shape.exact else ("≥", f"in a sample of {shape.sampled_nodes:,} nodes")
    facts = [f"largest δ {sign} {shape.delta:g} ({sample}), 2δ/diameter = {shape.relative or 0:.2f}"]
    if shape.mean is not None and shape.relative_mean is not None:
        error = f" ± {shape.mean_error:.1g}" if shape.mean_error else ""
        facts.append(
            f"mean δ = {shape.mean:.3g}{error} over {shape.quadruples:,} quadruples of {shape.sampled_nodes:,} nodes, "
            f"at a mean distance of {shape.mean_distance:.3g}: twice their ratio is {shape.relative_mean:.3f} "
            "(0 in trees, 0.2 in grids)"
        )
    least = "" if shape.diameter_exact else "at least "
    deviation = f"{shape.distance_deviation:.2g}"
    facts.append(f"diameter {least}{shape.diameter}; distances deviate by {deviation} from their mean")
    if shape.relative_spread is not None:
        ratio = f"{shape.relative_spread:.2f}"
        facts.append(f"twice the mean δ over that deviation is {ratio} (0 in trees, above 0.7 in random graphs)")
    if size.components > 1:
        facts.append(
            f"δ and the distances' mean and deviation are those of the largest of {size.components:,} components, "
            f"with {size.largest_component_share:.0%} of the nodes; the diameter is the largest of any"
        )
    facts.append(
        f"independent cycles: {tree.independent_cycles:,}; "
        f"a spanning forest holds {tree.forest_share:.0%} of the {size.edges:,} edges; bridges: {tree.bridges:,}"
    )
    facts.append(f"mean degree {found.degrees.mean:.3g}, largest {found.degrees.max:,}")
    if homophily is not None and homophily.homophily is not None:
        adjusted = "undefined" if homophily.adjusted is None else f"{homophily.adjusted:.2f}"
        share = f"{homophily.homophily:.0%} of {homophily.edges:,} edges join equal labels"
        facts.append(f"{share}; adjusted homophily {adjusted}")
    return facts
