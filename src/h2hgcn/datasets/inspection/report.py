"""A graph's shape in numbers, and what they say about hyperbolic geometry."""

import math
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

from h2hgcn.datasets.inspection.clustering import Clustering, measure_clustering
from h2hgcn.datasets.inspection.hyperbolicity import Hyperbolicity, measure_hyperbolicity
from h2hgcn.datasets.inspection.simple_graph import connected_components, simple_graph
from h2hgcn.datasets.inspection.statistics import (
    Degrees,
    HeldOutLinks,
    LabelHomophily,
    Size,
    TreeLikeness,
    measure_degrees,
    measure_held_out,
    measure_homophily,
    measure_size,
    measure_tree_likeness,
)
from h2hgcn.datasets.inspection.verdict import Verdict, judge
from h2hgcn.datasets.splits.splits import check_seed
from h2hgcn.errors import DataError

MOST_EFFORT = 1e9


@dataclass(frozen=True)
class GraphReport:
    """All measurements but ``held_out`` read the graph as undirected; ``directed`` says whether it was."""

    size: Size
    degrees: Degrees
    clustering: Clustering
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
        clustering=measure_clustering(simple, seed=seed, effort=effort),
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
