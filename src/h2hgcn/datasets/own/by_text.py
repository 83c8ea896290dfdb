"""A graph of one's own, described by texts alone, as a command line and TOML have them."""

from pathlib import Path
from typing import Any

from h2hgcn.datasets.named import DATASETS
from h2hgcn.datasets.own.converted import is_converted
from h2hgcn.datasets.own.graph import load_graph
from h2hgcn.errors import DataError


def load_graph_by_text(
    edges: str,
    features: str | None = None,
    labels: str | None = None,
    weights: str | None = None,
    directed: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    header: bool | None = None,
    unlinked: str | None = None,
) -> Any:
    """``load_graph`` for what flags and configuration files say."""
    if not edges:
        raise DataError("--edges is empty; name a file of edges")
    if edges in DATASETS and not Path(edges).exists():
        raise DataError(f"--edges {edges}: that is a named dataset, not a file; train on it with --dataset {edges}")
    if Path(edges).is_dir() and not is_converted(edges):
        raise DataError(
            f"{edges} is a folder; for a folder of graphs use --graphs {edges}, for one graph name its file"
        )
    if (source is None) != (target is None):
        raise DataError("--source and --target belong together; give both or none")
    chosen: Any = features
    if features is not None and _has_attributes(edges) and not Path(features).exists():
        chosen = features.split(",")
    columns = None if source is None or target is None else (source, target)
    return load_graph(
        Path(edges), chosen, labels, False if weights == "none" else weights, directed,
        columns=columns, header=header, unlinked=unlinked or "error",  # type: ignore[arg-type]  # checked there
    )  # fmt: skip


def _has_attributes(graph: str) -> bool:
    return Path(graph).suffix.lower() in (".graphml", ".gexf")
