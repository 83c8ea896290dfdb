"""The disk inside a page: every point an SVG circle, or many points on a canvas that a small script fills."""

import base64
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from h2hgcn.embeddings.arcs import Arcs
from h2hgcn.embeddings.markup import Html, element, joined, json_block
from h2hgcn.embeddings.picture import Picture

MAX_SVG_POINTS = 3_000

_HALF = 500  # of the drawing's width; the disk leaves a margin
_RADIUS = 490

# On a canvas larger circles are drawn as lines: float32 holds their centres no better than to a fraction of a pixel.
_CANVAS_STRAIGHT = 1e3


def needs_script(picture: Picture) -> bool:
    return len(picture.points) > MAX_SVG_POINTS


def draw_disk(picture: Picture, ids: list[Any] | None) -> Html:
    """The figure with its legend and caption."""
    drawing = _canvas(picture, ids) if needs_script(picture) else _svg(picture, ids)
    texts = [element("p", *(f"{sentence} " for sentence in picture.caption))] if picture.caption else []
    side = element("figcaption", *_legend(picture), *texts)
    return element("figure", drawing, side, class_="disk")


def _legend(picture: Picture) -> list[Html]:
    coloring = picture.coloring
    if not coloring.names:
        return []
    counts = np.bincount(coloring.shades, minlength=len(coloring.names))
    items = (
        element("li", element("span", class_="dot", style=f"background:{color}"), name, " ", _count(count))
        for color, name, count in zip(coloring.palette, coloring.names, counts, strict=True)
    )
    return [element("p", coloring.heading, class_="heading"), element("ul", *items, class_="legend")]


def _count(count: int) -> Html:
    return element("small", f"{count:,}")


def _described(picture: Picture) -> str:
    where = "the Poincaré disk" if picture.round else "a square"
    by = f", coloured by {picture.coloring.heading.lower()}" if picture.coloring.names else ""
    return f"{len(picture.points):,} points in {where}{by}"


def _svg(picture: Picture, ids: list[Any] | None) -> Html:
    frame = [element("circle", cx=_HALF, cy=_HALF, r=_RADIUS, class_="boundary")] if picture.round else []
    links = [element("path", d=_arc_paths(picture.edges), class_="edges")] if picture.edges is not None else []
    return element(
        "svg",
        element("title", _described(picture)),
        *frame,
        *links,
        *_dots(picture, ids),
        viewBox=f"0 0 {2 * _HALF} {2 * _HALF}",
        role="img",
    )


def _dots(picture: Picture, ids: list[Any] | None) -> list[Html]:
    """One group for each colour. A point's title is what a browser shows when it is pointed at."""
    size = f"{min(9.0, max(3.0, 130 / len(picture.points) ** 0.5)):.1f}"
    names = _names(picture, ids)
    places = _on_page(picture.points).tolist()
    groups = []
    for shade, color in enumerate(picture.coloring.palette):
        dots = (
            element("circle", element("title", names[point]), cx=f"{x:.1f}", cy=f"{y:.1f}", r=size)
            for point in (picture.coloring.shades == shade).nonzero()[0]
            for x, y in [places[point]]
        )
        groups.append(element("g", joined(dots), fill=color))
    return groups


def _names(picture: Picture, ids: list[Any] | None) -> list[str]:
    first = (
        [str(name) for name in ids] if ids is not None else [f"point {place}" for place in range(len(picture.points))]
    )
    labels = picture.labels.to_pylist() if picture.labels is not None else [None] * len(first)
    return [name if label is None else f"{name} · {label}" for name, label in zip(first, labels, strict=True)]


def _on_page(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The page's second axis points down."""
    return _HALF + _RADIUS * points * [1, -1]


def _arc_paths(arcs: Arcs) -> str:
    start, end = _on_page(arcs.start).tolist(), _on_page(arcs.end).tolist()
    radii, lines, turns = (_RADIUS * arcs.radii).tolist(), arcs.straight.tolist(), arcs.turns.tolist()
    parts = []
    for (x, y), (u, v), radius, straight, turn in zip(start, end, radii, lines, turns, strict=True):
        way = "L" if straight else f"A{radius:.1f} {radius:.1f} 0 0 {int(turn < 0)} "
        parts.append(f"M{x:.1f} {y:.1f}{way}{u:.1f} {v:.1f}")
    return "".join(parts)


def _canvas(picture: Picture, ids: list[Any] | None) -> Html:
    data: dict[str, Any] = {
        "points": _base64(picture.points, "<f4"),
        "shades": _base64(picture.coloring.shades, "u1"),
        "palette": picture.coloring.palette,
        "round": picture.round,
        # as texts, since a script's numbers hold integers up to 2**53 only
        "ids": None if ids is None else [str(name) for name in ids],
    }
    if picture.labels is not None:
        encoded = pc.dictionary_encode(picture.labels)
        data["labels"] = encoded.dictionary.to_pylist()
        data["labelOf"] = _base64(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), "<i4")
    if picture.edges is not None:
        data["edges"] = _base64(_arc_numbers(picture.edges), "<f4")
    told = _described(picture)
    canvas = element("canvas", told, id="disk", role="img", aria_label=told, width=1000, height=1000)
    hover = element("output", id="disk-point", aria_live="off")
    without = element("noscript", "The points are drawn by a script in this file, which this viewer does not run.")
    return element("div", canvas, hover, without, json_block(data, "disk-data"))


def _arc_numbers(arcs: Arcs) -> NDArray[np.float64]:
    """Start, end, centre, radius and turn of each arc; the radius of a line is 0."""
    radii = np.where(arcs.straight | (arcs.radii > _CANVAS_STRAIGHT), 0.0, arcs.radii)
    return np.column_stack([arcs.start, arcs.end, arcs.centers, radii, arcs.turns])


def _base64(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode()
