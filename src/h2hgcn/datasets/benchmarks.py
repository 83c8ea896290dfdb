"""The published datasets: Cora, PubMed, Airport, the two disease trees, and collections in the format of TU."""

import hashlib
import io
import pickle
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, index_to_mask, remove_self_loops, to_undirected

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.collection import FlatCollection
from h2hgcn.datasets.nodes import structural_features
from h2hgcn.datasets.registry import (
    TU_FACTS,
    airport_files,
    disease_files,
    planetoid_files,
    tu_files,
)
from h2hgcn.errors import DataError, DataWarning

# Modules as they were called in the year of the files, and today.
_RENAMED = {"scipy.sparse.csr": "scipy.sparse", "numpy.core.multiarray": "numpy._core.multiarray"}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(_RENAMED.get(module, module), name)


def load_pickle(path: Path, sha256: str) -> Any:
    """What a published pickle holds. A pickle can run anything, so one of another checksum is not read."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DataError(f"{path} is not the published file, so its pickle was not read; put the original in its place")
    return _Unpickler(io.BytesIO(content), encoding="latin1").load()


_NUM_VALIDATION = 500


def load_planetoid(name: str, root: str | Path | None = None) -> Data:
    """The graph as PyG gives it, its masks included; ``self_loops`` are the nodes whose loops it leaves out.

    PyG's own reader runs whatever a pickle asks for, so the files are read here, by their checksums.
    """
    files = planetoid_files(name)
    folder = files.obtain(root)
    checksums = {file.name: file.sha256 or "" for file in files.files}
    known_x, test_x, known_y, test_y, train_y, graph = (
        load_pickle(folder / file, checksums[file])
        for file in (f"ind.{name}.{part}" for part in ("allx", "tx", "ally", "ty", "y", "graph"))
    )
    test = torch.from_numpy(np.loadtxt(folder / f"ind.{name}.test.index", dtype=np.int64, ndmin=1))
    size = len(known_y) + len(test_y)
    x = torch.from_numpy(sp.vstack([known_x, test_x]).toarray().astype(np.float32))
    y = torch.from_numpy(np.concatenate([known_y, test_y]).argmax(1))
    in_order = test.sort().values  # the files keep test nodes in the order of the index
    x[test], y[test] = x[in_order], y[in_order]

    ends = np.array([(node, other) for node, others in graph.items() for other in others], dtype=np.int64)
    is_loop = ends[:, 0] == ends[:, 1]
    data = Data(x=x, y=y, edge_index=_undirected(ends[~is_loop], size), num_nodes=size)
    data.self_loops = torch.from_numpy(np.unique(ends[is_loop, 0]))
    count = len(train_y)
    data.train_mask = index_to_mask(torch.arange(count), size)
    data.val_mask = index_to_mask(torch.arange(count, count + _NUM_VALIDATION), size)
    data.test_mask = index_to_mask(test, size)
    return data


# What the airports must come to, since the file has no published checksum.
_AIRPORTS, _AIRPORT_EDGES, _AIRPORT_FEATURES, _AIRPORT_CLASSES = 3188, 18_631, 5, 4


def load_disease_file(name: str, root: str | Path | None = None) -> Data:
    """``disease_lp`` or ``disease_nc``. Where the features of the second cannot be had, structural ones stand in."""
    files = disease_files(name)
    folder = files.obtain(root)
    labels = load_arrays(folder / f"{name}.labels.npy").astype(np.int64)
    edges = _read_pairs(folder / f"{name}.edges.csv", len(labels))
    data = Data(y=torch.from_numpy(labels), edge_index=_undirected(edges, len(labels)), num_nodes=len(labels))
    features = folder / f"{name}.feats.npz"
    if features.is_file():
        data.x = torch.from_numpy(_read_features(features, len(labels)))
        return data
    data.x, data.feature_names = structural_features(data.edge_index, data.num_nodes)
    data.structural = True
    address = next(file.url for file in files.files if file.name == features.name)
    note = (
        f"{features.name} is not in {folder}: {name} has structural features instead (degree, one-hot degree, "
        f"constant), and its figures cannot be compared with published ones; for those, put {address} there"
    )
    warnings.warn(note, DataWarning, stacklevel=4)
    data.notes = [note]
    return data


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
    edges, features, labels = arrays["edges"], arrays["feats"], arrays["labels_nc"]
    demands = {
        f"feats must be {_AIRPORTS} × {_AIRPORT_FEATURES} finite numbers": (
            features.shape == (_AIRPORTS, _AIRPORT_FEATURES) and _is_finite(features)
        ),
        f"labels_nc must be {_AIRPORTS} whole numbers from 0 to {_AIRPORT_CLASSES - 1}": (
            labels.shape == (_AIRPORTS,) and _is_whole(labels, below=_AIRPORT_CLASSES)
        ),
        f"node_ids, if there, must be {_AIRPORTS}": arrays.get("node_ids", labels).shape == (_AIRPORTS,),
        f"edges must be pairs (k × 2) of whole numbers from 0 to {_AIRPORTS - 1}": (
            edges.ndim == 2 and edges.shape[1] == 2 and _is_whole(edges, below=_AIRPORTS)
        ),
    }
    unmet = [demand for demand, is_met in demands.items() if not is_met]
    if unmet:
        raise DataError(f"{path}: {'; '.join(unmet)}. Convert it again{files.hint}")
    data = Data(
        x=torch.from_numpy(features.astype(np.float32)),
        y=torch.from_numpy(labels.astype(np.int64)),
        edge_index=_undirected(edges.astype(np.int64), _AIRPORTS),
        num_nodes=_AIRPORTS,
    )
    distinct = int((data.edge_index[0] <= data.edge_index[1]).sum())
    if distinct != _AIRPORT_EDGES:
        raise DataError(
            f"{path} has {distinct} different edges, but there are {_AIRPORT_EDGES}. Convert it again{files.hint}"
        )
    if "node_ids" in arrays:
        data.node_ids = arrays["node_ids"]
    data.label_columns = [_AIRPORT_FEATURES - 1]
    data.append_structure = True
    return data


def _undirected(pairs: NDArray[np.int64], size: int) -> torch.Tensor:
    edge_index: torch.Tensor = to_undirected(torch.from_numpy(np.ascontiguousarray(pairs.T)), num_nodes=size)
    return edge_index


def _read_pairs(path: Path, size: int) -> np.ndarray:
    try:
        pairs = np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(f"{path}: {error}; put the original in its place") from error
    if pairs.shape[1] != 2 or pairs.min() < 0 or pairs.max() >= size:
        raise DataError(f"{path} is not a list of pairs of the nodes 0 to {size - 1}; put the original in its place")
    return pairs


def _read_features(path: Path, size: int) -> NDArray[np.float32]:
    try:
        matrix = sp.load_npz(path).tocsr()
        matrix.check_format(full_check=True)
    except (ValueError, KeyError, TypeError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a sparse matrix ({error}); put the original in its place") from error
    if matrix.shape[0] != size or not _is_finite(matrix.data):
        raise DataError(
            f"{path} must have finite numbers for {size} nodes, but is {matrix.dtype} {matrix.shape}; put the original "
            "in its place"
        )
    return matrix.toarray().astype(np.float32)


def _is_finite(numbers: NDArray[Any]) -> bool:
    """Whether these are numbers that stay finite in float32."""
    return numbers.dtype.kind in "biuf" and bool((np.abs(numbers) <= np.finfo(np.float32).max).all())


def _is_whole(numbers: NDArray[Any], below: int) -> bool:
    return numbers.dtype.kind in "iuf" and bool(
        ((numbers >= 0) & (numbers < below) & (np.floor(numbers) == numbers)).all()
    )


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
