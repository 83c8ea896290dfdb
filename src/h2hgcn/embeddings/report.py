"""A run in one HTML file that needs nothing else: no network, no library."""

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.disk import Picture, compose
from h2hgcn.embeddings.files import id_column
from h2hgcn.embeddings.pages import asset, base64_of, bundle, digest, page_path, render
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

# A caption, headers, and rows whose first cell is their heading.
_Table = tuple[str, list[str], list[list[str]]]

# The bins of a table, and the classes of a matrix, that a page shows at most.
_MOST_BINS, _MOST_CLASSES = 10, 20

# More points than these are drawn by a script.
_MAX_SVG_POINTS = 3_000

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

_PARTS = {"train": "Training", "val": "Validation", "test": "Test", "reconstruction": "Reconstruction"}
_METRICS = {
    "auc": "ROC AUC",
    "auc_answerable": "ROC AUC of answerable pairs",
    "auc_decoder": "ROC AUC by the decoder alone",
    "direction_auc": "direction AUC",
    "ap": "average precision",
    "mrr": "mean reciprocal rank",
    "accuracy_network": "accuracy of the network alone",
    "macro_f1": "macro F1",
    "f1": "F1",
    "map": "mean average precision",
    "mean_rank": "mean rank",
    "ece": "calibration error (ECE)",
    "ece_top": "ECE of the likeliest pairs",
}
_PACKAGES = ("h2hgcn", "torch", "torch-geometric", "geoopt", "numpy", "pyarrow")


def write_report(
    path: str | Path,
    title: str,
    settings: Mapping[str, Any],
    metrics: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]] = (),
    disk: Any = None,
    labels: Any = None,
    edges: Any = None,
    trivial: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    *,
    layout: Any = None,
    ids: Any = None,
    selected_by: str | None = None,
    best_epoch: int | None = None,
    details: Mapping[str, Any] | None = None,
    caption: str = "Of the selected model",
) -> Path:
    """Writes a report of a run; a file that is there is replaced.

    ``metrics`` holds numbers by part and name, ``{"test": {"auc": 0.9}}`` or ``{"test_auc": 0.9}``; ``trivial`` scores
    that need no training, by name, or by metric and name. ``history`` has a dict for each epoch, from which the loss of
    training (``loss`` or ``train_loss``) and the validation metric are drawn: ``selected_by``, else the first name that
    begins with ``val``. Its best value marks the best epoch unless ``best_epoch`` does. ``disk`` is what
    ``project_to_disk`` returned, or None; ``layout`` is what ``layout_in_disk`` made of the same points, and is shown
    above it. ``labels``, ``edges`` (2 × edges) and ``ids`` belong to the points. ``details`` are those of
    ``Run.details``. ``caption`` says whose metrics these are.
    """
    path, details = page_path(path, "a report"), details or {}
    pictures = [compose(each, labels, edges) for each in (layout, disk) if each is not None]
    names = _names(pictures[0], ids) if pictures else []
    drawn = _canvas_data(pictures, names) if len(names) > _MAX_SVG_POINTS else None
    script = bundle({name: asset(name) for name in ("geodesic.mjs", "disk.mjs")}, "disk.mjs") if drawn else None
    tables = [(caption, "metric", metrics), ("Without training", "method", trivial)]
    plain = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    groups = {"run": plain} | {str(name): _flat(value, ".") for name, value in settings.items() if name not in plain}
    classes = _classes(details, pictures)
    counts = details.get("confusion") if len(classes) <= _MOST_CLASSES else None
    page = render(
        "h2hgcn.embeddings",
        "report.html",
        title=title,
        policy=_POLICY + (f"; script-src {digest(script)}" if script else ""),
        style=asset("theme.css") + asset("report.css"),
        results=[_metric_table(name, corner, numbers) for name, corner, numbers in tables if numbers],
        notes=[str(note) for note in notes],
        classes=classes,
        confusion=list(zip(classes, counts, strict=True)) if classes and counts is not None else [],
        reliability=_reliability(details),
        curves=_curves(history, selected_by, best_epoch),
        figures=[_figure(picture, names) for picture in pictures],
        drawn=drawn,
        settings=[
            (name, ["setting", "value"], [[str(key), _shown(value)] for key, value in group.items()])
            for name, group in groups.items()
            if group
        ],
        versions=_versions(),
        script=script,
    )
    with atomic_write(path) as file:
        file.write(page.encode("utf-8", "replace"))
    return path


