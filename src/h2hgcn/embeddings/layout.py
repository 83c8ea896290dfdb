"""A two-dimensional hyperbolic layout for pictures, which keeps neighbors and distances better than a projection does.

A graph that is a tree is drawn as one. Everything else is optimized in the Poincaré disk, starting from the projection:
the nearest neighbors of a point attract it, random points repel it with the heavy-tailed kernel of t-SNE and CO-SNE
(Guo et al. 2022), and random pairs are pulled to their distance (stress), all with hyperbolic distances."""

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components

from h2hgcn.embeddings.coordinates import lorentz_tensor
from h2hgcn.embeddings.disk import DiskProjection, Plane, different_links, project_to_disk
from h2hgcn.embeddings.nearest import ExactSearch, check_edges, recommend_many, shared_fraction, vectors_of
from h2hgcn.geometry import lorentz, poincare
from h2hgcn.jit import compiled, random_below, random_state
from h2hgcn.kernels import run_on_rows

# Nearest neighbors grow with the square of the points: more than these are projected.
MOST_POINTS = 100_000

_NEIGHBORS, _EPOCHS, _NEGATIVES, _PAIRS = 10, 300, 20, 10
_MANY = 20_000  # points, of which more take fewer epochs
_WORK = 1 << 10  # numbers that a row costs, to choose the number of threads by
_RATE, _MOMENTUM, _LONGEST_STEP = 0.1, 0.5, 0.3

# Chosen on five embeddings: the most stress that leaves nearly all of the neighborhoods that can be kept.
_ATTRACTION, _REPULSION, _STRESS = 0.3, 0.3, 0.6

_FARTHEST = float(np.sinh(12.0))  # where nothing can be seen any more

# What the median distance becomes: a disk shows up to a radius of about 5, and larger distances leave more room.
_MEDIAN = 4.0

# The radius of the lowest nodes of a tree, from which its many leaves can be told apart on a page.
_LEAST_RADIUS, _MOST_RADIUS = 2.5, 5.0

_MEASURED_NODES, _MEASURED_PAIRS = 2_000, 30_000


class Faithfulness(NamedTuple):
    """How true a picture is: the mean share of a node's 10 nearest neighbors that are among its 10 nearest in the disk,
    and Spearman's rank correlation of distances.
    """

    neighbors: float
    spearman: float


def layout_in_disk(points: Any, edges: Any = None, space: str = "lorentz", *, seed: int = 0) -> DiskProjection:
    """Points in the Poincaré disk for a picture; ``method`` and ``keeps`` of the result say how they were placed.

    If ``edges`` (2 × edges) make a tree, it is drawn with its root in the middle (``"tree"``); else neighbors and
    distances are optimized (``"neighbors"``). Where the projection keeps more neighbors, such as all of them in two
    dimensions, and for Euclidean points or more than 100,000, this is ``project_to_disk``. The same seed gives the same
    layout for any number of threads.
    """
    projection = project_to_disk(points, space)
    start = projection.points
    if projection.space == "euclidean" or len(projection.center) <= 3 or len(start) <= 3:
        return projection
    lifted, few = lorentz_tensor(points, space), len(start) <= MOST_POINTS
    drawn = None if edges is None else _draw_tree(check_edges(edges, len(start)), start)
    if drawn is None and not few:
        more = f"Layouts that keep neighbors are made for up to {MOST_POINTS:,} points."
        return replace(projection, keeps=f"{projection.keeps} {more}")
    before = faithfulness(lifted, start)

    def better(placed: Plane, method: Literal["tree", "neighbors"]) -> DiskProjection | None:
        found = faithfulness(lifted, placed)
        if found.neighbors <= before.neighbors:
            return None
        keeps = (
            f"{_DONE[method]} Of the 10 nearest neighbors of a node in the embedding, {found.neighbors:.0%} are among "
            f"the 10 nearest here (projection: {before.neighbors:.0%}); the rank correlation of distances is "
            f"{found.spearman:.2f} (projection: {before.spearman:.2f})."
        )
        return replace(projection, points=placed, method=method, keeps=keeps)

    tree = better(drawn, "tree") if drawn is not None else None
    return tree or (better(optimized(lifted, start, seed), "neighbors") if few else None) or projection


_DONE = {
    "tree": "The graph is a tree, and this is a drawing of it: the root is in the middle, a step down is a step "
    "outward, and a branch keeps to its own sector.",
    "neighbors": "Points were placed so that nearest neighbors stay near and other distances keep their order.",
}


