"""What the charts and pictures of a report show, in numbers and texts that its template puts on the page."""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from h2hgcn.embeddings.disk import Arcs, Picture
from h2hgcn.errors import DataError

Array = NDArray[np.float64]

# Larger numbers than this are left out of a chart, whose scale they would overflow.
_LARGEST = 1e150

# The lowest probability of a logarithmic axis: less is drawn at its end.
_LOWEST = 1e-6


def shown(value: Any, digits: int | None = None) -> str:
    """A value as a person reads it: a number with so many decimals unless it is tiny or huge, nothing as a dash."""
    if value is None or (isinstance(value, Real) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real) and digits is not None and not isinstance(value, Integral):
        usual = value == 0 or 10**-digits < abs(value) < 10**digits
        return f"{float(value):.{digits}{'f' if usual else 'g'}}"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(shown(item, digits) for item in value) or "–"
    return str(value)


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
    entries = [flat(entry, "_") for entry in history]
    epochs = np.array([_number(entry.get("epoch", place), "epoch") for place, entry in enumerate(entries, 1)])
    names = dict.fromkeys(name for entry in entries for name in entry if name != "epoch")
    return {
        name: Series(name, epochs, np.array([_number(entry.get(name), name) for entry in entries])) for name in names
    }


def flat(entry: Mapping[str, Any], separator: str, prefix: str = "") -> dict[str, Any]:
    """Values of nested mappings by joined names."""
    found: dict[str, Any] = {}
    for name, value in entry.items():
        inner = f"{prefix}{name}"
        found |= flat(value, separator, inner + separator) if isinstance(value, Mapping) else {inner: value}
    return found


def _number(value: Any, name: str) -> float:
    try:
        return math.nan if value is None or isinstance(value, str) else float(value)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the history's {name!r} holds {value!r}; pass numbers, or None for an epoch without"
        ) from error


@dataclass(frozen=True)
class Chart:
    """A line in axes, in the units of its drawing; ``best`` is a point with a text beside it."""

    name: str
    summary: str
    x_name: str
    x_ticks: list[tuple[str, str]]
    y_ticks: list[tuple[str, str]]
    line: str
    best: tuple[str, str, str] | None = None
    ideal: str | None = None
    dots: list[tuple[str, str, str]] | None = None
    height: int = 240
    width: int = 420
    left: int = 52
    top: int = 22

    @property
    def right(self) -> int:
        return self.width - 12

    @property
    def bottom(self) -> int:
        return self.height - 34


def _place(share: float, begin: int, end: int) -> str:
    return f"{begin + share * (end - begin):.1f}"


def line_chart(series: Series, title: str, best_epoch: float | None) -> Chart | str:
    """A chart of a series, with its best epoch marked; a sentence if there is nothing to draw."""
    drawn = np.isfinite(series.epochs) & (np.abs(series.values) < _LARGEST)
    if not drawn.any():
        return f"{title}: no finite value was recorded."
    epochs, values = series.epochs[drawn], series.values[drawn]
    (x_low, x_high), (y_low, y_high) = _room(epochs), _room(values)

    def x(value: float) -> str:
        return _place((value - x_low) / (x_high - x_low), Chart.left, 408)

    def y(value: float) -> str:
        return _place((value - y_low) / (y_high - y_low), 206, Chart.top)

    steps = [f"{x(a)} {y(b)}" for a, b in zip(epochs.tolist(), values.tolist(), strict=True)]
    marked = values[epochs == best_epoch]
    best = None
    if best_epoch is not None and len(marked):
        best = x(best_epoch), y(marked[0]), f"best epoch {best_epoch:g}: {shown(marked[0], 4)}"
    return Chart(
        title,
        f"{title} from {shown(values[0], 4)} at epoch {epochs[0]:g} to {shown(values[-1], 4)} at {epochs[-1]:g}.",
        "epoch",
        [(x(value), f"{value:.6g}") for value in ticks(x_low, x_high)],
        [(y(value), f"{value:.6g}") for value in ticks(y_low, y_high)],
        "M" + "L".join(steps if len(steps) > 1 else steps * 2),  # a single point as a dot
        best,
    )


