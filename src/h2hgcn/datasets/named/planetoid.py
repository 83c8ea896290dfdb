"""Cora and PubMed (Yang et al. 2016), from the files that PyG's ``Planetoid`` downloads."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, index_to_mask

from h2hgcn.datasets.named.origins import planetoid_files
from h2hgcn.datasets.named.pickles import load_pickle
from h2hgcn.errors import DataError

_NUM_VALIDATION = 500


def load_planetoid(name: str, root: str | Path | None = None) -> Data:
    """The graph as PyG gives it, its masks included; ``self_loops`` are the nodes whose loops it leaves out.

    PyG's own reader runs whatever a pickle asks for, so the files are read here, through an allow-list.
    """
    return read_planetoid(planetoid_files(name).obtain(root), name)


def read_planetoid(folder: Path, name: str) -> Data:
    known_x, test_x, known_y, test_y, train_y, graph = (
        load_pickle(folder / f"ind.{name}.{part}") for part in ("allx", "tx", "ally", "ty", "y", "graph")
    )
    test = torch.from_numpy(_test_nodes(folder / f"ind.{name}.test.index"))
    size = len(known_y) + len(test_y)
    x = torch.from_numpy(sp.vstack([known_x, test_x]).toarray().astype(np.float32))
    y = torch.from_numpy(np.concatenate([known_y, test_y]).argmax(1))
    in_order = test.sort().values  # the files keep test nodes in the order of the index
    x[test], y[test] = x[in_order], y[in_order]

    ends = np.array([(node, other) for node, others in graph.items() for other in others], dtype=np.int64)
    if ends.max() >= size:
        raise DataError(f"{folder}: the graph names node {ends.max()}, but there are features for {size} nodes")
    is_loop = ends[:, 0] == ends[:, 1]
    edges = torch.from_numpy(ends[~is_loop].T.copy())
    data = Data(x=x, y=y, edge_index=coalesce(torch.cat([edges, edges.flip(0)], 1), num_nodes=size), num_nodes=size)
    data.self_loops = torch.from_numpy(np.unique(ends[is_loop, 0]))
    count = len(train_y)
    data.train_mask = index_to_mask(torch.arange(count), size)
    data.val_mask = index_to_mask(torch.arange(count, count + _NUM_VALIDATION), size)
    data.test_mask = index_to_mask(test, size)
    return data


def _test_nodes(path: Path) -> np.ndarray:
    try:
        return np.loadtxt(path, dtype=np.int64, ndmin=1)
    except ValueError as error:
        raise DataError(f"{path}: {error}; put the original in its place") from error
