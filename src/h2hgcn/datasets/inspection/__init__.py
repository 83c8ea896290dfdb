"""A look at a graph: size, degrees, cycles, δ-hyperbolicity, labels, and what follows."""

from h2hgcn.datasets.inspection.plot import plot_inspection
from h2hgcn.datasets.inspection.report import GraphReport, inspect_graph

__all__ = ["GraphReport", "inspect_graph", "plot_inspection"]
