"""All that a page shows, out of arrays that may come from anywhere."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings import project_to_disk
from h2hgcn.embeddings.coordinates import check_coordinates, check_points, lorentz_tensor
from h2hgcn.embeddings.disk import DiskProjection, different_links, natural_order, radii_in_disk
from h2hgcn.embeddings.files import as_array, id_column, label_column
from h2hgcn.embeddings.nearest import Rank, check_edges, nearest_nodes
from h2hgcn.errors import DataError

# Names beyond these are taken together: no legend shows more, and a page has to hold them.
MAX_CATEGORIES = 1_000
OTHER = "other values"

# The code of a point that has no value.
MISSING = 0xFFFF


@dataclass(frozen=True)
class Column:
    """``values`` are numbers (NaN where there is none), or, with ``categories``, places among these."""

    name: str
    values: NDArray[Any]
    categories: tuple[str, ...] | None = None

    def described(self) -> dict[str, Any]:
        """What a page has to know before it asks for the values."""
        if self.categories is not None:
            return {"name": self.name, "kind": "category", "categories": list(self.categories)}
        finite = self.values[np.isfinite(self.values)].astype(np.float64)
        low, middle, high = (float(x) for x in np.quantile(finite, [0, 0.5, 1])) if len(finite) else (0.0, 0.0, 0.0)
        whole = bool((finite == np.round(finite)).all())
        return {"name": self.name, "kind": "number", "low": low, "middle": middle, "high": high, "whole": whole}


def make_column(name: str, values: Any, known: tuple[str, ...] | None = None) -> Column:
    """A column of numbers, or of whatever else there is as names; None is no value.

    Names that all are among the ``known`` ones are places among these, so that each has the same color in both columns.
    """
    array = np.asarray(values)
    if array.dtype.kind in "iuf":
        return Column(name, _numbers(array))
    return _named(name, array, known)


def _numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Float32 where that holds whole numbers exactly, and for fractions; else float64."""
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    if array.dtype.kind in "iu":
        return narrow if np.abs(array.astype(np.float64)).max(initial=0) <= 2**24 else array.astype(np.float64)
    numbers = narrow if np.isfinite(narrow).sum() == np.isfinite(array).sum() else array.astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _named(name: str, array: NDArray[Any], known: tuple[str, ...] | None) -> Column:
    texts = [None if value is None else _text(value) for value in array.tolist()]
    counts = Counter(text for text in texts if text is not None)
    if counts and known is not None and len(known) <= MAX_CATEGORIES and counts.keys() <= set(known):
        kept = list(known)
    else:
        kept = sorted((text for text, _ in counts.most_common(MAX_CATEGORIES)), key=natural_order)
    codes = {text: place for place, text in enumerate(kept)}
    categories = (*kept, OTHER) if len(counts) > len(kept) else tuple(kept)
    places = (MISSING if text is None else codes.get(text, len(kept)) for text in texts)
    return Column(name, np.fromiter(places, dtype=np.uint16, count=len(texts)), categories)


def _text(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Links:
    """The neighbors of node ``i`` are ``targets[offsets[i] : offsets[i + 1]]``, in ascending order."""

    offsets: NDArray[np.uint32]
    targets: NDArray[np.uint32]

    @property
    def count(self) -> int:
        """Every edge counts once, whichever way it goes."""
        return len(self.targets) // 2

    def degrees(self) -> NDArray[np.int64]:
        ends = self.offsets.astype(np.int64)
        return ends[1:] - ends[:-1]

    def of(self, node: int) -> NDArray[np.uint32]:
        return self.targets[self.offsets[node] : self.offsets[node + 1]]


def find_links(edges: Any, num_nodes: int) -> Links:
    """Edges ``(2, edges)`` both ways, each once, without loops."""
    pairs = different_links(check_edges(edges, num_nodes), num_nodes)
    return _grouped(np.concatenate([pairs, pairs[:, ::-1]]).T, num_nodes)


def find_targets(edges: Any, num_nodes: int) -> Links:
    """Directed edges ``(2, edges)`` from their sources, in the form of ``Links``; loops are left out."""
    return _grouped(check_edges(edges, num_nodes), num_nodes)


def _grouped(edges: NDArray[np.int64], num_nodes: int) -> Links:
    codes = np.sort((edges[0] * num_nodes + edges[1])[edges[0] != edges[1]])
    sources, targets = np.divmod(codes[np.diff(codes, prepend=-1) > 0], num_nodes)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=num_nodes))])
    return Links(offsets.astype(np.uint32), targets.astype(np.uint32))


# Probabilities of links for pairs (k × 2) of nodes; None where nothing was trained to tell them.
Probabilities = Callable[[NDArray[np.int64]], Iterable[float] | None]
Entry = dict[str, Any]
Found = tuple[NDArray[np.int64], NDArray[np.float64]]

KINDS = ("neighbors", "links")


