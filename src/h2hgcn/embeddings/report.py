"""A run in one HTML file that needs nothing else: no network, no library."""

import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from h2hgcn.embeddings.charts import (
    Chart,
    canvas_data,
    figure,
    flat,
    line_chart,
    read_history,
    reliability_chart,
    shown,
)
from h2hgcn.embeddings.disk import Picture, compose
from h2hgcn.embeddings.files import id_column
from h2hgcn.embeddings.pages import asset, bundle, digest, render
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

# A caption, headers, and rows whose first cell is their heading.
Table = tuple[str, list[str], list[list[str]]]

# The bins of a table, and the classes of a matrix, that a page shows at most.
_MOST_BINS, _MOST_CLASSES = 10, 20

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
_LOSSES = ("loss", "train_loss")
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
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"cannot write a report into {path}; end the name with .html")
    pictures = [compose(each, labels, edges) for each in (layout, disk) if each is not None]
    names = None if ids is None or not pictures else id_column(ids, len(pictures[0].points)).to_pylist()
    figures = [figure(picture, names) for picture in pictures]
    drawn = canvas_data(pictures, names) if any(one["canvas"] for one in figures) else None
    script = bundle({name: asset(name) for name in ("geodesic.mjs", "disk.mjs")}, "disk.mjs") if drawn else None
    classes, confusion = _classes(details or {}, pictures)
    page = render(
        "h2hgcn.embeddings",
        "report.html",
        title=title,
        policy=_POLICY + (f"; script-src {digest(script)}" if script else ""),
        style=asset("theme.css") + asset("report.css"),
        results=_results(metrics, trivial, caption),
        notes=[str(note) for note in notes],
        classes=classes,
        confusion=confusion,
        reliability=_reliability(details or {}),
        curves=_curves(history, selected_by, best_epoch),
        figures=figures,
        drawn=drawn,
        settings=_settings(settings),
        versions=_versions(),
        script=script,
    )
    with atomic_write(path) as file:
        file.write(page.encode("utf-8", "replace"))
    return path


def _results(metrics: Mapping[str, Any], trivial: Mapping[str, Any] | None, caption: str) -> list[Table]:
    given = [(caption, "metric", metrics), ("Without training", "method", trivial)]
    return [_metric_table(name, corner, _by_part(numbers)) for name, corner, numbers in given if numbers]


def _by_part(metrics: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Numbers by column and row; ``test_auc`` is the row ``auc`` of the column ``test``."""
    columns: dict[str, dict[str, Any]] = {}
    for name, value in metrics.items():
        prefixed = re.fullmatch(r"(train|val|test)_(.+)", str(name))
        if isinstance(value, Mapping):
            columns.setdefault(str(name), {}).update({str(inner): number for inner, number in value.items()})
        elif prefixed:
            columns.setdefault(prefixed[1], {})[prefixed[2]] = value
        else:
            columns.setdefault("score", {})[str(name)] = value
    return columns


def _metric_table(caption: str, corner: str, columns: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = dict.fromkeys(name for column in columns.values() for name in column)
    headers = [corner, *(_PARTS.get(name) or _METRICS.get(name, name) for name in columns)]
    cells = [[_METRICS.get(row, row), *(shown(column.get(row), 4) for column in columns.values())] for row in rows]
    return caption, headers, cells


def _classes(details: Mapping[str, Any], pictures: Sequence[Picture]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Precision, recall, F1 and support of each class in the color that it has in the picture, and the confusion
    matrix: its rows are true classes.
    """
    coloring = pictures[0].coloring if pictures else None
    by_label = coloring is not None and coloring.heading == "Label"
    colors = dict(zip(coloring.names, coloring.palette, strict=True)) if coloring is not None and by_label else {}
    classes = [
        {
            "name": str(one["name"]),
            "color": colors.get(str(one["name"])),
            "cells": [*(shown(one[key], 4) for key in ("precision", "recall", "f1")), str(one["support"])],
        }
        for one in details.get("classes") or ()
    ]
    counts = details.get("confusion") if len(classes) <= _MOST_CLASSES else None
    return classes, list(zip(classes, counts, strict=True)) if classes and counts is not None else []


def _reliability(details: Mapping[str, Any]) -> dict[str, Any] | None:
    """Predicted probabilities against reality, and a table of the highest ones, which people act on."""
    bins, of_links = details.get("reliability"), not details.get("classes")
    if not bins:
        return None
    what, items = ("links", "pairs") if of_links else ("right predictions", "predictions")
    caption = "Bins of the highest probabilities"
    if of_links:
        caption += ", among all pairs that are not training edges"
    rows = [
        [f"{one['predicted']:.3g}", f"{one['actual']:.3g}", f"{one['count']:,.0f}"]
        for one in list(reversed(bins))[:_MOST_BINS]
    ]
    chart = reliability_chart(bins, f"fraction of {what}", of_links)
    return {"chart": chart, "table": (caption, ["mean probability", f"fraction of {what}", items], rows)}


def _curves(history: Sequence[Mapping[str, Any]], selected_by: str | None, best_epoch: int | None) -> list[Chart | str]:
    series = read_history(history)
    if selected_by is not None and series and selected_by not in series:
        raise DataError(f"the history has no {selected_by!r}; it has {', '.join(series)}")
    loss = next((series[name] for name in _LOSSES if name in series), None)
    chosen = selected_by or next((name for name in series if name.startswith("val")), None)
    metric = series.get(chosen or "")
    best = best_epoch if best_epoch is not None or metric is None else metric.best_epoch()
    charts = [line_chart(loss, "Training loss", best)] if loss else []
    if metric and metric is not loss:
        charts.append(line_chart(metric, _curve_title(metric.name), best))
    return charts


def _curve_title(name: str) -> str:
    part, _, metric = name.partition("_")
    return f"{_PARTS[part]} {_METRICS.get(metric, metric)}".strip() if part in _PARTS else name


def _settings(settings: Mapping[str, Any]) -> list[Table]:
    plain = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    groups = {"run": plain} if plain else {}
    groups |= {str(name): flat(value, ".") for name, value in settings.items() if isinstance(value, Mapping) and value}
    return [
        (name, ["setting", "value"], [[str(key), shown(value)] for key, value in group.items()])
        for name, group in groups.items()
    ]


def _versions() -> list[str]:
    found = [f"Python {sys.version.split()[0]}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found
