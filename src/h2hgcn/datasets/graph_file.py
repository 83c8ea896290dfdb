"""One graph in one file: what a run was trained on, so that it can be used wherever it is taken."""

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from h2hgcn.datasets.collection import GraphCollection, GraphList
from h2hgcn.datasets.on_disk import is_converted, load_converted
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.files import Weights, read_tensors, write_tensors

# The attribute that names the folder of a converted graph, and stands for all others in a saved one.
FOLDER = "folder"


def is_graph(data: Any) -> bool:
    """Whether these are one graph; a collection may have an ``edge_index``, too, that of all its graphs."""
    return isinstance(data, Data)


def save_graph(path: Path, graph: Data) -> None:
    """Writes all of a graph's attributes that are tensors, arrays of numbers or texts, or what JSON can hold; a
    warning names others. Of a converted graph, which may be larger than memory, only its folder is named.
    """
    if FOLDER in graph:
        write_tensors(path, {}, {FOLDER: graph[FOLDER]})
        return
    tensors, about, strange = _parts(graph)
    if strange:
        warnings.warn(f"{path} goes without the graph's {', '.join(strange)}, which it cannot hold", DataWarning, 2)
    write_tensors(path, tensors, about)


def keep_graph(path: Path, graph: Data) -> None:
    """``save_graph``, unless the file holds the graph already."""
    try:
        kept = fingerprint(load_saved_graph(path)) == fingerprint(graph)
    except DataError:
        kept = False
    if not kept:
        save_graph(path, graph)


def load_saved_graph(path: Path, advice: str = "restore it from a copy") -> Data:
    """What ``save_graph`` wrote. ``advice`` is what to do if the file is damaged."""
    tensors, about = read_tensors(path, advice)
    if FOLDER in about:
        return _converted(path, about[FOLDER])
    try:
        values = {name: _READERS[kind](name, tensors) for name, kind in about["kinds"].items()}
        return Data(**about["values"], **values)
    except (KeyError, TypeError, AttributeError):
        raise DataError(f"{path} holds no graph, or one of another version of h2hgcn; {advice}") from None


def _converted(path: Path, folder: str) -> Data:
    if not is_converted(folder):
        raise DataError(f"{path} names the converted graph {folder}, which is not there; put it back")
    return load_converted(Path(folder))


def fingerprint(data: Any) -> str:
    """A hash of what a graph or a collection holds, to tell whether it is still the same."""
    digest = hashlib.sha256()
    if is_graph(data):
        _add_graph(digest, data)
        return digest.hexdigest()
    labels = None if data.y is None else [int(label) for label in data.y]
    digest.update(str((len(data), data.num_node_features, labels)).encode())
    if isinstance(data, GraphList) and data.graph_ids is not None:
        digest.update(json.dumps([data.graph_ids.tolist(), data.label_names, data.feature_names]).encode())
    contents = data.checksum() if isinstance(data, GraphCollection) else None
    if contents is None:
        for k in range(len(data)):
            _add_graph(digest, data[k])
    else:
        digest.update(str((contents, data._indices)).encode())
    return digest.hexdigest()


def _add_graph(digest: Any, graph: Data) -> None:
    tensors, about, _ = _parts(graph)
    digest.update(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(str((name, tensor.dtype, tuple(tensor.shape))).encode())
        plain = tensor.detach().cpu().contiguous()  # no copy of what is mapped from a file
        if plain.numel() <= 1:  # whose strides may be anything
            plain = plain.clone(memory_format=torch.contiguous_format)
        digest.update(plain.view(-1).view(torch.uint8).numpy())


def _parts(graph: Data) -> tuple[Weights, dict[str, Any], list[str]]:
    """A graph as tensors and plain values, and the names of what is neither."""
    tensors: Weights = {}
    kinds, values, strange = {}, {}, []
    for name, value in graph.to_dict().items():
        if name == FOLDER:  # where a graph lies says nothing of what it holds
            continue
        kind = _kind(value)
        if kind == "value":
            values[name] = value
        elif kind is None:
            strange.append(name)
        else:
            kinds[name] = kind
            tensors |= _WRITERS[kind](name, value)
    return tensors, {"values": values, "kinds": kinds}, strange


def _kind(value: Any) -> str | None:
    if isinstance(value, Tensor):
        return "tensor" if value.layout == torch.strided else "sparse"
    if isinstance(value, np.ndarray):
        return {"U": "texts", "b": "array", "i": "array", "u": "array", "f": "array"}.get(value.dtype.kind)
    return "value" if _is_plain(value) else None


def _is_plain(value: Any) -> bool:
    """Whether JSON gives it back."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | bool | int | float)


def _texts(name: str, array: NDArray[np.str_]) -> Weights:
    encoded = [text.encode(errors="surrogatepass") for text in array.ravel().tolist()]
    return {
        f"{name}.letters": torch.from_numpy(np.frombuffer(b"".join(encoded), dtype=np.uint8).copy()),
        f"{name}.lengths": torch.tensor([len(text) for text in encoded], dtype=torch.long).reshape(array.shape),
    }


def _texts_from(name: str, tensors: Weights) -> NDArray[np.str_]:
    letters, lengths = tensors[f"{name}.letters"].numpy().tobytes(), tensors[f"{name}.lengths"].numpy()
    ends = lengths.ravel().cumsum().tolist()
    texts = [letters[a:b].decode(errors="surrogatepass") for a, b in zip([0, *ends], ends, strict=False)]
    return np.asarray(texts, dtype=np.str_).reshape(lengths.shape)


def _sparse(name: str, matrix: Tensor) -> Weights:
    coo = matrix.to_sparse_coo().coalesce()
    parts = {"indices": coo.indices(), "values": coo.values(), "shape": torch.tensor(coo.shape)}
    return {f"{name}.{part}": value for part, value in parts.items()}


def _sparse_from(name: str, tensors: Weights) -> Tensor:
    indices, values, shape = (tensors[f"{name}.{part}"] for part in ("indices", "values", "shape"))
    return torch.sparse_coo_tensor(indices, values, shape.tolist(), is_coalesced=True, check_invariants=True)


_WRITERS: dict[str, Any] = {
    "tensor": lambda name, value: {name: value},
    "array": lambda name, value: {name: torch.from_numpy(np.array(value, dtype=value.dtype.newbyteorder("=")))},
    "texts": _texts,
    "sparse": _sparse,
}
_READERS: dict[str, Any] = {
    "tensor": lambda name, tensors: tensors[name],
    "array": lambda name, tensors: tensors[name].numpy(),
    "texts": _texts_from,
    "sparse": _sparse_from,
}
