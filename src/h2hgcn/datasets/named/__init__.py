"""The datasets that have a name: the paper's benchmarks, and two that are generated."""

from typing import TYPE_CHECKING

from h2hgcn.datasets.named.table import DATASETS, NamedDataset, load_dataset
from h2hgcn.lazy import lazy_names

if TYPE_CHECKING:
    from h2hgcn.datasets.named.collection import FlatCollection, GraphCollection

__all__ = ["DATASETS", "FlatCollection", "GraphCollection", "NamedDataset", "load_dataset"]

__getattr__ = lazy_names(__name__, {"h2hgcn.datasets.named.collection": ("FlatCollection", "GraphCollection")})