def reliability_chart(bins: Sequence[Mapping[str, float]], name: str, logarithmic: bool) -> Chart:
    """Predicted probabilities against what was the case."""
    low = _LOWEST if logarithmic else 0.0

    def share(value: float) -> float:
        return 1 - math.log(max(value, low)) / math.log(low) if logarithmic else value

    def x(value: float) -> str:
        return _place(share(value), Chart.left, 408)

    def y(value: float) -> str:
        return _place(share(value), 286, Chart.top)

    marks = [10.0**power for power in range(-6, 1)] if logarithmic else [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    places = [(x(one["predicted"]), y(one["actual"])) for one in bins]
    texts = (
        f"predicted {one['predicted']:.3g}, {name} {one['actual']:.3g}, {one['count']:,.0f} predictions" for one in bins
    )
    return Chart(
        name,
        f"Predicted probability against {name}; probabilities that are right lie on the diagonal.",
        "predicted",
        [(x(value), f"{value:g}") for value in marks],
        [(y(value), f"{value:g}") for value in marks],
        "M" + "L".join(f"{a} {b}" for a, b in places),
        ideal=f"M{x(low)} {y(low)}L{x(1.0)} {y(1.0)}",
        dots=[(*place, text) for place, text in zip(places, texts, strict=True)],
        height=320,
    )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two others, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [step * place for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _room(values: Array) -> tuple[float, float]:
    """The range of an axis, never of no width."""
    low, high = float(values.min()), float(values.max())
    margin = (high - low) * 0.04 or max(abs(high) * 0.1, 0.5)
    return low - margin, high + margin


# More points than these are drawn by a script.
MAX_SVG_POINTS = 3_000

_HALF, _RADIUS = 500, 490  # of the drawing and of its disk

# On a canvas larger circles are drawn as lines: float32 holds their centers no better than to a fraction of a pixel.
_CANVAS_STRAIGHT = 1e3


def figure(picture: Picture, ids: list[Any] | None) -> dict[str, Any]:
    """A picture with its legend and caption, as SVG if it has few points, else for a canvas."""
    coloring, count = picture.coloring, len(picture.points)
    sizes = np.bincount(coloring.shades, minlength=len(coloring.names))
    where = "the Poincaré disk" if picture.round else "a square"
    by = f", colored by {coloring.heading.lower()}" if coloring.names else ""
    shared = {
        "summary": f"{count:,} points in {where}{by}",
        "round": picture.round,
        "heading": coloring.heading,
        "legend": [
            (color, name, f"{size:,}")
            for color, name, size in zip(coloring.palette, coloring.names, sizes, strict=False)
        ],
        "caption": picture.caption,
        "canvas": count > MAX_SVG_POINTS,
    }
    if count > MAX_SVG_POINTS:
        return shared
    places, names = [(f"{x:.1f}", f"{y:.1f}") for x, y in _on_page(picture.points).tolist()], _names(picture, ids)
    groups = [
        (color, [(*places[point], names[point]) for point in (coloring.shades == shade).nonzero()[0]])
        for shade, color in enumerate(coloring.palette)
    ]
    size = f"{min(9.0, max(3.0, 130 / count**0.5)):.1f}"
    return shared | {"groups": groups, "size": size, "edges": _arc_paths(picture.edges) if picture.edges else ""}


def canvas_data(pictures: Sequence[Picture], ids: list[Any] | None) -> dict[str, Any]:
    """What the script draws: pictures of the same points, with their names once."""
    # ids as texts, since a script's numbers hold integers up to 2**53 only
    data: dict[str, Any] = {"ids": None if ids is None else [str(name) for name in ids]}
    labels: pa.Array | None = pictures[0].labels
    if labels is not None:
        encoded = pc.dictionary_encode(labels)
        data["labels"] = encoded.dictionary.to_pylist()
        data["labelOf"] = _base64(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), "<i4")
    data["pictures"] = [
        {
            "points": _base64(picture.points, "<f4"),
            "shades": _base64(picture.coloring.shades, "u1"),
            "palette": picture.coloring.palette,
            "round": picture.round,
            "edges": None if picture.edges is None else _base64(_arc_numbers(picture.edges), "<f4"),
        }
        for picture in pictures
    ]
    return data


def _names(picture: Picture, ids: list[Any] | None) -> list[str]:
    first = [f"point {place}" for place in range(len(picture.points))] if ids is None else [str(name) for name in ids]
    labels = picture.labels.to_pylist() if picture.labels is not None else [None] * len(first)
    return [name if label is None else f"{name} · {label}" for name, label in zip(first, labels, strict=True)]


def _on_page(points: Array) -> Array:
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


def _arc_numbers(arcs: Arcs) -> Array:
    """Start, end, center, radius and turn of each arc; the radius of a line is 0."""
    radii = np.where(arcs.straight | (arcs.radii > _CANVAS_STRAIGHT), 0.0, arcs.radii)
    return np.column_stack([arcs.start, arcs.end, arcs.centers, radii, arcs.turns])


def _base64(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode()
