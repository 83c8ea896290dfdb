"""The published datasets: Cora, PubMed, Airport, the two disease trees, and collections in the format of TU."""

import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.collection import FlatCollection
from h2hgcn.datasets.nodes import structural_features
from h2hgcn.datasets.registry import TU_FACTS, airport_files, disease_files, planetoid_files, tu_files
from h2hgcn.errors import DataError, DataWarning


def load_planetoid(name: str, root: str | Path | None = None) -> Data:
    """The graph as PyG gives it, its masks included; ``self_loops`` are the nodes whose loops it leaves out."""
    # a pickle can run anything, but every file is checked against its checksum here
    folder = planetoid_files(name).obtain(root)
    with warnings.catch_warnings(action="ignore"):  # of old names of SciPy's and NumPy's modules
        data = read_planetoid_data(str(folder), name)
        neighbors = pickle.loads((folder / f"ind.{name}.graph").read_bytes(), encoding="latin1")
    data.num_nodes = len(data.y)
    data.edge_index = coalesce(data.edge_index)
    data.self_loops = torch.tensor(sorted(node for node in neighbors if node in neighbors[node]), dtype=torch.long)
    return data


def load_disease_file(name: str, root: str | Path | None = None) -> Data:
    """``disease_lp`` or ``disease_nc``. Where the features of the second cannot be had, structural ones stand in."""
    files = disease_files(name)
    folder = files.obtain(root)
    labels = load_arrays(folder / f"{name}.labels.npy").astype(np.int64)
    edges = np.loadtxt(folder / f"{name}.edges.csv", dtype=np.int64, delimiter=",")
    data = Data(y=torch.from_numpy(labels), edge_index=_undirected(edges, len(labels)), num_nodes=len(labels))
    path = folder / f"{name}.feats.npz"
    if path.is_file():
        matrix = load_arrays(path)
        if not sp.issparse(matrix) or matrix.shape[0] != len(labels) or not _is_finite(matrix.data):
            raise DataError(
                f"{path} must hold finite numbers for {len(labels)} nodes as a sparse matrix; put the original in its "
                "place"
            )
        data.x = torch.from_numpy(matrix.toarray().astype(np.float32))
        return data
    data.x, data.feature_names = structural_features(data.edge_index, data.num_nodes)
    data.structural = True
    address = next(file.url for file in files.files if file.name == path.name)
    note = (
        f"{path.name} is not in {folder}: {name} has structural features instead (degree, one-hot degree, constant), "
        f"and its figures cannot be compared with published ones; for those, put {address} there"
    )
    warnings.warn(note, DataWarning, stacklevel=4)
    data.notes = [note]
    return data


# What the airports must come to, since the file has no published checksum.
_AIRPORTS, _AIRPORT_EDGES, _AIRPORT_FEATURES, _AIRPORT_CLASSES = 3188, 18_631, 5, 4


def load_airport(root: str | Path | None = None) -> Data:
    """The airports with their five numbers. ``label_columns`` names the number that the labels were cut from: it has
    to be left out when labels are to be predicted, which ``task_features`` does.
    """
    files = airport_files()
    path = files.obtain(root) / "airport.npz"
    arrays = load_arrays(path)
    known = sorted(arrays) if isinstance(arrays, dict) else "a single array"
    missing = {"edges", "feats", "labels_nc"} - set(known)
    if missing:
        raise DataError(f"{path} lacks the arrays {sorted(missing)}; it holds {known}")
    edges, x, y = arrays["edges"], arrays["feats"], arrays["labels_nc"]
    demands = {
        f"feats must be {_AIRPORTS} × {_AIRPORT_FEATURES} finite numbers": (
            x.shape == (_AIRPORTS, _AIRPORT_FEATURES) and _is_finite(x)
        ),
        f"labels_nc must be {_AIRPORTS} whole numbers from 0 to {_AIRPORT_CLASSES - 1}": (
            y.shape == (_AIRPORTS,) and _is_whole(y, below=_AIRPORT_CLASSES)
        ),
        f"node_ids, if there, must be {_AIRPORTS}": arrays.get("node_ids", y).shape == (_AIRPORTS,),
        f"edges must be pairs (k × 2) of whole numbers from 0 to {_AIRPORTS - 1}": (
            edges.ndim == 2 and edges.shape[1] == 2 and _is_whole(edges, below=_AIRPORTS)
        ),
    }
    unmet = [demand for demand, is_met in demands.items() if not is_met]
    if unmet:
        raise DataError(f"{path}: {'; '.join(unmet)}. Convert it again{files.hint}")
    edge_index = _undirected(edges.astype(np.int64), _AIRPORTS)
    distinct = int((edge_index[0] <= edge_index[1]).sum())
    if distinct != _AIRPORT_EDGES:
        raise DataError(
            f"{path} has {distinct} different edges, but there are {_AIRPORT_EDGES}. Convert it again{files.hint}"
        )
    x, y = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.astype(np.int64))
    data = Data(x=x, y=y, edge_index=edge_index, num_nodes=_AIRPORTS)
    if "node_ids" in arrays:
        data.node_ids = arrays["node_ids"]
    data.label_columns = [_AIRPORT_FEATURES - 1]
    data.append_structure = True
    return data