def faithfulness(points: Any, disk: Plane, space: str = "lorentz") -> Faithfulness:
    """How true points of the disk are to those of a hyperbolic space, measured on at most 2,000 nodes."""
    from scipy.stats import rankdata  # here, since it takes a second to import

    lifted, plane = lorentz_tensor(points, space), lorentz_tensor(disk, "poincare")
    random = np.random.RandomState(0)
    nodes = np.sort(random.permutation(len(lifted))[:_MEASURED_NODES])
    k = max(1, min(10, (len(lifted) - 1) // 2))
    shared = shared_fraction(*(_nearest(x, nodes, k) for x in (plane, lifted)))
    first, second = random.randint(len(lifted), size=(_MEASURED_PAIRS, 2)).T
    first, second = first[first != second], second[first != second]
    ranks = (rankdata(lorentz.composed_distance(x[first], x[second], squared=False)) for x in (lifted, plane))
    x, y = (rank - (len(first) + 1) / 2 for rank in ranks)
    length = float(np.sqrt((x @ x) * (y @ y)))
    return Faithfulness(shared, float(x @ y) / length if length > 0 else 0.0)


def _nearest(points: torch.Tensor, nodes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    vectors = vectors_of(points)
    return recommend_many(vectors, [], nodes, k, ExactSearch(vectors)).others


def optimized(
    points: torch.Tensor,
    start: Plane,
    seed: int = 0,
    *,
    attraction: float = _ATTRACTION,
    repulsion: float = _REPULSION,
    stress: float = _STRESS,
) -> Plane:
    """Points of the disk after optimization from ``start``; ``points`` are on the hyperboloid."""
    count = len(points)
    near = _nearest(points, np.arange(count), min(_NEIGHBORS, count - 1))
    starts = np.arange(0, near.size + 1, near.shape[1])
    graph = sp.csr_array((np.full(near.size, attraction / 2), near.ravel(), starts), shape=(count, count))
    graph = sp.csr_array(graph + graph.T)
    random = np.random.RandomState(seed)
    pairs = random.randint(count, size=(2, _MEASURED_PAIRS))
    median = float(lorentz.composed_distance(points[pairs[0]], points[pairs[1]], squared=False).median())
    scale = _MEDIAN / median if median > 0 else 1.0
    start = start.round(9)  # the last bits of a projection depend on the number of threads
    radii = 2 * np.arctanh(np.linalg.norm(start, axis=1, keepdims=True)).clip(1e-12)
    shrunk = start * np.tanh(radii * (0.6 * _MEDIAN / np.quantile(radii, 0.95)) / 2) / np.tanh(radii / 2)
    here = poincare.to_lorentz(torch.from_numpy(shrunk + random.normal(scale=1e-4, size=shrunk.shape))).numpy()
    there, velocity = np.empty_like(here), np.zeros_like(here)
    original, pulls = points.numpy(), (graph.indptr, graph.indices, graph.data)
    epochs = int(_EPOCHS * min(1.0, (_MANY / count) ** 0.5))
    for epoch in range(epochs):
        rate = _RATE * (1 - epoch / epochs)
        weights, draw = (repulsion, stress, scale, rate), (seed, epoch)
        run_on_rows(_move_rows, (count, _WORK), here, there, velocity, *pulls, original, weights, draw)
        here, there = there, here
    return _centered(torch.from_numpy(here))


def _centered(points: torch.Tensor) -> Plane:
    """Points of the disk with their Einstein midpoint in the middle."""
    sums = torch.from_numpy(points.numpy().sum(0))  # in one order, for any number of threads
    disk, middle = (poincare.from_lorentz(x).numpy() for x in (points, sums / lorentz.norm_of_sum(sums)))
    z, center = disk[:, 0] + 1j * disk[:, 1], complex(*middle)
    moved = (z - center) / (1 - np.conj(center) * z)
    return np.column_stack([moved.real, moved.imag])


@compiled
def _move_rows(
    first: int, last: int, here: Any, there: Any, velocity: Any, starts: Any, neighbors: Any, pull: Any, original: Any,
    weights: Any, draw: Any,
) -> None:  # fmt: skip
    """One step of all rows from where all points were, so that the order of rows does not matter."""
    repulsion, stress, scale, rate = weights
    count = len(here)
    for i in range(first, last):
        x0, x1, x2 = here[i, 0], here[i, 1], here[i, 2]
        v0 = v1 = v2 = 0.0
        state = random_state(draw[0], draw[1], i)
        attracting = starts[i + 1] - starts[i]
        for k in range(attracting + _NEGATIVES + _PAIRS):
            j = neighbors[starts[i] + k] if k < attracting else random_below(count, state)
            y0, y1, y2 = here[j, 0], here[j, 1], here[j, 2]
            cosh = x0 * y0 - x1 * y1 - x2 * y2
            if cosh <= 1 + 1e-12:  # no direction
                continue
            d = np.arccosh(cosh)
            if k < attracting:  # toward the other point, by the derivative of log(1 + d²)
                force = pull[starts[i] + k] * 2 * d / (1 + d * d)
            elif k < attracting + _NEGATIVES:
                force = -repulsion * 2 * d / ((0.01 + d * d) * (1 + d * d))
            else:
                product = original[i, 0] * original[j, 0]
                for column in range(1, original.shape[1]):
                    product -= original[i, column] * original[j, column]
                wanted = scale * np.arccosh(max(product, 1.0))
                force = stress * (d - wanted) / (0.1 + wanted)
            force /= np.sqrt(cosh * cosh - 1)
            v0 += force * (y0 - cosh * x0)
            v1 += force * (y1 - cosh * x1)
            v2 += force * (y2 - cosh * x2)
        v0 = _MOMENTUM * velocity[i, 0] + rate * v0
        v1 = _MOMENTUM * velocity[i, 1] + rate * v1
        v2 = _MOMENTUM * velocity[i, 2] + rate * v2
        off = x1 * v1 + x2 * v2 - x0 * v0  # the velocity is one of the last point: make it tangent here
        v0, v1, v2 = v0 + off * x0, v1 + off * x1, v2 + off * x2
        length = np.sqrt(max(v1 * v1 + v2 * v2 - v0 * v0, 0.0))
        if length > _LONGEST_STEP:
            shorter = _LONGEST_STEP / length
            v0, v1, v2, length = v0 * shorter, v1 * shorter, v2 * shorter, _LONGEST_STEP
        along = np.sinh(length) / length if length > 1e-9 else 1.0
        y1, y2 = np.cosh(length) * x1 + along * v1, np.cosh(length) * x2 + along * v2
        away = np.sqrt(y1 * y1 + y2 * y2)
        if away > _FARTHEST:
            y1, y2 = y1 * _FARTHEST / away, y2 * _FARTHEST / away
        there[i, 0], there[i, 1], there[i, 2] = np.sqrt(1 + y1 * y1 + y2 * y2), y1, y2
        velocity[i, 0], velocity[i, 1], velocity[i, 2] = v0, v1, v2


def _draw_tree(edges: NDArray[np.int64], start: Plane) -> Plane | None:
    """A tree, or a forest of a few large ones, in sectors by numbers of leaves; None if the graph is neither.

    A bounded form of Sarkar's construction (2011), which needs far longer edges to keep branches apart. Siblings come
    in the order of their angles in ``start``.
    """
    count = len(start)
    links = different_links(edges, count)
    names = np.argsort(np.arctan2(start[:, 1], start[:, 0]), kind="stable")
    places = np.empty_like(names)
    places[names] = np.arange(count)
    both = np.concatenate([places[links], places[links[:, ::-1]]])
    graph = sp.csr_array((np.ones(len(both), np.int8), both.T), shape=(count, count))
    components, component = connected_components(graph, directed=False)
    if len(links) + components != count or 10 * components > count:
        return None
    graph.sort_indices()
    disk = np.empty((count, 2))
    disk[names] = _sectors(graph, _roots(places[edges], graph, component, components))
    return disk


def _roots(edges: NDArray[np.int64], graph: sp.csr_array, component: NDArray[Any], components: int) -> NDArray[Any]:
    """Where all edges of a tree lead to or come from; else the middle of a longest path of each tree."""
    source, target = edges[:, edges[0] != edges[1]]
    for begin in (source, target):
        counts = np.bincount(begin, minlength=len(component))
        if len(begin) == len(component) - components and counts.max(initial=0) <= 1:
            return np.flatnonzero(counts == 0)
    ends = np.unique(component, return_index=True)[1]
    for _ in range(2):
        order, parent = _descend(graph, ends)
        ends[component[order[1:]]] = order[1:]  # the last of each tree, which is the farthest
    middles, above = [], parent.tolist()
    for node in ends.tolist():
        path = [node]
        while above[path[-1]] < len(component):
            path.append(above[path[-1]])
        middles.append(path[(len(path) - 1) // 2])
    return np.array(middles)


def _descend(graph: sp.csr_array, roots: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Nodes breadth first, and the parent of each, below a further node that all roots hang from."""
    indices = np.concatenate([graph.indices, roots])
    starts = np.append(graph.indptr, len(indices))
    shape = (len(starts) - 1,) * 2
    return breadth_first_order(sp.csr_array((np.ones(len(indices)), indices, starts), shape=shape), shape[0] - 1)


def _sectors(graph: sp.csr_array, roots: NDArray[Any]) -> Plane:
    """Each node in the middle of its sector, which is as wide as it has leaves below it."""
    order, parent = (found.tolist() for found in _descend(graph, roots))
    top, nodes = order[0], order[1:]
    depth, leaves, free = [0] * len(order), [0] * len(order), [0.0] * len(order)
    depth[top] = 0 if len(roots) > 1 else -1
    for node in nodes:
        depth[node] = depth[parent[node]] + 1
    for node in reversed(nodes):
        leaves[node] = max(leaves[node], 1)
        leaves[parent[node]] += leaves[node]
    radius = min(max(np.log(leaves[top] / np.pi), _LEAST_RADIUS), _MOST_RADIUS)
    begins, widths = [0.0] * len(order), (2 * np.pi / leaves[top] * np.array(leaves)).tolist()
    for node in nodes:  # a sector begins where that of the sibling before it ends
        begins[node] = free[node] = free[parent[node]]
        free[parent[node]] += widths[node]
    angles = (np.array(begins) + np.array(widths) / 2)[:top]
    away = np.tanh(radius * np.array(depth[:top]) / max(1, *depth) / 2)
    return np.column_stack([away * np.cos(angles), away * np.sin(angles)])
