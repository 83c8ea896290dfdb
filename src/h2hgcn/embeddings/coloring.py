"""Which colour each point of a picture gets, and the legend that says why."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

# Middle tones, to be seen on white and on black.
CATEGORIES = (
    "#2f78d0", "#d9581c", "#2a9155", "#c2468f", "#8059cc", "#a87a08", "#1590a4", "#cf3a44", "#74842a", "#94624a",
    "#5a94dc", "#dd8a34", "#4fa874", "#d672ae", "#a086dc", "#bf9c2e", "#42a8b8", "#dc6c6c", "#94a244", "#b5886c",
)  # fmt: skip
RADII = ("#5b4bb0", "#3b72b8", "#218f9c", "#2f9e6a", "#7d9c30", "#b98a1e")
PLAIN, UNLABELLED = "#2f78d0", "#8a8f98"


@dataclass(frozen=True)
class Coloring:
    """``shades`` holds for each point the place of its colour in ``palette``; ``names`` says what each colour means.

    ``names`` is empty if there is but one colour.
    """

    shades: NDArray[np.int64]
    palette: tuple[str, ...]
    names: tuple[str, ...]
    heading: str


def color_points(labels: pa.Array | None, distances: NDArray[np.float64] | None, count: int) -> Coloring:
    """By label if there are at most 20 of them, else by distance to the middle if that means something."""
    if labels is not None and labels.null_count < count:
        different = pc.unique(labels.drop_null())
        if len(different) <= len(CATEGORIES):
            return _by_label(labels, different)
    if distances is not None:
        return _by_distance(distances)
    return Coloring(np.zeros(count, dtype=np.int64), (PLAIN,), (), "")


def _by_label(labels: pa.Array, different: pa.Array) -> Coloring:
    names = sorted(different.to_pylist(), key=natural_order)
    places = pc.fill_null(pc.index_in(labels, pa.array(names, pa.string())), len(names))
    palette = CATEGORIES[: len(names)]
    if labels.null_count:
        names, palette = [*names, "no label"], (*palette, UNLABELLED)
    return Coloring(places.to_numpy(zero_copy_only=False).astype(np.int64), palette, tuple(names), "Label")


def natural_order(name: str) -> tuple[bool, int, str]:
    """Numbers before words and in their own order: 9 comes before 10."""
    is_number = name.isascii() and name.isdigit() and len(name) < 19
    return not is_number, int(name) if is_number else 0, name


def _by_distance(distances: NDArray[np.float64]) -> Coloring:
    edges = np.linspace(distances.min(), distances.max(), len(RADII) + 1)
    names = tuple(f"{low:.1f} – {high:.1f}" for low, high in pairwise(edges))
    if len(set(names)) < len(names):
        return Coloring(np.zeros(len(distances), dtype=np.int64), (PLAIN,), (), "")
    shades = np.searchsorted(edges[1:-1], distances, side="right")
    return Coloring(shades.astype(np.int64), RADII, names, "Distance to the middle")
