"""HGCN's graphs (Chami et al. 2019): two disease trees and the airports."""

import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.named.source_files import SourceFile, SourceFolder
from h2hgcn.datasets.structural import structural_features
from h2hgcn.errors import DataError, DataWarning

_ADDRESS = "https://raw.githubusercontent.com/HazyResearch/hgcn/master/data"

_CHECKSUMS = {
    "disease_lp.edges.csv": "b5b7e41bbfd28fc7f61590e5587622103ee9c3aa1b59911c74873a6f328dca07",
    "disease_lp.feats.npz": "b4a726b13598c036a75e1b49f08e92820553b972966ad950b8d4d5416eb339f8",
    "disease_lp.labels.npy": "8f2b26602764fbb785b93775d9f71194f1f36920e185af8bc5c31aea07dde858",
    "disease_nc.edges.csv": "08b2dcf00db1e6a8f491af5294dee98197f1251a63bc9190d05fb4e77507782e",
    "disease_nc.labels.npy": "70be7f91a854d924f3b7ac423615d75b1f9ee2506261c44113de27cc2caadd51",
}

_AIRPORT_HINT = (
    " (airport.npz with the arrays edges (k × 2), feats (n × 5) and labels_nc (n), converted from the pickled networkx"
    " graph airport.p of HGCN's repository)"
)


def disease_files(name: str) -> SourceFolder:
    files = [
        SourceFile(
            f"{name}.{part}", _CHECKSUMS.get(f"{name}.{part}"), f"{_ADDRESS}/{name}/{name}.{part}", optional=optional
        )
        for part, optional in (("edges.csv", False), ("labels.npy", False), ("feats.npz", name == "disease_nc"))
    ]
    return SourceFolder("hgcn", name, files)


def airport_files() -> SourceFolder:
    return SourceFolder("hgcn", "airport", [SourceFile("airport.npz")], hint=_AIRPORT_HINT)


def load_disease_file(name: str, root: str | Path | None = None) -> Data:
    """``disease_lp`` or ``disease_nc``. Where the features of the second cannot be had, structural ones stand in."""
    folder = disease_files(name).obtain(root)
    labels = load_arrays(folder / f"{name}.labels.npy").astype(np.int64)
    edges = _read_pairs(folder / f"{name}.edges.csv", len(labels))
    data = Data(y=torch.from_numpy(labels), edge_index=_undirected(edges, len(labels)), num_nodes=len(labels))
    features = folder / f"{name}.feats.npz"
    if features.is_file():
        data.x = torch.from_numpy(_load_sparse(features).toarray().astype(np.float32))
        return data
    data.x, data.feature_names = structural_features(data.edge_index, data.num_nodes)
    data.structural = True
    note = (
        f"{features.name} is not in {folder}: {name} has structural features instead (degree, one-hot degree, "
        "constant), and its figures cannot be compared with published ones"
    )
    warnings.warn(note, DataWarning, stacklevel=3)
    data.notes = [note]
    return data


def load_airport(root: str | Path | None = None) -> Data:
    """The airports with their five numbers. ``label_columns`` names the number that the labels were cut from: it has
    to be left out when labels are to be predicted, which ``task_features`` does.
    """
    path = airport_files().obtain(root) / "airport.npz"
    arrays = load_arrays(path)
    missing = {"edges", "feats", "labels_nc"} - set(arrays)
    if missing:
        raise DataError(f"{path} lacks the arrays {sorted(missing)}; it holds {sorted(arrays)}")
    features, labels = arrays["feats"], arrays["labels_nc"]
    data = Data(
        x=torch.from_numpy(features.astype(np.float32)),
        y=torch.from_numpy(labels.astype(np.int64)),
        edge_index=_undirected(arrays["edges"].astype(np.int64), len(features)),
        num_nodes=len(features),
    )
    if "node_ids" in arrays:
        data.node_ids = arrays["node_ids"]
    data.label_columns = [features.shape[1] - 1]
    data.append_structure = True
    return data


def _undirected(pairs: np.ndarray, size: int) -> torch.Tensor:
    edges = torch.from_numpy(np.ascontiguousarray(pairs.T))
    return coalesce(torch.cat([edges, edges.flip(0)], 1), num_nodes=size)


def _read_pairs(path: Path, size: int) -> np.ndarray:
    try:
        pairs = np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=2)
    except ValueError as error:
        raise DataError(f"{path}: {error}; put the original in its place") from error
    if pairs.shape[1] != 2 or pairs.min() < 0 or pairs.max() >= size:
        raise DataError(f"{path} is not a list of pairs of the nodes 0 to {size - 1}; put the original in its place")
    return pairs


def _load_sparse(path: Path) -> sp.csr_matrix:
    arrays = load_arrays(path)
    return sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), arrays["shape"])
