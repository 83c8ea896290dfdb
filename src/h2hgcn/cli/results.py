"""The metrics of a run as tables."""

import textwrap
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from h2hgcn.cli.output import stdout

Metrics = dict[str, dict[str, float]]

_HEADERS = {"val": "validation"}
# What selects where something was added to the model after training: the metric without it.
_WITHOUT_TERMS = {"auc": "auc_decoder", "accuracy": "accuracy_network"}
_MOST_CLASSES, _WIDEST_NAME = 20, 12  # of classes that are printed one by one, and of the heads of their matrix
_STYLE: dict[str, Any] = {"box": None, "header_style": "bold", "pad_edge": False}


def metrics_table(metrics: Metrics, selection: str, trivial: Metrics | None = None) -> Table:
    """The metrics of a model, beside baselines that need no training, which are by metric and name; the metric that
    selects is marked.
    """
    table = Table("metric", *(_HEADERS.get(part, part) for part in metrics), **_STYLE)
    names = list(list(metrics.values())[-1])
    selecting = next((name for name in (_WITHOUT_TERMS.get(selection), selection) if name in names), selection)
    for name in names:
        marked = f"{name} (selects)" if name == selecting else name
        values = (part.get(name) for part in metrics.values())
        table.add_row(marked, *("" if value is None else _number(value) for value in values))
    for metric, scores in (trivial or {}).items():
        for name, value in scores.items():
            table.add_row(f"baseline: {name}, {metric}", *[""] * (len(metrics) - 1), f"{value:.4f}")
    return table


def _number(value: float) -> str:
    return f"{value:.1e}" if 0 < abs(value) < 5e-5 else f"{value:.4f}"  # an error may be tiny, and is not 0


def print_classes(details: dict[str, Any]) -> None:
    """Prints precision, recall, F1 and support of each class, and the confusion matrix if it fits, unless there are
    many classes.
    """
    classes = details.get("classes", ())
    if not 0 < len(classes) <= _MOST_CLASSES:
        return
    table = Table(
        "class", *(Column(name, justify="right") for name in ("precision", "recall", "f1", "support")), **_STYLE
    )
    for row in classes:
        shares = (f"{row[name]:.4f}" for name in ("precision", "recall", "f1"))
        table.add_row(Text(row["name"]), *shares, str(row["support"]))
    stdout.print()
    stdout.print(table)
    names = [textwrap.shorten(row["name"], _WIDEST_NAME, placeholder="…") or "…" for row in classes]
    matrix = Table("true class, predicted as", *(Column(Text(name), justify="right") for name in names), **_STYLE)
    for name, counts in zip(names, details["confusion"], strict=True):
        matrix.add_row(Text(name), *map(str, counts))
    stdout.print()
    if stdout.measure(matrix, options=stdout.options.update(max_width=1000)).maximum <= stdout.width:
        stdout.print(matrix)
    else:
        stdout.print("The confusion matrix is wider than this terminal: see report.html, or --json.")
    stdout.print()


def epochs_line(result: dict[str, Any], resumed_from: int | None) -> str:
    """How long training took, and the epoch it resumed from."""
    stopped = "stopped early" if result["stopped_early"] else "all epochs"
    line = f"best epoch {result['best_epoch']} of {result['epochs']} ({stopped}), {result['seconds']:.1f} s of training"
    return f"{line}, resumed from epoch {resumed_from}" if resumed_from else line
