"""The measurements a verdict rests on, one sentence each."""

from h2hgcn.datasets.inspection.hyperbolicity import Hyperbolicity
from h2hgcn.datasets.inspection.statistics import Degrees, LabelHomophily, Size, TreeLikeness


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
    if shape.exact:
        return f"largest δ = {shape.delta:g} (exact), 2δ/diameter = {shape.relative or 0:.2f}"
    return (
        f"largest δ ≥ {shape.delta:g}, 2δ/diameter about {shape.relative or 0:.2f}; a sample: with 95 % confidence at "
        f"most {shape.share_above:.2%} of the quadruples exceed it (rule of three, for the "
        f"{shape.sampled_nodes // 4:,} quadruples without common nodes)"
    )


def _component(size: Size) -> list[str]:
    if size.components == 1:
        return []
    return [
        f"mean δ and the distances' mean and deviation are those of the largest of {size.components:,} components, "
        f"with {size.largest_component_share:.0%} of the nodes; δ and diameter are the largest of any"
    ]


def _tree(size: Size, tree: TreeLikeness) -> list[str]:
    return [
        f"independent cycles: {tree.independent_cycles:,}; "
        f"a spanning forest holds {tree.forest_share:.0%} of the {size.edges:,} edges; bridges: {tree.bridges:,}"
    ]


def _degrees(degrees: Degrees) -> list[str]:
    facts = [f"mean degree {degrees.mean:.3g}, largest {degrees.max:,}; Gini coefficient {degrees.gini:.2f}"]
    if degrees.tail:
        facts.append(
            f"degrees from {degrees.tail.first_degree} on fall with exponent {degrees.tail.exponent:.2f} "
            f"(distance from a power law {degrees.tail.distance:.2f})"
        )
    return facts


def _labels(homophily: LabelHomophily | None) -> list[str]:
    if homophily is None or homophily.homophily is None:
        return []
    adjusted = "undefined" if homophily.adjusted is None else f"{homophily.adjusted:.2f}"
    return [f"{homophily.homophily:.0%} of {homophily.edges:,} edges join equal labels; adjusted homophily {adjusted}"]
