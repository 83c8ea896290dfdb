"""Collections in the format of the TU datasets (Morris et al. 2020); DD, PROTEINS and ENZYMES among them."""

import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.utils import coalesce, remove_self_loops

from h2hgcn.datasets.collection import FlatCollection
from h2hgcn.datasets.registry import TU_FACTS, TUFacts, cache_folder, tu_files
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

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
        graphs = read_tu(folder, facts.folder)
    except DataError as error:
        raise DataError(f"{error}; put the originals in their place") from error
    assert graphs.y is not None
    classes, y = np.unique(graphs.y, return_inverse=True)
    found = (graphs.num_graphs, len(graphs.labels), graphs.edge_index.shape[1] // 2, len(classes))
    expected = (facts.num_graphs, facts.num_nodes, facts.num_edges, facts.num_classes)
    if found != expected or not np.isfinite(graphs.attributes).all():
        raise DataError(
            "the files in {} hold {} graphs, {} nodes, {} edges and {} classes, but {} has {}, {}, {} and {}, and all "
            "its features are finite; put the originals in their place".format(folder, *found, facts.folder, *expected)
        )
    one_hot = graphs.one_hot_labels()[0]
    x = np.concatenate([graphs.attributes, one_hot], 1, dtype=np.float32) if facts.with_attributes else one_hot
    return {
        "x": x,
        "edge_index": graphs.edge_index.astype(np.int16),  # the largest graph has 5,748 nodes
        "node_pointers": graphs.node_pointers,
        "edge_pointers": graphs.edge_pointers,
        "y": y,
    }


@dataclass(frozen=True)
class TUGraphs:
    """The graphs of one folder, one after the other; graph ``i`` has the nodes ``node_pointers[i]`` and following.

    ``attributes`` and ``labels`` are those of nodes, without columns if there are none; ``y`` are the classes as they
    are written, None if there are none. Edges are distinct, no self-loops, and count nodes within their graph.
    """

    attributes: NDArray[np.float32]
    labels: NDArray[np.int64]
    edge_index: NDArray[np.int64]
    node_pointers: NDArray[np.int64]
    edge_pointers: NDArray[np.int64]
    y: NDArray[np.int64] | None

    @property
    def num_graphs(self) -> int:
        return len(self.node_pointers) - 1

    def one_hot_labels(self) -> tuple[NDArray[np.uint8], list[str]]:
        """A column for each label from the smallest to the largest, as in PyG, and the names of the columns."""
        blocks, names = [np.zeros((len(self.labels), 0), np.uint8)], []
        for number, column in enumerate(self.labels.T, 1):
            which = "node label" if self.labels.shape[1] == 1 else f"node label {number}:"
            values = np.arange(column.min(), column.max() + 1)
            blocks.append((column[:, None] == values).astype(np.uint8))
            names += [f"{which} {value}" for value in values.tolist()]
        return np.concatenate(blocks, 1), names


def read_tu(folder: Path, name: str) -> TUGraphs:
    """The graphs of ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and, where they are there, the files of classes
    (``graph_labels``), node labels and node attributes. Attributes of edges are not read.
    """

    def path(part: str) -> Path:
        return folder / f"{name}_{part}.txt"

    graph_of_node = _whole_numbers(path("graph_indicator"))[:, 0] - 1
    sizes = np.bincount(graph_of_node.clip(min=0))
    if not len(graph_of_node) or graph_of_node[0] < 0 or (np.diff(graph_of_node) < 0).any() or not sizes.all():
        raise DataError(f"{path('graph_indicator')} must count graphs from 1, each with all its nodes in a row")
    edges = _whole_numbers(path("A"), 2).T - 1
    if edges.size and (edges.min() < 0 or edges.max() >= len(graph_of_node)):
        raise DataError(
            f"{path('A')} names nodes from {edges.min() + 1} to {edges.max() + 1}, but there are "
            f"{len(graph_of_node)}, counted from 1"
        )
    across = np.flatnonzero(graph_of_node[edges[0]] != graph_of_node[edges[1]])
    if len(across):
        raise DataError(f"{path('A')}, edge {across[0] + 1}: its nodes are in two graphs")
    y = _whole_numbers(path("graph_labels"), 1)[:, 0] if path("graph_labels").exists() else None
    if y is not None and len(y) != len(sizes):
        raise DataError(f"{path('graph_labels')} has {len(y)} lines for {len(sizes)} graphs")
    simple = coalesce(remove_self_loops(torch.from_numpy(edges))[0], num_nodes=len(graph_of_node)).numpy()
    node_pointers = np.concatenate([[0], sizes.cumsum()])
    owner = graph_of_node[simple[0]]
    return TUGraphs(
        _of_nodes(path("node_attributes"), len(graph_of_node), np.float32),
        _of_nodes(path("node_labels"), len(graph_of_node), np.int64),
        simple - node_pointers[owner],
        node_pointers,
        np.searchsorted(owner, np.arange(len(sizes) + 1)),
        y,
    )


def _of_nodes(path: Path, count: int, dtype: Any) -> NDArray[Any]:
    """The numbers of all nodes; no columns if there is no file."""
    if not path.exists():
        return np.zeros((count, 0), dtype)
    rows = _whole_numbers(path) if dtype is np.int64 else _numbers(path).astype(dtype)
    if len(rows) != count:
        raise DataError(f"{path} has {len(rows)} lines for {count} nodes")
    return rows


def _whole_numbers(path: Path, columns: int | None = None) -> NDArray[np.int64]:
    numbers = _numbers(path)
    if columns is not None and numbers.size and numbers.shape[1] != columns:
        raise DataError(f"{path} has {numbers.shape[1]} columns, not {columns}")
    with np.errstate(invalid="ignore"):  # of NaN, which is found in the next line
        whole = numbers.astype(np.int64)
    if (whole != numbers).any():
        row = int((whole != numbers).any(1).argmax())
        raise DataError(f"{path}, row {row + 1}: {numbers[row].tolist()} are not whole numbers")
    return whole.reshape(-1, columns) if columns is not None else whole


def _numbers(path: Path) -> NDArray[np.float64]:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            return np.loadtxt(path, delimiter=",", ndmin=2, comments=None, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or 'it is not there'})") from error
    except ValueError as error:
        raise DataError(f"{path} cannot be read ({error})") from error


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