class Nearest:
    """Lists of nodes by distance, which is that of the whole space, whatever a picture shows of it."""

    def __init__(
        self,
        points: Any,
        space: str,
        links: Links | None,
        probabilities: Probabilities | None = None,
        distance_scale: float = 1.0,
        targets: Links | None = None,
        rank: Rank | None = None,
        directed: bool = False,
    ) -> None:
        self._points = lorentz_tensor(points, space)
        self._links = links
        self._probabilities = probabilities
        self._scale = distance_scale
        self._targets = targets
        self._rank = rank
        self.directed = directed

    @property
    def knows_links(self) -> bool:
        """Without edges nobody can tell which are missing."""
        return self._links is not None and self._links.count > 0

    def near(self, kind: str, node: int, k: int) -> list[Entry]:
        """``"neighbors"``: the ``k`` nearest nodes; ``"links"``: the nearest that the node is not linked with, or, if
        there is a ``rank``, the highest of those that it has no edge to.
        """
        return self.all_near(kind, [node], k)[0]

    def all_near(self, kind: str, nodes: Sequence[int], k: int) -> list[list[Entry]]:
        """The lists of several nodes, whose probabilities are asked for together."""
        found = [self._found(kind, node, k) for node in nodes]
        pairs = np.array([(node, other) for node, (others, _) in zip(nodes, found, strict=True) for other in others])
        given = self._probabilities(pairs) if self._probabilities is not None and len(pairs) else None
        chances = iter([None] * len(pairs) if given is None else [float(chance) for chance in given])
        return [
            self._entries(node, others, distances, chances)
            for node, (others, distances) in zip(nodes, found, strict=True)
        ]

    def _entries(
        self, node: int, others: NDArray[np.int64], distances: NDArray[np.float64], chances: Iterator[float | None]
    ) -> list[Entry]:
        linked = np.isin(others, self._linked(node))
        return [
            {"node": other, "distance": distance * self._scale, "probability": next(chances), "linked": known}
            for other, distance, known in zip(others.tolist(), distances.tolist(), linked.tolist(), strict=True)
        ]

    def _found(self, kind: str, node: int, k: int) -> Found:
        if kind == "neighbors":
            return nearest_nodes(self._points, node, _NONE, k)
        taken = self._linked(node) if self._rank is None else _of(self._targets, node)
        return nearest_nodes(self._points, node, taken, k, rank=self._rank)

    def _linked(self, node: int) -> NDArray[np.uint32]:
        return _of(self._links, node)


_NONE = np.empty(0, dtype=np.uint32)


def _of(links: Links | None, node: int) -> NDArray[np.uint32]:
    return _NONE if links is None else links.of(node)


# Further columns than these are left out: a list to choose from has to end.
MAX_COLUMNS = 60


@dataclass(frozen=True)
class Scene:
    """``points`` are those of the projection to the Poincaré disk, in float64; ``note`` says what is true of them.
    ``layout`` is shown first, if there is one.
    """

    title: str
    points: NDArray[np.float64]
    dim: int
    note: str
    layout: DiskProjection | None
    ids: NDArray[Any]
    columns: tuple[Column, ...]
    links: Links | None
    nearest: Nearest


def make_scene(
    points: Any,
    ids: Any,
    labels: Any = None,
    space: str = "lorentz",
    edges: Any = None,
    extra: Mapping[str, Any] | None = None,
    *,
    title: str = "An embedding",
    probabilities: Probabilities | None = None,
    distance_scale: float = 1.0,
    rank: Rank | None = None,
    directed: bool = False,
    layout: DiskProjection | None = None,
) -> Scene:
    """A scene of hyperbolic points with their ids; labels, edges (2 × edges) and further columns if there are any.

    Points of two dimensions are shown as they are, those of more as ``project_to_disk`` does. ``probabilities`` tells
    how likely pairs of nodes are linked; distances are multiplied by ``distance_scale`` where they are told.
    ``layout`` is what ``layout_in_disk`` made of them.
    ``rank`` puts the missing links of a node in order, those from it if edges are ``directed``.
    """
    kind = check_coordinates(space)
    if kind == "euclidean":
        raise DataError(
            "the points are Euclidean, and the explorer walks on the Poincaré disk; train a hyperbolic model"
        )
    array = check_points(points, kind)
    dim = array.shape[1] - (kind == "lorentz")
    projection = project_to_disk(array, kind, center=dim > 2)
    names = as_array(id_column(ids, len(array)))
    links = None if edges is None else find_links(edges, len(array))
    columns = _columns(projection.points, labels, links, extra or {})
    targets = find_targets(edges, len(array)) if directed and edges is not None else links
    nearest = Nearest(array, kind, links, probabilities, distance_scale, targets, rank, directed)
    return Scene(title, projection.points, dim, projection.keeps, layout, names, columns, links, nearest)


def _columns(
    disk: NDArray[np.float64], labels: Any, links: Links | None, extra: Mapping[str, Any]
) -> tuple[Column, ...]:
    found, classes = [], None
    if labels is not None:
        texts = label_column(labels, len(disk))
        if texts.null_count < len(texts):
            found.append(make_column("label", texts.to_numpy(zero_copy_only=False)))
            classes = found[0].categories
    found.append(make_column("radius", radii_in_disk(disk)))
    if links is not None:
        found.append(make_column("degree", links.degrees()))
    known = {column.name for column in found}
    taken = set(known)
    for name, values in [(name, values) for name, values in extra.items() if name not in known][:MAX_COLUMNS]:
        found.append(make_column(_free_name(name.strip() or "no name", taken), values, classes))
        taken.add(found[-1].name)
    return tuple(found)


def _free_name(name: str, taken: set[str]) -> str:
    return next(each for each in chain([name], (f"{name} ({k})" for k in count(2))) if each not in taken)
