"""All that a page shows, out of arrays that may come from anywhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from h2hgcn.embeddings import project_to_disk
from h2hgcn.embeddings.columns import id_column, ids_as_array, label_column
from h2hgcn.embeddings.coordinates import check_coordinates, check_points
from h2hgcn.embeddings.neighbors import Rank
from h2hgcn.errors import DataError
from h2hgcn.explorer.column import Column, make_column
from h2hgcn.explorer.links import Links, find_links, find_targets
from h2hgcn.explorer.nearest import Nearest, Probabilities
from h2hgcn.geometry.numerics import ball_gap

# Further columns than these are left out: a list to choose from has to end.
MAX_COLUMNS = 60


@dataclass(frozen=True)
class Scene:
    """``points`` are those of the Poincaré disk, in float64; ``note`` says what is true of them."""

    title: str
    points: NDArray[np.float64]
    dim: int
    note: str
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
) -> Scene:
    """A scene of hyperbolic points with their ids; labels, edges (2 × edges) and further columns if there are any.

    Points of two dimensions are shown as they are, those of more as ``project_to_disk`` does. ``probabilities`` tells
    how likely pairs of nodes are linked; distances are multiplied by ``distance_scale`` where they are told.
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
    names = ids_as_array(id_column(ids, len(array)))
    links = None if edges is None else find_links(edges, len(array))
    columns = _columns(projection.points, labels, links, extra or {})
    targets = find_targets(edges, len(array)) if directed and edges is not None else links
    nearest = Nearest(array, kind, links, probabilities, distance_scale, targets, rank, directed)
    return Scene(title, projection.points, dim, projection.keeps, names, columns, links, nearest)


def _columns(
    disk: NDArray[np.float64], labels: Any, links: Links | None, extra: Mapping[str, Any]
) -> tuple[Column, ...]:
    found, classes = [], None
    if labels is not None:
        texts = label_column(labels, len(disk))
        if texts.null_count < len(texts):
            found.append(make_column("label", texts.to_numpy(zero_copy_only=False)))
            classes = found[0].categories
    found.append(make_column("radius", _radii(disk)))
    if links is not None:
        found.append(make_column("degree", links.degrees()))
    taken = {column.name for column in found}
    further = [
        make_column(name.strip() or "no name", values, classes) for name, values in extra.items() if name not in taken
    ]
    return (*found, *further[:MAX_COLUMNS])


def _radii(disk: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hyperbolic distances to the middle of the disk."""
    return 2 * np.arctanh(np.linalg.norm(disk, axis=1).clip(max=1 - ball_gap(torch.float64)))
