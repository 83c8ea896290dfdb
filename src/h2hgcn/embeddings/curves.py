"""What changed from epoch to epoch, as line charts in SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.markup import Html, element, shown
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
