"""DD, PROTEINS and ENZYMES of the TU collection (Morris et al. 2020), from the files of PyG's ``TUDataset``."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.io import read_tu_data

from h2hgcn.atomic import atomic_write
from h2hgcn.datasets.folders import cache_folder
from h2hgcn.datasets.named.collection import FlatCollection
from h2hgcn.datasets.named.origins import TU_FACTS, TUFacts, tu_files
from h2hgcn.errors import DataError

# Raised when the form of the processed copies changes.
_VERSION = 1

# What a copy that is missing, damaged or made by something else can end in.
_FAULTS = (OSError, ValueError, KeyError, IndexError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)

Arrays = dict[str, NDArray[Any]]


def load_tu(name: str, root: str | Path | None = None) -> FlatCollection:
    """The collection with one-hot node labels as features, and the attributes before them for ENZYMES alone, as in
    the fair comparison (Errica et al. 2020). Read once, then kept in the cache.
    """
    folder = tu_files(name).obtain(root)
    stamp = _stamp(folder, name)
    copy = cache_folder() / "processed" / f"{name}.npz"
    known = _read_copy(copy, stamp, name)
    if known is not None:
        return known
    arrays = _read(folder, TU_FACTS[name])
    _keep_copy(copy, arrays, stamp)
    return _collection(name, arrays)


def _collection(name: str, arrays: Arrays) -> FlatCollection:
    return FlatCollection(name, **{key: torch.from_numpy(array) for key, array in arrays.items()})


def _read(folder: Path, facts: TUFacts) -> Arrays:
    try:
        data, slices, sizes = read_tu_data(str(folder), facts.folder)
    except (ValueError, IndexError, RuntimeError) as error:
        raise DataError(f"the files in {folder} cannot be read ({error}); put the originals in their place") from error
    found = (len(data.y), len(data.x), data.edge_index.shape[1] // 2, len(data.y.unique()))
    expected = (facts.num_graphs, facts.num_nodes, facts.num_edges, facts.num_classes)
    if found != expected or not bool(data.x.isfinite().all()):
        raise DataError(
            "the files in {} hold {} graphs, {} nodes, {} edges and {} classes, but {} has {}, {}, {} and {}, and all "
            "its features are finite; put the originals in their place".format(folder, *found, facts.folder, *expected)
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


def _read_copy(path: Path, stamp: str, name: str) -> FlatCollection | None:
    try:
        # opened here, since numpy leaves a file open whose end is missing
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            if arrays["stamp"] != stamp:
                return None
            return _collection(name, {key: arrays[key] for key in arrays.files if key != "stamp"})
    except _FAULTS:
        return None  # not there, or not what was written: the originals are read again


def _keep_copy(path: Path, arrays: Arrays, stamp: str) -> None:
    try:
        with atomic_write(path) as file:
            np.savez(file, allow_pickle=False, stamp=np.array(stamp), **arrays)
    except OSError:
        pass  # a cache that cannot be written costs time, nothing else
