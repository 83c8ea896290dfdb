"""The named datasets: one table, one function. Loaders are imported when they are called, since PyTorch takes long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2hgcn.datasets.folders import cache_folder
from h2hgcn.datasets.named.origins import airport_files, disease_files, planetoid_files, tu_files
from h2hgcn.datasets.named.source_files import SourceFolder
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data, Dataset

    from h2hgcn.datasets.named.collection import GraphCollection

Root = str | Path | None


@dataclass(frozen=True)
class NamedDataset:
    """How a dataset is loaded, what it is good for, and where its files are; generated ones have none.

    ``protocols`` are the splits of published figures, by task; tasks that are not named have clean ones.
    """

    description: str
    size: str
    tasks: tuple[str, ...]
    load: Callable[[Root], Data | GraphCollection]
    files: SourceFolder | None = None
    protocols: Mapping[str, str] = field(default_factory=dict)

    def is_here(self, root: Root = None) -> bool:
        """Whether it can be loaded without the network."""
        return self.files is None or self.files.find(root) is not None

    def can_be_downloaded(self) -> bool:
        """Whether its files have addresses."""
        return self.files is not None and all(file.url or file.archive for file in self.files.files)


def _disease(root: Root) -> Data:
    from h2hgcn.datasets.named.disease import generate_disease

    return generate_disease()


def _disease_file(name: str, root: Root) -> Data:
    from h2hgcn.datasets.named.hgcn_files import load_disease_file

    return load_disease_file(name, root)


def _airport(root: Root) -> Data:
    from h2hgcn.datasets.named.hgcn_files import load_airport

    return load_airport(root)


def _planetoid(name: str, root: Root) -> Data:
    from h2hgcn.datasets.named.planetoid import load_planetoid

    return load_planetoid(name, root)


def _tu(name: str, root: Root) -> GraphCollection:
    from h2hgcn.datasets.named.tu import load_tu

    return load_tu(name, root)


def _hyperbolic(num_edges: int, root: Root) -> Data:
    from h2hgcn.datasets.named.hyperbolic import generate_hyperbolic

    return generate_hyperbolic(num_edges)


def _synthetic(root: Root) -> GraphCollection:
    from rich.console import Console
    from rich.progress import Progress

    from h2hgcn.datasets.named.synthetic import load_synthetic

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("generating random graphs", total=None)
        return load_synthetic(
            cache_folder() / "processed", progress=lambda done, total: bar.update(task, completed=done, total=total)
        )


DATASETS = {
    "disease": NamedDataset(
        "spreading of a disease on a random tree, generated",
        "2,500 nodes, 2,499 edges",
        ("lp", "nc"),
        _disease,
    ),
    "disease_lp": NamedDataset(
        "HGCN's disease tree for link prediction",
        "2,665 nodes, 2,664 edges",
        ("lp", "nc"),
        partial(_disease_file, "disease_lp"),
        disease_files("disease_lp"),
        {"lp": "legacy"},
    ),
    "disease_nc": NamedDataset(
        "HGCN's disease tree for node classification",
        "1,044 nodes, 1,043 edges",
        ("nc", "lp"),
        partial(_disease_file, "disease_nc"),
        disease_files("disease_nc"),
    ),
    "airport": NamedDataset(
        "HGCN's airports and flight routes",
        "3,188 nodes, 18,631 edges",
        ("lp", "nc"),
        _airport,
        airport_files(),
        {"lp": "legacy"},
    ),
    "cora": NamedDataset(
        "citations of machine-learning papers",
        "2,708 nodes, 5,278 edges",
        ("lp", "nc"),
        partial(_planetoid, "cora"),
        planetoid_files("cora"),
        {"lp": "legacy", "nc": "planetoid"},
    ),
    "pubmed": NamedDataset(
        "citations of papers on diabetes",
        "19,717 nodes, 44,324 edges",
        ("lp", "nc"),
        partial(_planetoid, "pubmed"),
        planetoid_files("pubmed"),
        {"lp": "legacy", "nc": "planetoid"},
    ),
    **{
        f"hyperbolic-{name}": NamedDataset(
            "random graph with a hidden hierarchy, generated",
            f"{num_edges // 10:,} nodes, about {num_edges:,} edges",
            ("lp", "nc"),
            partial(_hyperbolic, num_edges),
        )
        for name, num_edges in (("10k", 10_000), ("100k", 100_000), ("1m", 1_000_000), ("10m", 10_000_000))
    },
    "synthetic": NamedDataset(
        "HGNN's random graphs of three kinds, generated",
        "18,000 graphs",
        ("gc",),
        _synthetic,
    ),
    "dd": NamedDataset(
        "proteins, enzymes or not (large graphs)",
        "1,178 graphs",
        ("gc",),
        partial(_tu, "dd"),
        tu_files("dd"),
        {"gc": "fair-comparison"},
    ),
    "proteins": NamedDataset(
        "proteins, enzymes or not",
        "1,113 graphs",
        ("gc",),
        partial(_tu, "proteins"),
        tu_files("proteins"),
        {"gc": "fair-comparison"},
    ),
    "enzymes": NamedDataset(
        "enzymes of six classes",
        "600 graphs",
        ("gc",),
        partial(_tu, "enzymes"),
        tu_files("enzymes"),
        {"gc": "fair-comparison"},
    ),
}


def load_dataset(name: str | Data | Dataset, root: Root = None) -> Any:
    """A named dataset: a PyG ``Data``, or a collection of them; a PyG object comes back as it is.

    Files are looked for in ``root``, else in ``$H2HGCN_DATA``, else in the cache folder, and downloaded if they are
    in none. A graph has ``x``, ``y``, ``edge_index`` (every edge in both directions), ``name``, ``directed`` and
    ``notes``.
    """
    from torch_geometric.data import Data, Dataset

    if isinstance(name, Data | Dataset):
        return name
    name = _known_name(name)
    loaded = DATASETS[name].load(root)
    loaded.name = name
    if isinstance(loaded, Dataset):
        loaded.data_root = root
    if isinstance(loaded, Data):
        loaded.directed = False
        loaded.notes = getattr(loaded, "notes", [])
    return loaded


def _known_name(name: Any) -> str:
    if isinstance(name, str) and name.lower() in DATASETS:
        return name.lower()
    close = get_close_matches(name.lower(), DATASETS, n=1) if isinstance(name, str) else []
    meant = f" (did you mean {close[0]}?)" if close else ""
    raise DataError(
        f"{name!r} is not a known dataset{meant}; there are {', '.join(DATASETS)}, and load_graph for your own files"
    )
