"""Charts of a report in SVG: curves, and the disk."""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from h2hgcn.embeddings.disk import Arcs, Picture
from h2hgcn.embeddings.markup import Html, element, joined, json_block, shown
from h2hgcn.errors import DataError

Array = NDArray[np.float64]

WIDTH, HEIGHT = 420, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 22, 34
_MARK_WIDTH = 160  # room for the words beside a mark

# Larger numbers than this are left out of a chart, whose scale they would overflow.
_LARGEST = 1e150


@dataclass(frozen=True)
class Series:
    """Values of one name by epoch; NaN where an epoch had none."""

    name: str
    epochs: Array
    values: Array

    def best_epoch(self) -> float | None:
        """That of the highest value; of a loss, the lowest."""
        finite = np.isfinite(self.values)
        if not finite.any():
            return None
        worth = -self.values if self.name.endswith("loss") else self.values
        return float(self.epochs[np.where(finite, worth, -np.inf).argmax()])


def read_history(history: Sequence[Mapping[str, Any]]) -> dict[str, Series]:
    """All numbers of a history by name. Epochs are counted from 1 unless each entry names its own."""
    entries = [_flat(entry) for entry in history]
    epochs = np.array([_number(entry.get("epoch", place), "epoch") for place, entry in enumerate(entries, 1)])
    names = dict.fromkeys(name for entry in entries for name in entry if name != "epoch")
    return {
        name: Series(name, epochs, np.array([_number(entry.get(name), name) for entry in entries])) for name in names
    }


def line_chart(series: Series, title: str, best_epoch: float | None) -> Html:
    """A chart of a series, with its best epoch marked."""
    drawn = np.isfinite(series.epochs) & (np.abs(series.values) < _LARGEST)
    if not drawn.any():
        return element("p", f"{title}: no finite value was recorded.")
    series = Series(series.name, series.epochs[drawn], series.values[drawn])
    epochs, values = series.epochs, series.values
    x_low, x_high = _room(epochs)
    y_low, y_high = _room(values)
    x = LEFT + (epochs - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)
    y = HEIGHT - BOTTOM - (values - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)
    told = f"{title} from {shown(values[0], 4)} at epoch {epochs[0]:g} to {shown(values[-1], 4)} at {epochs[-1]:g}."
    return element(
        "svg",
        element("title", told),
        _axes(x_low, x_high, y_low, y_high),
        element("path", d=_path(x, y), class_="line"),
        *([_mark(series, x, y, best_epoch)] if best_epoch is not None else []),
        element("text", title, x=LEFT, y=13, class_="name"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        class_="chart",
    )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two others, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [step * place for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _axes(x_low: float, x_high: float, y_low: float, y_high: float) -> Html:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [element("text", "epoch", x=right, y=HEIGHT - 2, text_anchor="end")]
    for value in ticks(y_low, y_high):
        y = bottom - (value - y_low) / (y_high - y_low) * (bottom - TOP)
        parts.append(element("path", d=f"M{LEFT} {y:.1f}H{right}", class_="grid"))
        parts.append(element("text", f"{value:.6g}", x=LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"))
    for value in ticks(x_low, x_high):
        x = LEFT + (value - x_low) / (x_high - x_low) * (right - LEFT)
        parts.append(element("text", f"{value:.6g}", x=f"{x:.1f}", y=bottom + 16, text_anchor="middle"))
    return element("g", *parts, class_="axis")


def _mark(series: Series, x: Array, y: Array, best_epoch: float) -> Html:
    at = (series.epochs == best_epoch).nonzero()[0]
    if not len(at):
        return Html("")
    here, value = at[0], shown(series.values[at[0]], 4)
    anchor = "end" if x[here] > WIDTH - _MARK_WIDTH else "start"
    return element(
        "g",
        element("path", d=f"M{x[here]:.1f} {TOP}V{HEIGHT - BOTTOM}"),
        element("circle", cx=f"{x[here]:.1f}", cy=f"{y[here]:.1f}", r=3.5),
        element(
            "text",
            f"best epoch {best_epoch:g}: {value}",
            x=f"{x[here] + (-6 if anchor == 'end' else 6):.1f}",
            y=TOP + 10 if y[here] > HEIGHT / 2 else HEIGHT - BOTTOM - 6,
            text_anchor=anchor,
        ),
        class_="best",
    )


def _path(x: Array, y: Array) -> str:
    steps = [f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return "M" + "L".join(steps if len(steps) > 1 else steps * 2)  # a single point as a dot


def _room(values: Array) -> tuple[float, float]:
    """The range of an axis, never of no width."""
    low, high = float(values.min()), float(values.max())
    margin = (high - low) * 0.04 or max(abs(high) * 0.1, 0.5)
    return low - margin, high + margin


def _flat(entry: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in entry.items():
        flat |= _flat(value, f"{prefix}{name}_") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def _number(value: Any, name: str) -> float:
    try:
        return math.nan if value is None or isinstance(value, str) else float(value)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the history's {name!r} holds {value!r}; pass numbers, or None for an epoch without"
        ) from error


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
