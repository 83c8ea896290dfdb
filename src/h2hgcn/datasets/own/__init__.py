"""A person's own graph: files and objects in, a PyG ``Data`` out."""

from h2hgcn.datasets.own.graph import load_graph

__all__ = ["load_graph"]
