"""The metrics of a run as a table."""

from typing import Any

from rich.table import Table

Metrics = dict[str, dict[str, float]]

_HEADERS = {"val": "validation"}
# What selects where something was added to the model after training: the metric without it.
_WITHOUT_TERMS = {"auc": "auc_decoder", "accuracy": "accuracy_network"}
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
        table.add_row(marked, *("" if value is None else f"{value:.4f}" for value in values))
    for metric, scores in (trivial or {}).items():
        for name, value in scores.items():
            table.add_row(f"baseline: {name}, {metric}", *[""] * (len(metrics) - 1), f"{value:.4f}")
    return table


def epochs_line(result: dict[str, Any], resumed_from: int | None) -> str:
    """How long training took, and the epoch it resumed from."""
    stopped = "stopped early" if result["stopped_early"] else "all epochs"
    line = f"best epoch {result['best_epoch']} of {result['epochs']} ({stopped}), {result['seconds']:.1f} s of training"
    return f"{line}, resumed from epoch {resumed_from}" if resumed_from else line
