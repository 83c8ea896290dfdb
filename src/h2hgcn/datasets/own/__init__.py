"""A person's own graph: files and objects in, a PyG ``Data`` out; and a folder of graphs."""

from h2hgcn.datasets.own.graph import load_graph
from h2hgcn.datasets.own.graphs import load_graphs

__all__ = ["load_graph", "load_graphs"]
