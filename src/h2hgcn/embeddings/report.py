"""A run in one HTML file that needs nothing else: no network, no library."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from h2hgcn.embeddings.charts import BOTTOM, LEFT, RIGHT, TOP, WIDTH, draw_disk, line_chart, needs_script, read_history
from h2hgcn.embeddings.disk import Coloring, Picture, compose
from h2hgcn.embeddings.files import id_column
from h2hgcn.embeddings.markup import Html, asset, build_page, bundle, element, joined, shown, table
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

_HEIGHT = 320

# The bins of a table, and the classes of a matrix, that a page shows at most.
_MOST_BINS, _MOST_CLASSES = 10, 20

# The lowest probability of a logarithmic axis: less is drawn at its end.
_LOWEST = 1e-6


def reliability_content(bins: Sequence[Mapping[str, float]], of_links: bool) -> Html:
    """A chart of predicted probabilities against reality, beside a table of the highest ones, which people act on."""
    what, items = ("links", "pairs") if of_links else ("right predictions", "predictions")
    rows = (
        [f"{one['predicted']:.3g}", f"{one['actual']:.3g}", f"{one['count']:,.0f}"]
        for one in list(reversed(bins))[:_MOST_BINS]
    )
    caption = "Bins of the highest probabilities"
    if of_links:
        caption += ", among all pairs that are not training edges"
    numbers = table(caption, ["mean probability", f"fraction of {what}", items], rows)
    return element("div", _chart(bins, f"fraction of {what}", of_links), numbers, class_="beside")


def class_content(
    classes: Sequence[Mapping[str, Any]], confusion: Sequence[Sequence[int]] | None, coloring: Coloring | None
) -> Html:
    """Precision, recall, F1 and support of each class, and the confusion matrix, in the colors of the picture."""
    by_label = coloring is not None and coloring.heading == "Label"
    colors = dict(zip(coloring.names, coloring.palette, strict=True)) if coloring is not None and by_label else {}
    names = [str(one["name"]) for one in classes]
    heads = [_named(name, colors.get(name)) for name in names]
    rows = (
        [head, *(shown(one[key], 4) for key in ("precision", "recall", "f1")), str(one["support"])]
        for head, one in zip(heads, classes, strict=True)
    )
    parts = [table("Test part", ["class", "precision", "recall", "F1", "support"], rows)]
    if confusion is not None and len(names) <= _MOST_CLASSES:
        parts.append(_matrix(names, heads, confusion, colors))
    return element("div", *parts, class_="beside")


def _named(name: str, color: str | None) -> Html:
    dot = element("span", class_="dot", style=f"background:{color}") if color else ""
    return joined([dot, name])


def _matrix(names: list[str], heads: list[Html], confusion: Sequence[Sequence[int]], colors: dict[str, str]) -> Html:
    """Rows are true classes; a cell has its row's color, the more of it the larger its share of the row."""
    top = element("tr", *(element("th", head, scope="col") for head in ("true class, predicted as", *heads)))
    body = []
    for name, head, counts in zip(names, heads, confusion, strict=True):
        color, total = colors.get(name, "var(--accent)"), max(sum(counts), 1)
        cells = (
            element(
                "td", str(count), style=f"background:color-mix(in srgb,{color} {60 * count / total:.0f}%,transparent)"
            )
            for count in counts
        )
        body.append(element("tr", element("th", head, scope="row"), *cells))
    content = element("caption", "Confusion matrix"), element("thead", top), element("tbody", *body)
    return element("div", element("table", *content, class_="matrix"), class_="scroll")


