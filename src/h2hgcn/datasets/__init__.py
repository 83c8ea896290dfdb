"""Named datasets, readers of your own files, splits, and measurements of a graph."""

from typing import TYPE_CHECKING

from h2hgcn.errors import DataError, DataWarning
from h2hgcn.lazy import lazy_names

if TYPE_CHECKING:
    from h2hgcn.datasets.collection import GraphCollection
    from h2hgcn.datasets.graph_folder import load_graphs
    from h2hgcn.datasets.inspect import GraphReport, inspect_graph
    from h2hgcn.datasets.loading import convert_graph, load_graph
    from h2hgcn.datasets.nodes import task_features
    from h2hgcn.datasets.registry import DATASETS, load_dataset
    from h2hgcn.datasets.splits import (
        EdgeSplit,
        GraphSplit,
        NodeSplit,
        draw_negatives,
        split_edges,
        split_graphs,
        split_nodes,
    )

_HOMES = {
    "h2hgcn.datasets.collection": ("GraphCollection",),
    "h2hgcn.datasets.graph_folder": ("load_graphs",),
    "h2hgcn.datasets.inspect": ("GraphReport", "inspect_graph"),
    "h2hgcn.datasets.loading": ("convert_graph", "load_graph"),
    "h2hgcn.datasets.nodes": ("task_features",),
    "h2hgcn.datasets.registry": ("DATASETS", "load_dataset"),
    "h2hgcn.datasets.splits": (
        "EdgeSplit", "GraphSplit", "NodeSplit", "draw_negatives", "split_edges", "split_graphs", "split_nodes",
    ),
}  # fmt: skip

__all__ = [
    "DATASETS", "DataError", "DataWarning", "EdgeSplit", "GraphCollection", "GraphReport", "GraphSplit", "NodeSplit",
    "convert_graph", "draw_negatives", "inspect_graph", "load_dataset", "load_graph", "load_graphs", "split_edges",
    "split_graphs", "split_nodes", "task_features",
]  # fmt: skip

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
