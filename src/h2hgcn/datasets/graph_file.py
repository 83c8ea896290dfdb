"""One graph in one file: what a run was trained on, so that it can be used wherever it is taken."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from h2hgcn.errors import DataError
from h2hgcn.tensor_files import Weights, read_tensors, write_tensors

_SPARSE = ".sparse."
_TEXTS = ".texts."


def save_graph(path: Path, graph: Data) -> None:
    """Writes all of a graph's attributes that are tensors, arrays, numbers, texts, or lists of the last two."""
    tensors: Weights = {}
    values: dict[str, Any] = {}
    for name, value in graph.to_dict().items():
        if isinstance(value, Tensor) and value.layout != torch.strided:
            tensors |= _sparse_parts(name, value.to_sparse_coo().coalesce())
        elif isinstance(value, Tensor):
            tensors[name] = value
        elif isinstance(value, np.ndarray):
            tensors |= _array_parts(name, value)
        elif _is_plain(value):
            values[name] = value
    write_tensors(path, tensors, {"graph": values, "arrays": _array_names(graph)})


def load_saved_graph(path: Path) -> Data:
    """What ``save_graph`` wrote."""
    tensors, about = read_tensors(path)
    try:
        values = dict(about["graph"])
        arrays = set(about["arrays"])
    except KeyError:
        raise DataError(f"{path} holds no graph") from None
    for name in tensors:
        if _TEXTS in name or _SPARSE in name:
            base, kind, _ = name.rpartition(_TEXTS) if _TEXTS in name else name.rpartition(_SPARSE)
            values[base] = _texts_from(base, tensors) if kind == _TEXTS else _sparse_from(base, tensors)
        else:
            values[name] = tensors[name].numpy() if name in arrays else tensors[name]
    return Data(**values)


def fingerprint(data: Any) -> str:
    """A hash of what a graph or a collection holds, to tell whether it is still the same."""
    digest = hashlib.sha256()
    if hasattr(data, "to_dict"):
        for name, value in sorted(data.to_dict().items()):
            if isinstance(value, Tensor):
                parts = (
                    [value] if value.layout == torch.strided else _sparse_parts(name, value.to_sparse_coo()).values()
                )
                digest.update(name.encode())
                for part in parts:
                    digest.update(str((part.dtype, tuple(part.shape))).encode())
                    digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    else:
        digest.update(str((len(data), data.num_node_features)).encode())
        digest.update(np.asarray([int(label) for label in data.y], dtype=np.int64).tobytes())
        for graph in (data[0], data[len(data) - 1]):
            digest.update(graph.edge_index.numpy().tobytes())
    return digest.hexdigest()


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, str | bool | int | float)


def _array_names(graph: Data) -> list[str]:
    return [name for name, value in graph.to_dict().items() if isinstance(value, np.ndarray)]


def _array_parts(name: str, array: NDArray[Any]) -> Weights:
    if array.dtype.kind == "U":
        encoded = [text.encode() for text in array.tolist()]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        letters = np.frombuffer(b"".join(encoded), dtype=np.uint8).copy()
        return {
            f"{name}{_TEXTS}letters": torch.from_numpy(letters),
            f"{name}{_TEXTS}lengths": torch.from_numpy(lengths),
        }
    return {name: torch.from_numpy(np.ascontiguousarray(array))}


def _texts_from(name: str, tensors: Weights) -> NDArray[np.str_]:
    letters = tensors[f"{name}{_TEXTS}letters"].numpy().tobytes()
    ends = tensors[f"{name}{_TEXTS}lengths"].numpy().cumsum().tolist()
    return np.asarray([letters[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)], dtype=np.str_)


def _sparse_parts(name: str, matrix: Tensor) -> Weights:
    matrix = matrix.coalesce()
    shape = torch.tensor(matrix.shape)
    parts = {"indices": matrix.indices(), "values": matrix.values(), "shape": shape}
    return {f"{name}{_SPARSE}{part}": value for part, value in parts.items()}


def _sparse_from(name: str, tensors: Weights) -> Tensor:
    indices, values, shape = (tensors[f"{name}{_SPARSE}{part}"] for part in ("indices", "values", "shape"))
    return torch.sparse_coo_tensor(indices, values, shape.tolist(), is_coalesced=True, check_invariants=True)