def _chart(bins: Sequence[Mapping[str, float]], y_name: str, logarithmic: bool) -> Html:
    low = _LOWEST if logarithmic else 0.0
    right, bottom = WIDTH - RIGHT, _HEIGHT - BOTTOM

    def share(value: float) -> float:
        if not logarithmic:
            return value
        return 1 - math.log(max(value, low)) / math.log(low)

    def at(x: float, y: float) -> tuple[str, str]:
        return f"{LEFT + share(x) * (right - LEFT):.1f}", f"{bottom - share(y) * (bottom - TOP):.1f}"

    marks = [10.0**power for power in range(-6, 1)] if logarithmic else [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    axis = [
        part
        for value in marks
        for (x, y), text in [(at(value, value), f"{value:g}")]
        for part in (
            element("path", d=f"M{LEFT} {y}H{right}", class_="grid"),
            element("text", text, x=LEFT - 6, y=f"{float(y) + 4:.1f}", text_anchor="end"),
            element("text", text, x=x, y=bottom + 16, text_anchor="middle"),
        )
    ]
    (x0, y0), (x1, y1) = at(low, low), at(1.0, 1.0)
    places = [at(one["predicted"], one["actual"]) for one in bins]
    dots = (
        element(
            "circle",
            element(
                "title",
                f"predicted {one['predicted']:.3g}, {y_name} {one['actual']:.3g}, {one['count']:,.0f} predictions",
            ),
            cx=x,
            cy=y,
            r=3.5,
        )
        for one, (x, y) in zip(bins, places, strict=True)
    )
    return element(
        "svg",
        element("title", f"Predicted probability against {y_name}; probabilities that are right lie on the diagonal."),
        element("g", *axis, element("text", "predicted", x=right, y=_HEIGHT - 2, text_anchor="end"), class_="axis"),
        element("path", d=f"M{x0} {y0}L{x1} {y1}", class_="ideal"),
        element("path", d="M" + "L".join(f"{x} {y}" for x, y in places), class_="line"),
        element("g", *dots, class_="dots"),
        element("text", y_name, x=LEFT, y=13, class_="name"),
        viewBox=f"0 0 {WIDTH} {_HEIGHT}",
        role="img",
        class_="chart",
    )


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
    ``project_to_disk`` returned, or None; ``labels``, ``edges`` (2 × edges) and ``ids`` belong to its points.
    ``details`` are those of ``Run.details``.
    ``caption`` says whose metrics these are.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"cannot write a report into {path}; end the name with .html")
    picture = None if disk is None else compose(disk, labels, edges)
    sections = [
        *_results(metrics, trivial, caption),
        *_notes(notes),
        *_details(details or {}, picture),
        *_training(history, selected_by, best_epoch),
        *_embedding(picture, ids),
        *_settings(settings),
        _versions(),
    ]
    page = build_page(title, sections, _disk_script() if picture and needs_script(picture) else None)
    with atomic_write(path) as file:
        file.write(page.encode("utf-8", "replace"))
    return path


def _disk_script() -> str:
    return bundle({name: asset(name) for name in ("geodesic.mjs", "disk.mjs")}, "disk.mjs")


def _section(title: str, *content: str) -> Html:
    return element("section", element("h2", title), *content)


def _results(metrics: Mapping[str, Any], trivial: Mapping[str, Any] | None, caption: str) -> list[Html]:
    tables = [_metric_table(caption, "metric", _by_part(metrics))] if metrics else []
    if trivial:
        tables.append(_metric_table("Without training", "method", _by_part(trivial)))
    return [_section("Results", element("div", *tables, class_="beside"))] if tables else []


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


def _metric_table(caption: str, corner: str, columns: Mapping[str, Mapping[str, Any]]) -> Html:
    rows = dict.fromkeys(name for column in columns.values() for name in column)
    headers = [corner, *(_PARTS.get(name) or _METRICS.get(name, name) for name in columns)]
    cells = ([_METRICS.get(row, row), *(shown(column.get(row), 4) for column in columns.values())] for row in rows)
    return table(caption, headers, cells)


def _notes(notes: Sequence[str]) -> list[Html]:
    return [_section("Notes", element("ul", *(element("li", str(note)) for note in notes)))] if notes else []


def _details(details: Mapping[str, Any], picture: Picture | None) -> list[Html]:
    sections, classes, bins = [], details.get("classes"), details.get("reliability")
    if classes:
        coloring = None if picture is None else picture.coloring
        sections.append(_section("Classes", class_content(classes, details.get("confusion"), coloring)))
    if bins:
        sections.append(_section("Probabilities", reliability_content(bins, of_links=not classes)))
    return sections


def _training(history: Sequence[Mapping[str, Any]], selected_by: str | None, best_epoch: int | None) -> list[Html]:
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
    return [_section("Training", element("div", *charts, class_="beside"))] if charts else []


def _curve_title(name: str) -> str:
    part, _, metric = name.partition("_")
    return f"{_PARTS[part]} {_METRICS.get(metric, metric)}".strip() if part in _PARTS else name


def _embedding(picture: Picture | None, ids: Any) -> list[Html]:
    if picture is None:
        return []
    names = None if ids is None else id_column(ids, len(picture.points)).to_pylist()
    return [_section("The Poincaré disk" if picture.round else "The embedding", draw_disk(picture, names))]


def _settings(settings: Mapping[str, Any]) -> list[Html]:
    plain = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    groups = {"run": plain} if plain else {}
    groups |= {str(name): _dotted(value) for name, value in settings.items() if isinstance(value, Mapping) and value}
    tables = (
        table(name, ["setting", "value"], ([str(key), shown(value)] for key, value in group.items()))
        for name, group in groups.items()
    )
    return [_section("Settings", element("div", *tables, class_="beside"))] if groups else []


def _dotted(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _dotted(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat


def _versions() -> Html:
    found = [f"Python {sys.version.split()[0]}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return element("footer", joined(["Written with ", ", ".join(found), "."]))
