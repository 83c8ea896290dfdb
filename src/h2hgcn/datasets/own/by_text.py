"""A graph of one's own, described by texts alone, as a command line and TOML have them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.named import DATASETS
from h2hgcn.datasets.own.converted import is_converted
from h2hgcn.datasets.own.edge_list import MASKS
from h2hgcn.datasets.own.graph import load_graph
from h2hgcn.datasets.own.layout import find_layout
from h2hgcn.datasets.own.node_labels import split_column
from h2hgcn.datasets.own.node_tables import ID_NAMES, id_column
from h2hgcn.datasets.own.tables import PARQUET_SUFFIXES
from h2hgcn.datasets.own.text_files import read_text
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


def has_split(edges: str | None, labels: str | None) -> bool:
    """Whether the files of a graph have a split of its nodes, as far as their headers say: a column beside the labels,
    or masks beside the edges. What is wrong with a file is said when it is loaded.
    """
    try:
        if labels is not None and Path(labels).is_file() and Path(labels).suffix.lower() not in (".npy", ".npz"):
            columns = _columns(Path(labels))
            if split_column([name for k, name in enumerate(columns) if k != id_column(columns)]) is not None:
                return True
        if edges is not None and Path(edges).suffix.lower() == ".npz" and Path(edges).is_file():
            arrays = load_arrays(Path(edges))
            return not isinstance(arrays, np.ndarray) and all(np.ndim(arrays.get(name, 0)) == 1 for name in MASKS)
    except (DataError, OSError, pa.ArrowException):
        pass
    return False


def _columns(path: Path) -> list[str]:
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return list(pq.read_schema(path).names)
    return find_layout(path, read_text(path), None, ID_NAMES | {"label", "split"}).columns


def _has_attributes(graph: str) -> bool:
    return Path(graph).suffix.lower() in (".graphml", ".gexf")
