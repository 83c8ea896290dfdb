"""Cora and PubMed (Yang et al. 2016), from the files that PyG's ``Planetoid`` downloads."""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.utils import coalesce, index_to_mask

from h2hgcn.datasets.named.pickles import load_pickle
from h2hgcn.datasets.named.source_files import SourceFile, SourceFolder
from h2hgcn.errors import DataError

_NUM_VALIDATION = 500

_CHECKSUMS = {
    "cora": {
        "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
        "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    },
    "pubmed": {
        "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
    },
}

_FOLDERS = {"cora": "Cora", "pubmed": "PubMed"}


def planetoid_files(name: str) -> SourceFolder:
    files = [
        SourceFile(f"ind.{name}.{part}", checksum, f"{Planetoid.url}/ind.{name}.{part}")
        for part, checksum in _CHECKSUMS[name].items()
    ]
    return SourceFolder("planetoid", f"{_FOLDERS[name]}/raw", files)


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
