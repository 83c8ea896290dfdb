"""A graph as a folder of arrays that are mapped into memory, never read whole."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.datasets.structural import structural_features
from h2hgcn.errors import DataError

FACTS = "graph.json"
FORMAT = 1

_AGAIN = "run h2hgcn convert again"


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
        if Path(stamp["path"]).exists():
            _check(Path(stamp["path"]), stamp, f"it has changed since it was converted to {folder}; {_AGAIN}")
    data = Data(num_nodes=facts["num_nodes"])
    data.node_ids = np.load(folder / "node_ids.npy")
    data.edge_index = _mapped(folder / "edge_index.npy")
    for name in ("edge_weight", "x", "y"):
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


def stamp_of(path: Path) -> dict[str, Any]:
    """What tells whether a file is still the same."""
    status = path.stat()
    return {"bytes": status.st_size, "changed": status.st_mtime_ns, "sha256": _sha256(path)}


def _check(path: Path, stamp: dict[str, Any], complaint: str) -> None:
    """A file that has kept its size and time is taken for the same; others are read through."""
    if not path.exists():
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
        if not {"arrays", "sources", "num_nodes"} <= facts.keys():
            raise KeyError(FACTS)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / FACTS} is damaged ({error!r}); {_AGAIN}") from None
    return facts


def _mapped(path: Path) -> torch.Tensor:
    # copy-on-write, since PyTorch knows no arrays that must not be written to
    array: NDArray[Any] = np.load(path, mmap_mode="c")
    return torch.from_numpy(array)
