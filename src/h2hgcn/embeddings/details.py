"""What lies behind the metrics of a run, for its report: how reliable probabilities are, and each class."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from h2hgcn.embeddings.coloring import Coloring
from h2hgcn.embeddings.curves import BOTTOM, LEFT, RIGHT, TOP, WIDTH
from h2hgcn.embeddings.markup import Html, element, joined, shown, table

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
