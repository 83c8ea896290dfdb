"""A picture of a report: the tail of the degrees, and δ over quadruples."""

from pathlib import Path
from typing import Any

import numpy as np

from h2hgcn.datasets.inspection.report import GraphReport
from h2hgcn.datasets.inspection.simple_graph import simple_graph
from h2hgcn.errors import DataError

FORMATS = (".pdf", ".png", ".svg")
# So many different degrees are read off bars; more make a curve.
FEW_DEGREES = 6


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
    values, counts = np.unique(degrees, return_counts=True)
    if 0 < len(values) <= FEW_DEGREES:
        _draw_bars(axes, values, counts)
    else:
        _draw_tail(axes, degrees[degrees > 0], len(degrees), report)


def _draw_bars(axes: Any, values: Any, counts: Any) -> None:
    """A bar for every degree with its number of nodes, side by side however far apart: few degrees are no curve."""
    bars = axes.bar([f"{value:,}" for value in values], counts / counts.sum(), width=0.6, color="tab:blue")
    axes.bar_label(bars, [f"{count:,}" for count in counts], padding=2)
    middle, room = (len(values) - 1) / 2, max(len(values), 3) / 2
    axes.set(title="Degrees, with numbers of nodes", xlabel="degree", ylabel="share of nodes of this degree")
    axes.set(xlim=(middle - room, middle + room), ylim=(0, 1.1))


def _draw_tail(axes: Any, degrees: Any, num_nodes: int, report: GraphReport) -> None:
    values, counts = np.unique(degrees, return_counts=True)
    if len(values):
        at_least = counts[::-1].cumsum()[::-1] / num_nodes
        axes.loglog(values, at_least, ".", color="tab:blue")
        if tail := report.degrees.tail:
            line = np.array([tail.first_degree, values[-1]], float)
            heights = tail.nodes / num_nodes * (line / tail.first_degree) ** (1 - tail.exponent)
            axes.loglog(line, heights, "--", color="tab:gray", label=f"exponent {tail.exponent:.2f}")
            axes.legend()
        _label_by_numbers(axes.xaxis)
    axes.set(title="Degrees", xlabel="degree", ylabel="share of nodes of at least this degree")


def _label_by_numbers(axis: Any) -> None:
    """1, 2, 5, 10, ...; matplotlib's labels of a short logarithmic axis run into each other."""
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())


def _draw_delta(axes: Any, report: GraphReport) -> None:
    counts = np.array(report.hyperbolicity.histogram, float)
    if len(counts):
        axes.bar(np.arange(len(counts)) / 2, counts / counts.sum(), width=0.4, color="tab:blue")
        axes.set(yscale="log" if len(counts) > 1 else "linear", xlim=(-0.5, max(len(counts) / 2, 1.5)))
    sign = "=" if report.hyperbolicity.exact else "≥"
    axes.set(title=f"Largest δ {sign} {report.hyperbolicity.delta:g}", xlabel="δ", ylabel="share of quadruples")
