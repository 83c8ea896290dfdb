"""DD, PROTEINS and ENZYMES of the TU collection (Morris et al. 2020), from the files of PyG's ``TUDataset``."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.datasets import TUDataset
from torch_geometric.io import read_tu_data

from h2hgcn.atomic import atomic_write
from h2hgcn.datasets.folders import cache_folder
from h2hgcn.datasets.named.collection import FlatCollection
from h2hgcn.datasets.named.source_files import SourceFile, SourceFolder
from h2hgcn.errors import DataError

# Raised when the form of the processed copies changes.
_VERSION = 1

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class TUFacts:
    """What a collection must come to, since its archive has no published checksum."""

    folder: str
    num_graphs: int
    num_nodes: int
    num_edges: int
    num_classes: int
    with_attributes: bool = False


TU_FACTS = {
    "dd": TUFacts("DD", 1178, 334_925, 843_046, 2),
    "proteins": TUFacts("PROTEINS_full", 1113, 43_471, 81_044, 2),
    "enzymes": TUFacts("ENZYMES", 600, 19_580, 37_282, 6, with_attributes=True),
}


def tu_files(name: str) -> SourceFolder:
    facts = TU_FACTS[name]
    parts = [
        "A",
        "graph_indicator",
        "graph_labels",
        "node_labels",
        *(["node_attributes"] if facts.with_attributes else []),
    ]
    archive = f"{TUDataset.url}/{facts.folder}.zip"
    files = [SourceFile(f"{facts.folder}_{part}.txt", archive=archive) for part in parts]
    return SourceFolder("tu", f"{facts.folder}/raw", files)


def load_tu(name: str, root: str | Path | None = None) -> FlatCollection:
    """The collection with one-hot node labels as features, and the attributes before them for ENZYMES alone, as in
    the fair comparison (Errica et al. 2020). Read once, then kept in the cache.
    """
    folder = tu_files(name).obtain(root)
    stamp = _stamp(folder, name)
    copy = cache_folder() / "processed" / f"{name}.npz"
    arrays = _read_copy(copy, stamp)
    if arrays is None:
        arrays = _read(folder, TU_FACTS[name])
        _keep_copy(copy, arrays, stamp)
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    return FlatCollection(name, **tensors)


def _read(folder: Path, facts: TUFacts) -> Arrays:
    try:
        data, slices, sizes = read_tu_data(str(folder), facts.folder)
    except (ValueError, IndexError, RuntimeError) as error:
        raise DataError(f"the files in {folder} cannot be read ({error}); put the originals in their place") from error
    graphs, nodes, edges = len(data.y), len(data.x), data.edge_index.shape[1] // 2
    if (graphs, nodes, edges) != (facts.num_graphs, facts.num_nodes, facts.num_edges):
        raise DataError(
            f"the files in {folder} hold {graphs} graphs, {nodes} nodes and {edges} edges, but {facts.folder} has "
            f"{facts.num_graphs}, {facts.num_nodes} and {facts.num_edges}; put the originals in their place"
        )
    x = data.x if facts.with_attributes else data.x[:, sizes["num_node_attributes"] :].to(torch.uint8)
    return {
        "x": x.numpy(),
        "edge_index": data.edge_index.to(torch.int16).numpy(),  # the largest graph has 5,748 nodes
        "node_pointers": slices["x"].numpy(),
        "edge_pointers": slices["edge_index"].numpy(),
        "y": data.y.numpy(),
    }


def _stamp(folder: Path, name: str) -> str:
    states = [(file.name, (folder / file.name).stat()) for file in tu_files(name).files]
    return f"{_VERSION} " + " ".join(f"{name}:{state.st_size}:{state.st_mtime_ns}" for name, state in states)


def _read_copy(path: Path, stamp: str) -> Arrays | None:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files if key != "stamp"} if arrays["stamp"] == stamp else None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None  # not there, or not whole: the originals are read again


def _keep_copy(path: Path, arrays: Arrays, stamp: str) -> None:
    try:
        with atomic_write(path) as file:
            np.savez(file, allow_pickle=False, stamp=np.array(stamp), **arrays)
    except OSError:
        pass  # a cache that cannot be written costs time, nothing else
