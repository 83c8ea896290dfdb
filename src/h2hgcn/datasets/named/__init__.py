"""The datasets that have a name: the paper's benchmarks, and two that are generated."""

from h2hgcn.datasets.named.collection import FlatCollection, GraphCollection
from h2hgcn.datasets.named.table import DATASETS, NamedDataset, load_dataset

__all__ = ["DATASETS", "FlatCollection", "GraphCollection", "NamedDataset", "load_dataset"]
