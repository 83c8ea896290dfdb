"""Hyperbolic-to-hyperbolic graph convolutional networks on PyTorch, PyTorch Geometric and geoopt."""

from importlib.metadata import version
from typing import TYPE_CHECKING

from h2hgcn.lazy import lazy_names

if TYPE_CHECKING:
    from h2hgcn.datasets import load_dataset, load_graph, load_graphs
    from h2hgcn.estimators import H2HGCNClassifier, H2HGCNEmbedder, H2HGCNLinkPredictor
    from h2hgcn.experiments.train import train
    from h2hgcn.layers import H2HConv
    from h2hgcn.models import H2HGCN
    from h2hgcn.training import load_run

__all__ = [
    "H2HGCN", "H2HConv", "H2HGCNClassifier", "H2HGCNEmbedder", "H2HGCNLinkPredictor", "__version__", "load_dataset",
    "load_graph", "load_graphs", "load_run", "train",
]  # fmt: skip

__version__ = version("h2hgcn")

_HOMES = {
    "h2hgcn.datasets": ("load_dataset", "load_graph", "load_graphs"),
    "h2hgcn.estimators": ("H2HGCNClassifier", "H2HGCNEmbedder", "H2HGCNLinkPredictor"),
    "h2hgcn.experiments.train": ("train",),
    "h2hgcn.layers": ("H2HConv",),
    "h2hgcn.models": ("H2HGCN",),
    "h2hgcn.training": ("load_run",),
}
__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