def _undirected(pairs: NDArray[np.int64], size: int) -> torch.Tensor:
    edge_index: torch.Tensor = to_undirected(torch.from_numpy(np.ascontiguousarray(pairs.T)), num_nodes=size)
    return edge_index


def _is_finite(numbers: NDArray[Any]) -> bool:
    """Whether these are numbers that stay finite in float32."""
    return numbers.dtype.kind in "biuf" and bool((np.abs(numbers) <= np.finfo(np.float32).max).all())


def _is_whole(numbers: NDArray[Any], below: int) -> bool:
    return numbers.dtype.kind in "iuf" and bool(np.isin(numbers, np.arange(below)).all())


def load_tu(name: str, root: str | Path | None = None) -> FlatCollection:
    """A TU collection (Morris et al. 2020) with one-hot node labels as features, and the attributes before them for
    ENZYMES alone, as in the fair comparison (Errica et al. 2020).
    """
    folder, facts = tu_files(name).obtain(root), TU_FACTS[name]
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
    edge_index = graphs.edge_index.astype(np.int16)  # the largest graph has 5,748 nodes
    arrays = (x, edge_index, graphs.node_pointers, graphs.edge_pointers, y)
    return FlatCollection(name, *map(torch.from_numpy, arrays))


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

    graph_of_node = _read(path("graph_indicator"), np.int64)[:, 0] - 1
    sizes = np.bincount(graph_of_node.clip(min=0))
    if not len(graph_of_node) or graph_of_node[0] < 0 or (np.diff(graph_of_node) < 0).any() or not sizes.all():
        raise DataError(f"{path('graph_indicator')} must count graphs from 1, each with all its nodes in a row")
    size = len(graph_of_node)
    edges = _read(path("A"), np.int64, columns=2).T - 1
    if edges.size and (edges.min() < 0 or edges.max() >= size):
        raise DataError(
            f"{path('A')} names nodes from {edges.min() + 1} to {edges.max() + 1}, but there are {size}, counted from 1"
        )
    across = np.flatnonzero(graph_of_node[edges[0]] != graph_of_node[edges[1]])
    if len(across):
        raise DataError(f"{path('A')}, edge {across[0] + 1}: its nodes are in two graphs")
    y = _read(path("graph_labels"), np.int64, columns=1)[:, 0] if path("graph_labels").exists() else None
    if y is not None and len(y) != len(sizes):
        raise DataError(f"{path('graph_labels')} has {len(y)} lines for {len(sizes)} graphs")
    of_nodes = []
    for part, dtype in (("node_attributes", np.float32), ("node_labels", np.int64)):
        rows = _read(path(part), dtype) if path(part).exists() else np.zeros((size, 0), dtype)
        if len(rows) != size:
            raise DataError(f"{path(part)} has {len(rows)} lines for {size} nodes")
        of_nodes.append(rows)
    simple = coalesce(remove_self_loops(torch.from_numpy(edges))[0], num_nodes=size).numpy()
    node_pointers = np.concatenate([[0], sizes.cumsum()])
    owner = graph_of_node[simple[0]]
    edge_pointers = np.searchsorted(owner, np.arange(len(sizes) + 1))
    attributes, labels = of_nodes
    return TUGraphs(attributes, labels, simple - node_pointers[owner], node_pointers, edge_pointers, y)


def _read(path: Path, dtype: Any, columns: int | None = None) -> NDArray[Any]:
    """The numbers of a file, a row a line; whole ones for ``int64``."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            numbers = np.loadtxt(path, delimiter=",", ndmin=2, comments=None, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or 'it is not there'})") from error
    except ValueError as error:
        raise DataError(f"{path} cannot be read ({error})") from error
    if columns is not None and numbers.size and numbers.shape[1] != columns:
        raise DataError(f"{path} has {numbers.shape[1]} columns, not {columns}")
    with np.errstate(invalid="ignore"):  # of NaN, which is found in the next line
        rows = numbers.astype(dtype)
    if dtype is np.int64 and (rows != numbers).any():
        row = int((rows != numbers).any(1).argmax())
        raise DataError(f"{path}, row {row + 1}: {numbers[row].tolist()} are not whole numbers")
    return rows if columns is None else rows.reshape(-1, columns)
