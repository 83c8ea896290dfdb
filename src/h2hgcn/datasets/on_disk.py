"""Graphs on disk: folders of arrays that are mapped into memory, and one file with the graph of a run."""

import glob
import hashlib
import json
import shutil
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor
from torch_geometric.data import Data

from h2hgcn.datasets.arrays import MASKS
from h2hgcn.datasets.collection import GraphCollection, GraphList
from h2hgcn.datasets.nodes import add_structural_features
from h2hgcn.datasets.registry import sha256_of
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.files import Weights, read_tensors, stamped, unstamped, write_tensors

FACTS = "graph.json"
FORMAT = 3

_AGAIN = "run h2hgcn convert again"
_LOCK = "lock"
_ARRAYS = {f"{name}.npy" for name in ("node_ids", "edge_index", "edge_weight", "x", "y", *MASKS)}


def is_converted(path: Any) -> bool:
    """Whether this is the folder of a converted graph."""
    return isinstance(path, str | Path) and (Path(path) / FACTS).is_file()


def load_converted(folder: Path) -> Data:
    """The graph of a folder, its arrays mapped: a page is read when it is looked at.

    Raises if an array, or a source file that is still there, is not what it was when it was converted.
    """
    if not is_converted(folder):
        raise DataError(f"{folder} is a folder; name a file")
    facts = _read_facts(folder)
    for name, stamp in facts["arrays"].items():
        _check(folder / name, stamp, f"{folder} was damaged or changed; {_AGAIN}")
    for stamp in facts["sources"]:
        if Path(stamp["path"]).is_file():  # a device would be read without end
            _check(Path(stamp["path"]), stamp, f"it has changed since it was converted to {folder}; {_AGAIN}")
    data = Data(num_nodes=facts["num_nodes"])
    data.node_ids = np.load(folder / "node_ids.npy")
    for name in ("edge_index", "edge_weight", "x", "y", *MASKS):
        if f"{name}.npy" in facts["arrays"]:  # copy-on-write, since PyTorch knows no arrays that must not be written to
            data[name] = torch.from_numpy(np.load(folder / f"{name}.npy", mmap_mode="c"))
    for name in ("name", "directed", "notes", "feature_names", "label_names"):
        if facts.get(name) is not None:
            data[name] = facts[name]
    if "x" not in data:
        add_structural_features(data)
    data.folder = str(folder.absolute())
    return data


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder that takes the place of ``out`` when all went well; else nothing is left of it.

    What a killed process left is cleaned up first: its part is removed, and a folder that it had moved aside restored.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    for aside in _remains(out, "old"):
        if not out.exists():
            aside.rename(out)
        else:
            shutil.rmtree(aside, ignore_errors=True)
    if out.exists() and not is_converted(out) and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out} exists and is not a converted graph; choose another folder")
    for abandoned in _remains(out, "part"):
        with suppress(Timeout, OSError), FileLock(abandoned / _LOCK, timeout=0):
            shutil.rmtree(abandoned)
    part, aside = (out.with_name(f".{out.name}.{uuid.uuid4().hex}.{kind}") for kind in ("part", "old"))
    part.mkdir()
    try:
        with FileLock(part / _LOCK):
            yield part
        (part / _LOCK).unlink(missing_ok=True)
        if out.exists():
            out.rename(aside)
        part.rename(out)
        shutil.rmtree(aside, ignore_errors=True)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _remains(out: Path, kind: str) -> list[Path]:
    return sorted(out.parent.glob(f".{glob.escape(out.name)}.*.{kind}"))


def save_converted(folder: Path, data: Data, sources: Sequence[Path]) -> None:
    """Completes a folder that has the large arrays of a graph already; ``sources`` are the files it was made from."""
    np.save(folder / "node_ids.npy", data.node_ids)
    for name in ("edge_index", "edge_weight", "x", "y", *MASKS):
        if data.get(name) is not None and not (folder / f"{name}.npy").exists():
            np.save(folder / f"{name}.npy", data[name].numpy())
    for scratch in folder.glob("*.scratch"):
        scratch.unlink()
    facts = {
        "format": FORMAT, "name": data.name, "num_nodes": data.num_nodes, "directed": data.directed,
        "notes": data.notes,
        **{name: data[name] for name in ("feature_names", "label_names") if name in data},
        "sources": [{"path": str(path.absolute()), **_stamp_of(path)} for path in sources],
        "arrays": {path.name: _stamp_of(path) for path in sorted(folder.glob("*.npy"))},
    }  # fmt: skip
    (folder / FACTS).write_text(json.dumps(stamped(facts), indent=2) + "\n", encoding="utf-8")


def _stamp_of(path: Path) -> dict[str, Any]:
    """What tells whether a file is still the same."""
    status = path.stat()
    return {"bytes": status.st_size, "changed": status.st_mtime_ns, "sha256": sha256_of(path)}


