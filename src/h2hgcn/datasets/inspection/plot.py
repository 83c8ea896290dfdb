"""A picture of a report: the tail of the degrees, and δ over quadruples."""

from pathlib import Path
from typing import Any

import numpy as np

from h2hgcn.datasets.inspection.report import GraphReport
from h2hgcn.datasets.inspection.simple_graph import simple_graph
from h2hgcn.errors import DataError

FORMATS = (".pdf", ".png", ".svg")


def plot_inspection(graph: Any, report: GraphReport, path: str | Path) -> Path:
    """Draws the graph's report into a file, whose ending says the format."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"cannot draw into {path}; end the name with one of {', '.join(FORMATS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError("drawing needs matplotlib; install it with: pip install h2hgcn[plot]") from error
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_degrees(left, graph, report)
    _draw_delta(right, report)
    figure.savefig(path, dpi=150)
    return path


def _draw_degrees(axes: Any, graph: Any, report: GraphReport) -> None:
    degrees = simple_graph(graph).degrees
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    if len(values):
        at_least = counts[::-1].cumsum()[::-1] / len(degrees)
        axes.loglog(values, at_least, ".", color="tab:blue")
        if tail := report.degrees.tail:
            line = np.array([tail.first_degree, values[-1]], float)
            heights = tail.nodes / len(degrees) * (line / tail.first_degree) ** (1 - tail.exponent)
            axes.loglog(line, heights, "--", color="tab:gray", label=f"exponent {tail.exponent:.2f}")
            axes.legend()
    axes.set(title="Degrees", xlabel="degree", ylabel="share of nodes of at least this degree")


def _draw_delta(axes: Any, report: GraphReport) -> None:
    counts = np.array(report.hyperbolicity.histogram, float)
    if len(counts):
        axes.bar(np.arange(len(counts)) / 2, counts / counts.sum(), width=0.4, color="tab:blue")
        axes.set_yscale("log")
    sign = "=" if report.hyperbolicity.exact else "≥"
    axes.set(title=f"Largest δ {sign} {report.hyperbolicity.delta:g}", xlabel="δ", ylabel="share of quadruples")