def _shown(value: Any, digits: int | None = None) -> str:
    """A value as a person reads it: a number with so many decimals unless it is tiny or huge, nothing as a dash."""
    if value is None or (isinstance(value, Real) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real) and digits is not None and not isinstance(value, Integral):
        usual = value == 0 or 10**-digits < abs(value) < 10**digits
        return f"{float(value):.{digits}{'f' if usual else 'g'}}"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(_shown(item, digits) for item in value) or "–"
    return str(value)


def _flat(entry: Mapping[str, Any], separator: str, prefix: str = "") -> dict[str, Any]:
    """Values of nested mappings by joined names."""
    found: dict[str, Any] = {}
    for name, value in entry.items():
        inner = f"{prefix}{name}"
        found |= _flat(value, separator, inner + separator) if isinstance(value, Mapping) else {inner: value}
    return found


def _metric_table(caption: str, corner: str, metrics: Mapping[str, Any]) -> _Table:
    """Numbers by column and row; ``test_auc`` is the row ``auc`` of the column ``test``."""
    columns: dict[str, dict[str, Any]] = {}
    for name, value in metrics.items():
        part, _, metric = str(name).partition("_")
        if isinstance(value, Mapping):
            columns.setdefault(str(name), {}).update({str(inner): number for inner, number in value.items()})
        elif metric and part in ("train", "val", "test"):
            columns.setdefault(part, {})[metric] = value
        else:
            columns.setdefault("score", {})[str(name)] = value
    rows = dict.fromkeys(name for column in columns.values() for name in column)
    headers = [corner, *(_PARTS.get(name) or _METRICS.get(name, name) for name in columns)]
    cells = [[_METRICS.get(row, row), *(_shown(column.get(row), 4) for column in columns.values())] for row in rows]
    return caption, headers, cells