def _check(path: Path, stamp: dict[str, Any], complaint: str) -> None:
    """A file that has kept its size and time is taken for the same; others are read through."""
    if not path.is_file():
        raise DataError(f"{path} is not there; {complaint}")
    status = path.stat()
    if (status.st_size, status.st_mtime_ns) == (stamp["bytes"], stamp["changed"]):
        return
    if status.st_size != stamp["bytes"] or sha256_of(path) != stamp["sha256"]:
        raise DataError(f"{path}: {complaint}")


def _read_facts(folder: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise DataError(f"{folder} is of another version of h2hgcn (format {facts['format']}); {_AGAIN}")
        facts = unstamped(facts)
        stamps = [*facts["arrays"].values(), *facts["sources"]]
        if not facts["arrays"].keys() <= _ARRAYS or not all({"bytes", "changed", "sha256"} <= set(s) for s in stamps):
            raise KeyError("arrays")
        if not isinstance(facts["num_nodes"], int) or not all(isinstance(s["path"], str) for s in facts["sources"]):
            raise TypeError("sources")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{folder / FACTS} is damaged ({error!r}); {_AGAIN}") from None
    return facts


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
    tensors, about = _parts(graph)
    strange = [name for name in graph.to_dict() if name not in about["values"] and name not in about["kinds"]]
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
        if not is_converted(about[FOLDER]):
            raise DataError(f"{path} names the converted graph {about[FOLDER]}, which is not there; put it back")
        return load_converted(Path(about[FOLDER]))
    try:
        values = {name: _restored(name, kind, tensors) for name, kind in about["kinds"].items()}
        return Data(**about["values"], **values)
    except (KeyError, TypeError, AttributeError):
        raise DataError(f"{path} holds no graph, or one of another version of h2hgcn; {advice}") from None


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
    tensors, about = _parts(graph)
    digest.update(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(str((name, tensor.dtype, tuple(tensor.shape))).encode())
        plain = tensor.detach().cpu().contiguous()  # no copy of what is mapped from a file
        if plain.numel() <= 1:  # whose strides may be anything
            plain = plain.clone(memory_format=torch.contiguous_format)
        digest.update(plain.view(-1).view(torch.uint8).numpy())


def _parts(graph: Data) -> tuple[Weights, dict[str, Any]]:
    """A graph as tensors and plain values; what is neither is left out."""
    tensors: Weights = {}
    kinds, values = {}, {}
    for name, value in graph.to_dict().items():
        if name == FOLDER:  # where a graph lies says nothing of what it holds
            continue
        if isinstance(value, Tensor) and value.layout == torch.strided:
            kinds[name] = "tensor"
            tensors[name] = value
        elif isinstance(value, Tensor):
            kinds[name] = "sparse"
            coo = value.to_sparse_coo().coalesce()
            parts = {"indices": coo.indices(), "values": coo.values(), "shape": torch.tensor(coo.shape)}
            tensors |= {f"{name}.{part}": tensor for part, tensor in parts.items()}
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            kinds[name] = "array"
            tensors[name] = torch.from_numpy(np.array(value, dtype=value.dtype.newbyteorder("=")))
        elif isinstance(value, np.ndarray) and value.dtype.kind == "U":
            kinds[name] = "texts"
            encoded = [text.encode(errors="surrogatepass") for text in value.ravel().tolist()]
            tensors[f"{name}.letters"] = torch.from_numpy(np.frombuffer(b"".join(encoded), dtype=np.uint8).copy())
            tensors[f"{name}.lengths"] = torch.tensor(list(map(len, encoded)), dtype=torch.long).reshape(value.shape)
        elif _is_plain(value):
            values[name] = value
    return tensors, {"values": values, "kinds": kinds}


def _restored(name: str, kind: str, tensors: Weights) -> Any:
    """An attribute of a kind that ``_parts`` wrote."""
    if kind == "texts":
        letters, lengths = tensors[f"{name}.letters"].numpy().tobytes(), tensors[f"{name}.lengths"].numpy()
        ends = lengths.ravel().cumsum().tolist()
        texts = [letters[a:b].decode(errors="surrogatepass") for a, b in zip([0, *ends], ends, strict=False)]
        return np.asarray(texts, dtype=np.str_).reshape(lengths.shape)
    if kind == "sparse":
        indices, values, shape = (tensors[f"{name}.{part}"] for part in ("indices", "values", "shape"))
        return torch.sparse_coo_tensor(indices, values, shape.tolist(), is_coalesced=True, check_invariants=True)
    if kind not in ("tensor", "array"):
        raise KeyError(kind)
    return tensors[name] if kind == "tensor" else tensors[name].numpy()


def _is_plain(value: Any) -> bool:
    """Whether JSON gives it back."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | bool | int | float)
