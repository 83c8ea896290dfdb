"""Graphs as folders of arrays that are mapped into memory."""

import glob
import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.datasets.arrays import MASKS
from h2hgcn.datasets.structural import structural_features
from h2hgcn.errors import DataError

FACTS = "graph.json"
FORMAT = 1

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
    facts = _read_facts(folder)
    for name, stamp in facts["arrays"].items():
        _check(folder / name, stamp, f"{folder} was damaged or changed; {_AGAIN}")
    for stamp in facts["sources"]:
        if Path(stamp["path"]).is_file():  # a device would be read without end
            _check(Path(stamp["path"]), stamp, f"it has changed since it was converted to {folder}; {_AGAIN}")
    data = Data(num_nodes=facts["num_nodes"])
    data.node_ids = np.load(folder / "node_ids.npy")
    data.edge_index = _mapped(folder / "edge_index.npy")
    for name in ("edge_weight", "x", "y", *MASKS):
        if f"{name}.npy" in facts["arrays"]:
            data[name] = _mapped(folder / f"{name}.npy")
    if "x" not in data:
        data.x, data.feature_names = structural_features(
            data.edge_index, data.num_nodes, facts.get("both_degrees", False)
        )
        data.structural = True
    for name in ("name", "directed", "notes", "feature_names", "label_names"):
        if facts.get(name) is not None:
            data[name] = facts[name]
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
        "both_degrees": data.directed, "notes": data.notes,
        **{name: data[name] for name in ("feature_names", "label_names") if name in data},
        "sources": [{"path": str(path.absolute()), **_stamp_of(path)} for path in sources],
        "arrays": {path.name: _stamp_of(path) for path in sorted(folder.glob("*.npy"))},
    }  # fmt: skip
    (folder / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _stamp_of(path: Path) -> dict[str, Any]:
    """What tells whether a file is still the same."""
    status = path.stat()
    return {"bytes": status.st_size, "changed": status.st_mtime_ns, "sha256": _sha256(path)}


def _check(path: Path, stamp: dict[str, Any], complaint: str) -> None:
    """A file that has kept its size and time is taken for the same; others are read through."""
    if not path.is_file():
        raise DataError(f"{path} is not there; {complaint}")
    status = path.stat()
    if (status.st_size, status.st_mtime_ns) == (stamp["bytes"], stamp["changed"]):
        return
    if status.st_size != stamp["bytes"] or _sha256(path) != stamp["sha256"]:
        raise DataError(f"{path}: {complaint}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_facts(folder: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise DataError(f"{folder} is of another version of h2hgcn (format {facts['format']}); {_AGAIN}")
        stamps = [*facts["arrays"].values(), *facts["sources"]]
        if not facts["arrays"].keys() <= _ARRAYS or not all({"bytes", "changed", "sha256"} <= set(s) for s in stamps):
            raise KeyError("arrays")
        if not isinstance(facts["num_nodes"], int) or not all(isinstance(s["path"], str) for s in facts["sources"]):
            raise TypeError("sources")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{folder / FACTS} is damaged ({error!r}); {_AGAIN}") from None
    return facts


def _mapped(path: Path) -> torch.Tensor:
    # copy-on-write, since PyTorch knows no arrays that must not be written to
    array: NDArray[Any] = np.load(path, mmap_mode="c")
    return torch.from_numpy(array)
