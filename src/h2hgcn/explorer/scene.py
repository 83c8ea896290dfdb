"""All that a page shows, out of arrays that may come from anywhere."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.embeddings import project_to_disk
from h2hgcn.embeddings.coordinates import check_coordinates, check_points, lorentz_tensor
from h2hgcn.embeddings.disk import DiskProjection, natural_order, radii_in_disk
from h2hgcn.embeddings.files import as_array, id_column, label_column
from h2hgcn.embeddings.nearest import Rank, link_matrix, nearest_nodes
from h2hgcn.errors import DataError

# Names beyond these are taken together: no legend shows more, and a page has to hold them.
MAX_CATEGORIES = 1_000
OTHER = "other values"

# The code of a point that has no value.
MISSING = 0xFFFF

# Further columns than these are left out: a list to choose from has to end.
MAX_COLUMNS = 60


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
        low, middle, high = np.quantile(finite, [0, 0.5, 1]).tolist() if len(finite) else (0.0, 0.0, 0.0)
        whole = bool((finite == np.round(finite)).all())
        return {"name": self.name, "kind": "number", "low": low, "middle": middle, "high": high, "whole": whole}


def make_column(name: str, values: Any, known: tuple[str, ...] | None = None) -> Column:
    """A column of numbers, or of whatever else there is as names; None is no value.

    Names that all are among the ``known`` ones are places among these, so that each has the same color in both columns.
    """
    array = np.asarray(values)
    if array.dtype.kind in "iuf":  # float32 where that holds whole numbers exactly, and for fractions
        with np.errstate(over="ignore"):
            narrow = array.astype(np.float32)
        whole = array.dtype.kind in "iu"
        fits = np.abs(array.astype(np.float64)).max(initial=0) <= 2**24 if whole else True
        fits = fits and np.isfinite(narrow).sum() == np.isfinite(array).sum()
        numbers = narrow if fits else array.astype(np.float64)
        return Column(name, np.where(np.isfinite(numbers), numbers, np.nan))
    plain = [("yes" if value else "no") if isinstance(value, bool) else value for value in array.tolist()]
    texts = [None if value is None else str(value) for value in plain]
    counts = Counter(text for text in texts if text is not None)
    if counts and known is not None and len(known) <= MAX_CATEGORIES and counts.keys() <= set(known):
        kept = list(known)
    else:
        kept = sorted((text for text, _ in counts.most_common(MAX_CATEGORIES)), key=natural_order)
    codes: dict[str | None, int] = {text: place for place, text in enumerate(kept)} | {None: MISSING}
    categories = (*kept, OTHER) if len(counts) > len(kept) else tuple(kept)
    places = (codes.get(text, len(kept)) for text in texts)
    return Column(name, np.fromiter(places, dtype=np.uint16, count=len(texts)), categories)


# Probabilities of links for pairs (k × 2) of nodes; None where nothing was trained to tell them.
Probabilities = Callable[[NDArray[np.int64]], Iterable[float] | None]
Entry = dict[str, Any]

KINDS = ("neighbors", "links")


@dataclass
class Nearest:
    """Lists of nodes by distance, which is that of the whole space, whatever a picture shows of it. ``links`` says who
    is linked, ``targets`` whom no missing link leads to.
    """

    points: Tensor
    links: sp.csr_array | None
    targets: sp.csr_array | None
    probabilities: Probabilities | None
    distance_scale: float
    rank: Rank | None
    directed: bool

    @property
    def knows_links(self) -> bool:
        """Without edges nobody can tell which are missing."""
        return self.links is not None and self.links.nnz > 0

    def near(self, kind: str, node: int, k: int) -> list[Entry]:
        """``"neighbors"``: the ``k`` nearest nodes; ``"links"``: the nearest that the node is not linked with, or, if
        there is a ``rank``, the highest of those that it has no edge to.
        """
        return self.all_near(kind, [node], k)[0]

    def all_near(self, kind: str, nodes: Sequence[int], k: int) -> list[list[Entry]]:
        """The lists of several nodes, whose probabilities are asked for together."""
        if kind == "neighbors":
            found = [nearest_nodes(self.points, node, _row(None, node), k) for node in nodes]
        else:
            taken = self.links if self.rank is None else self.targets
            found = [nearest_nodes(self.points, node, _row(taken, node), k, rank=self.rank) for node in nodes]
        pairs = np.array([(node, other) for node, (others, _) in zip(nodes, found, strict=True) for other in others])
        given = self.probabilities(pairs) if self.probabilities is not None and len(pairs) else None
        chances = iter([None] * len(pairs) if given is None else [float(chance) for chance in given])
        lists = []
        for node, (others, distances) in zip(nodes, found, strict=True):
            linked = np.isin(others, _row(self.links, node))
            columns = others.tolist(), (distances * self.distance_scale).tolist(), linked.tolist()
            lists.append(
                [
                    {"node": other, "distance": distance, "probability": next(chances), "linked": known}
                    for other, distance, known in zip(*columns, strict=True)
                ]
            )
        return lists


def _row(links: sp.csr_array | None, node: int) -> NDArray[Any]:
    return np.empty(0, np.int32) if links is None else links.indices[links.indptr[node] : links.indptr[node + 1]]


@dataclass(frozen=True)
class Scene:
    """``points`` are those of the projection to the Poincaré disk, in float64; ``note`` says what is true of them.
    ``layout`` is shown first, if there is one. ``links`` is an adjacency matrix, both ways.
    """

    title: str
    points: NDArray[np.float64]
    dim: int
    note: str
    layout: DiskProjection | None
    ids: NDArray[Any]
    columns: tuple[Column, ...]
    links: sp.csr_array | None
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
    links = None if edges is None else link_matrix(edges, len(array))
    targets = link_matrix(edges, len(array), "out") if directed and edges is not None else links
    nearest = Nearest(lorentz_tensor(array, kind), links, targets, probabilities, distance_scale, rank, directed)
    columns = _columns(projection.points, labels, links, extra or {})
    return Scene(title, projection.points, dim, projection.keeps, layout, names, columns, links, nearest)


def _columns(
    disk: NDArray[np.float64], labels: Any, links: sp.csr_array | None, extra: Mapping[str, Any]
) -> tuple[Column, ...]:
    found, classes = [], None
    if labels is not None:
        texts = label_column(labels, len(disk))
        if texts.null_count < len(texts):
            found.append(make_column("label", texts.to_numpy(zero_copy_only=False)))
            classes = found[0].categories
    found.append(make_column("radius", radii_in_disk(disk)))
    if links is not None:
        found.append(make_column("degree", np.diff(links.indptr)))
    known = {column.name for column in found}
    taken = set(known)
    for name in [name for name in extra if name not in known][:MAX_COLUMNS]:
        plain = name.strip() or "no name"
        free = next(each for each in chain([plain], (f"{plain} ({k})" for k in count(2))) if each not in taken)
        found.append(make_column(free, extra[name], classes))
        taken.add(free)
    return tuple(found)
