"""Hyperbolic-to-hyperbolic graph convolutional networks on PyTorch, PyTorch Geometric and geoopt."""

from importlib.metadata import version

__version__ = version("h2hgcn")
