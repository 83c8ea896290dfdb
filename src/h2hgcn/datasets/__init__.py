"""Named graphs, collections, a person's own files, splits, and a look at a graph's geometry."""

from h2hgcn.datasets.inspection import GraphReport, inspect_graph
from h2hgcn.datasets.named import DATASETS, GraphCollection, load_dataset
from h2hgcn.datasets.own import load_graph
from h2hgcn.datasets.splits import (
    EdgeSplit,
    GraphSplit,
    NodeSplit,
    draw_negatives,
    split_edges,
    split_graphs,
    split_nodes,
)
from h2hgcn.datasets.structural import task_features
from h2hgcn.errors import DataError, DataWarning

__all__ = [
    "DATASETS",
    "DataError",
    "DataWarning",
    "EdgeSplit",
    "GraphCollection",
    "GraphReport",
    "GraphSplit",
    "NodeSplit",
    "draw_negatives",
    "inspect_graph",
    "load_dataset",
    "load_graph",
    "split_edges",
    "split_graphs",
    "split_nodes",
    "task_features",
]
