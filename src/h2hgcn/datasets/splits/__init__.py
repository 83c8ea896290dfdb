"""Who trains, who selects, who tests: edges, nodes and graphs, by named protocols."""

from h2hgcn.datasets.splits.edges import draw_negatives, split_edges
from h2hgcn.datasets.splits.graphs import split_graphs
from h2hgcn.datasets.splits.nodes import split_nodes
from h2hgcn.datasets.splits.splits import EdgeSplit, GraphSplit, NodeSplit

__all__ = ["EdgeSplit", "GraphSplit", "NodeSplit", "draw_negatives", "split_edges", "split_graphs", "split_nodes"]