def _classes(details: Mapping[str, Any], pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    """Precision, recall, F1 and support of each class, in the color that it has in the picture."""
    coloring = pictures[0].coloring if pictures else None
    by_label = coloring is not None and coloring.heading == "Label"
    colors = dict(zip(coloring.names, coloring.palette, strict=True)) if coloring is not None and by_label else {}
    return [
        {
            "name": str(one["name"]),
            "color": colors.get(str(one["name"])),
            "cells": [*(_shown(one[key], 4) for key in ("precision", "recall", "f1")), str(one["support"])],
        }
        for one in details.get("classes") or ()
    ]


def _reliability(details: Mapping[str, Any]) -> dict[str, Any] | None:
    """Predicted probabilities against reality, and a table of the highest ones, which people act on."""
    bins, of_links = details.get("reliability"), not details.get("classes")
    if not bins:
        return None
    what, items = ("links", "pairs") if of_links else ("right predictions", "predictions")
    name, among = f"fraction of {what}", ", among all pairs that are not training edges" if of_links else ""
    numbers = [[f"{one['predicted']:.3g}", f"{one['actual']:.3g}", f"{one['count']:,.0f}"] for one in bins]

    def scaled(value: float) -> float:  # logarithmic for links
        return math.log10(max(value, 1e-6)) if of_links else value

    low, high = (-6.0, 0.0) if of_links else (0.0, 1.0)
    marks = [10.0**power for power in range(-6, 1)] if of_links else [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    chart = _chart(
        name,
        f"Predicted probability against {name}; probabilities that are right lie on the diagonal.",
        "predicted",
        [(scaled(one["predicted"]), scaled(one["actual"])) for one in bins],
        [(low, high, [(scaled(mark), f"{mark:g}") for mark in marks])] * 2,
        320,
    )
    texts = [f"predicted {one[0]}, {name} {one[1]}, {one[2]} predictions" for one in numbers]
    chart["dots"] = [(*place, text) for place, text in zip(chart["places"], texts, strict=True)]
    chart["ideal"] = f"M{_LEFT:.1f} {chart['bottom']:.1f}L{_RIGHT:.1f} {_TOP:.1f}"
    rows = numbers[::-1][:_MOST_BINS]
    return {
        "chart": chart,
        "table": (f"Bins of the highest probabilities{among}", ["mean probability", name, items], rows),
    }


def _versions() -> list[str]:
    found = [f"Python {sys.version.split()[0]}"]
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return found


_LEFT, _RIGHT, _TOP = 52, 408, 22  # of the axes of a chart

# Larger numbers than this are left out of a chart, whose scale they would overflow.
_LARGEST = 1e150

# The ends of an axis, and the numbers that are marked with their texts.
_Axis = tuple[float, float, list[tuple[float, str]]]


def _chart(
    name: str, summary: str, x_name: str, points: Sequence[tuple[float, float]], axes: Sequence[_Axis], height: int
) -> dict[str, Any]:
    """A line through points, in the units of its drawing."""
    bottom = height - 34
    (left, right, x_marks), (low, high, y_marks) = axes

    def x(value: float) -> str:
        return f"{_LEFT + (value - left) / (right - left) * (_RIGHT - _LEFT):.1f}"

    def y(value: float) -> str:
        return f"{bottom + (value - low) / (high - low) * (_TOP - bottom):.1f}"

    places = [(x(a), y(b)) for a, b in points]
    steps = [f"{a} {b}" for a, b in places]
    return {
        "name": name, "summary": summary, "x_name": x_name, "places": places,
        "x_ticks": [(x(value), text) for value, text in x_marks],
        "y_ticks": [(y(value), text) for value, text in y_marks],
        "line": "M" + "L".join(steps if len(steps) > 1 else steps * 2),  # a single point as a dot
        "best": None, "ideal": None, "dots": None,
        "height": height, "width": _RIGHT + 12, "left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": bottom,
    }  # fmt: skip


def _curves(history: Sequence[Mapping[str, Any]], selected_by: str | None, best_epoch: int | None) -> list[Any]:
    """Charts of the training loss and of the metric that selects; epochs count from 1 if entries do not name them."""
    entries = [_flat(entry, "_") for entry in history]
    names = list(dict.fromkeys(name for entry in entries for name in entry if name != "epoch"))
    if selected_by is not None and names and selected_by not in names:
        raise DataError(f"the history has no {selected_by!r}; it has {', '.join(names)}")
    loss = next((name for name in ("loss", "train_loss") if name in names), None)
    metric = (selected_by if names else None) or next((name for name in names if name.startswith("val")), None)
    epochs = np.array([_number(entry.get("epoch", place), "epoch") for place, entry in enumerate(entries, 1)])
    series = {name: np.array([_number(entry.get(name), name) for entry in entries]) for name in (loss, metric) if name}
    best: float | None = best_epoch
    if best is None and metric is not None:
        best = best_of(epochs, series[metric], metric.endswith("loss"))
    charts = [line_chart(epochs, series[loss], "Training loss", best)] if loss else []
    if metric is not None and metric != loss:
        part, _, rest = metric.partition("_")
        title = f"{_PARTS[part]} {_METRICS.get(rest, rest)}".strip() if part in _PARTS else metric
        charts.append(line_chart(epochs, series[metric], title, best))
    return charts


def _number(value: Any, name: str) -> float:
    try:
        return math.nan if value is None or isinstance(value, str) else float(value)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the history's {name!r} holds {value!r}; pass numbers, or None for an epoch without"
        ) from error


def best_of(epochs: NDArray[np.float64], values: NDArray[np.float64], lowest: bool) -> float | None:
    """The epoch of the highest value, or of the lowest; None if no value is finite."""
    worth = np.where(np.isfinite(values), -values if lowest else values, -np.inf)
    return float(epochs[worth.argmax()]) if np.isfinite(values).any() else None


def line_chart(
    epochs: NDArray[np.float64], values: NDArray[np.float64], title: str, best: float | None
) -> dict[str, Any] | str:
    """A chart of values by epoch with the best epoch marked; a sentence if there is nothing to draw."""
    drawn = np.isfinite(epochs) & (np.abs(values) < _LARGEST)
    if not drawn.any():
        return f"{title}: no finite value was recorded."
    epochs, values = epochs[drawn], values[drawn]
    axes: list[_Axis] = []
    for numbers in (epochs, values):
        low, high = float(numbers.min()), float(numbers.max())
        margin = (high - low) * 0.04 or max(abs(high) * 0.1, 0.5)  # an axis always has a width
        low, high = low - margin, high + margin
        axes.append((low, high, [(value, f"{value:.6g}") for value in ticks(low, high)]))
    ends = [f"{_shown(values[k], 4)} at {word}{epochs[k]:g}" for k, word in ((0, "epoch "), (-1, ""))]
    points = list(zip(epochs.tolist(), values.tolist(), strict=True))
    chart = _chart(title, f"{title} from {ends[0]} to {ends[1]}.", "epoch", points, axes, 240)
    marked = np.flatnonzero(epochs == best)
    if len(marked):
        chart["best"] = (*chart["places"][marked[0]], f"best epoch {best:g}: {_shown(values[marked[0]], 4)}")
    return chart


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two others, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    return [step * place for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


_HALF, _RADIUS = 500, 490  # of a drawing and of its disk


def _names(picture: Picture, ids: Any) -> list[str]:
    """Ids with labels, as texts: a script's numbers hold integers up to 2**53 only."""
    count = len(picture.points)
    texts = [f"point {place}" for place in range(count)] if ids is None else id_column(ids, count).to_pylist()
    labels = [None] * count if picture.labels is None else picture.labels.to_pylist()
    return [f"{name}" if label is None else f"{name} · {label}" for name, label in zip(texts, labels, strict=True)]


def _figure(picture: Picture, names: list[str]) -> dict[str, Any]:
    """A picture with its legend and caption, as SVG if it has few points, else for a canvas."""
    coloring, count = picture.coloring, len(picture.points)
    sizes = [f"{size:,}" for size in np.bincount(coloring.shades, minlength=len(coloring.names))]
    where = "the Poincaré disk" if picture.round else "a square"
    by = f", colored by {coloring.heading.lower()}" if coloring.names else ""
    shared = {
        "summary": f"{count:,} points in {where}{by}", "round": picture.round, "heading": coloring.heading,
        "legend": list(zip(coloring.palette, coloring.names, sizes, strict=False)), "caption": picture.caption,
        "canvas": count > _MAX_SVG_POINTS,
    }  # fmt: skip
    if count > _MAX_SVG_POINTS:
        return shared
    places = _HALF + _RADIUS * picture.points * [1, -1]  # the page's second axis points down
    dots = [(f"{x:.1f}", f"{y:.1f}", name) for (x, y), name in zip(places.tolist(), names, strict=True)]
    groups = [
        (color, [dots[point] for point in (coloring.shades == shade).nonzero()[0]])
        for shade, color in enumerate(coloring.palette)
    ]
    edges = "".join(_paths(picture))
    return shared | {"groups": groups, "size": f"{min(9.0, max(3.0, 130 / count**0.5)):.1f}", "edges": edges}


def _paths(picture: Picture) -> list[str]:
    """Edges as parts of an SVG path."""
    if picture.edges is None:
        return []
    ends = [_HALF + _RADIUS * z.conj() + _HALF * 1j for z in (picture.edges.start, picture.edges.end)]
    paths = []
    for a, b, radius, turn in zip(*ends, _RADIUS * picture.edges.radii, picture.edges.turns, strict=True):
        way = "L" if math.isinf(radius) else f"A{radius:.1f} {radius:.1f} 0 0 {int(turn < 0)} "
        paths.append(f"M{a.real:.1f} {a.imag:.1f}{way}{b.real:.1f} {b.imag:.1f}")
    return paths


def _canvas_data(pictures: Sequence[Picture], names: list[str]) -> dict[str, Any]:
    """What the script draws: pictures of the same points, with their names once."""
    drawn = [
        {
            "points": _base64(picture.points, "<f4"),
            "shades": _base64(picture.coloring.shades, "u1"),
            "palette": picture.coloring.palette,
            "round": picture.round,
            "edges": _base64(np.stack(picture.edges[:2], axis=1), "<c16") if picture.edges else None,
        }
        for picture in pictures
    ]
    return {"names": names, "pictures": drawn}


def _base64(array: NDArray[Any], dtype: str) -> str:
    return base64_of(np.ascontiguousarray(array, dtype=dtype).tobytes())
