"""Graphs as folders of arrays that are mapped into memory, and how tables of any length become one."""

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.datasets.arrays import UNLABELLED
from h2hgcn.datasets.nodes import is_long, split_column
from h2hgcn.datasets.structural import structural_features
from h2hgcn.datasets.table_columns import (
    EDGE_COLUMN_NAMES,
    ID_NAMES,
    TableStream,
    end_columns,
    id_column,
    single_numbers,
    weight_column,
)
from h2hgcn.datasets.tables import Ids, integers_or_texts
from h2hgcn.errors import DataError
from h2hgcn.jit import compiled

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


Codes = NDArray[np.int64]


class StreamedIds:
    """Node ids, sorted, and the number of each."""

    def __init__(self, ids: Ids) -> None:
        self.ids = np.sort(ids)
        self._texts = pa.array(self.ids.tolist(), pa.string()) if self.ids.dtype.kind == "U" else None

    def numbers(self, column: Any, where: str) -> Codes:
        """The number of each id of a column; -1 for one that is not known."""
        values = checked_ids(column, where)
        if self._texts is not None:
            found = pc.fill_null(pc.index_in(values.cast(pa.string()), value_set=self._texts), -1)
            return found.to_numpy(zero_copy_only=False).astype(np.int64)
        given = integers_or_texts(values)
        if given.dtype.kind == "U":
            return np.full(len(given), -1, np.int64)
        places = np.searchsorted(self.ids, given).clip(max=len(self.ids) - 1)
        return np.where(self.ids[places] == given, places, -1)


def checked_ids(column: Any, where: str) -> Any:
    """A column of integers or texts, none of them missing."""
    if not (
        pa.types.is_integer(column.type) or pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ):
        raise DataError(f"{where}: node ids are of type {column.type}; write integers or texts")
    empty = pc.any(pc.equal(column, "")).as_py() if not pa.types.is_integer(column.type) else False
    if column.null_count or empty:
        raise DataError(f"{where}: a row has no node id; give every row one")
    return column


def all_ids(stream: TableStream, columns: tuple[int, int]) -> StreamedIds:
    """The ids that edges name, integers if all of them are written as such."""
    known: Any = None
    for block in stream.blocks():
        for column in columns:
            fresh = pc.unique(checked_ids(block.column(column), str(stream.path)))
            known = fresh if known is None else pc.unique(pa.concat_arrays([known, fresh]))
    if known is None or not len(known):
        raise DataError(f"{stream.path} has no rows; put data into it, or name another file")
    return StreamedIds(integers_or_texts(known))


# Numbers that are looked at together.
_BLOCK = 1 << 22


def write_edges(
    stream: TableStream, ends: tuple[int, int], weight: int | None, ids: StreamedIds, directed: bool, folder: Path
) -> list[str]:
    """Writes ``edge_index.npy``, and ``edge_weight.npy`` of a column ``weight``: sorted, without loops and repetitions,
    both directions of undirected edges; returns what is to be noted.
    """
    size = len(ids.ids)
    loops = _write_keys(stream, ends, weight, ids, directed, folder)
    keys, weights = _sorted_keys(folder, weight is not None)
    kept, differing = _keep_first(keys, weights)
    length = kept if directed else 2 * kept
    edges = np.lib.format.open_memmap(folder / "edge_index.npy", "w+", np.int64, (2, length))
    values = weights
    if weight is not None:
        values = np.lib.format.open_memmap(folder / "edge_weight.npy", "w+", np.float32, (length,))
    if directed:
        for part in _parts(kept):
            edges[0, part], edges[1, part] = np.divmod(keys[part], size)
        values[:kept] = weights[:kept]
    else:
        _fill_both_ways(keys[:kept], weights[:kept], size, edges, values)
    for scratch in folder.glob("*.scratch"):
        scratch.unlink()
    notes = [
        (loops, "self-loops were left out; every layer adds its own"),
        (len(keys) - kept, "repeated edges were left out"),
        (differing, "of the repeated edges had another weight than the first, which was kept"),
    ]
    return [f"{count} {what}" for count, what in notes if count]


def _write_keys(
    stream: TableStream, ends: tuple[int, int], weight: int | None, ids: StreamedIds, directed: bool, folder: Path
) -> int:
    """Edges as one number each, and their weights, in files; returns the number of loops, which are left out."""
    loops = 0
    with (folder / "keys.scratch").open("wb") as keys, (folder / "weights.scratch").open("wb") as weights:
        for block in stream.blocks():
            first, second = (ids.numbers(block.column(column), str(stream.path)) for column in ends)
            no_loop = first != second
            loops += int((~no_loop).sum())
            if not directed:
                first, second = np.minimum(first, second), np.maximum(first, second)
            (first * len(ids.ids) + second)[no_loop].tofile(keys)
            if weight is not None:
                _weights(block.column(weight), stream, weight)[no_loop].tofile(weights)
    return loops


def _weights(column: Any, stream: TableStream, number: int) -> NDArray[np.float32]:
    where = f"{stream.path}, column {stream.columns[number]!r}"
    weights = single_numbers(column, where, "give every edge a number, or take no weights (--weights none)")
    if (weights < 0).any():
        raise DataError(f"{where}: the weight {weights.min():g} is negative; fix it or leave it out")
    return weights


def _sorted_keys(folder: Path, weighted: bool) -> tuple[Codes, NDArray[np.float32]]:
    keys, weights = (
        _mapped_part(folder / "keys.scratch", np.int64),
        _mapped_part(folder / "weights.scratch", np.float32),
    )
    if not weighted:
        keys.sort()
        return keys, weights
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_weights = (folder / f"sorted-{name}.scratch" for name in ("keys", "weights"))
    with sorted_keys.open("wb") as key_file, sorted_weights.open("wb") as weight_file:
        for part in _parts(len(order)):
            keys[order[part]].tofile(key_file)
            weights[order[part]].tofile(weight_file)
    return _mapped_part(sorted_keys, np.int64), _mapped_part(sorted_weights, np.float32)


def _mapped_part(path: Path, dtype: Any) -> Any:
    return np.memmap(path, dtype, "r+") if path.stat().st_size else np.empty(0, dtype)


def _parts(length: int) -> Iterator[slice]:
    return (slice(first, min(first + _BLOCK, length)) for first in range(0, length, _BLOCK))


@compiled
def _keep_first(keys: Any, weights: Any) -> tuple[int, int]:
    """Moves the first of equal numbers, and its weight, to the front; returns how many these are, and how many others
    had another weight.
    """
    count = differing = 0
    for k in range(len(keys)):
        if k == 0 or keys[k] != keys[count - 1]:
            keys[count] = keys[k]
            if len(weights):
                weights[count] = weights[k]
            count += 1
        elif len(weights) and weights[k] != weights[count - 1]:
            differing += 1
    return count, differing


@compiled
def _fill_both_ways(keys: Any, weights: Any, size: int, edges: Any, values: Any) -> None:
    """A row's smaller neighbours come by before its larger ones, both in order, so that rows are sorted."""
    places = np.zeros(size + 1, np.int64)
    for key in keys:
        places[key // size + 1] += 1
        places[key % size + 1] += 1
    for node in range(size):
        places[node + 1] += places[node]
    for k in range(len(keys)):
        low, high = keys[k] // size, keys[k] % size
        for row, other in ((low, high), (high, low)):
            edges[0, places[row]], edges[1, places[row]] = row, other
            if len(weights):
                values[places[row]] = weights[k]
            places[row] += 1


def convert_graph(
    edges: str | Path,
    out: str | Path,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    weights: str | bool | None = None,
    directed: bool = False,
    *,
    columns: tuple[str, str] | None = None,
    header: bool | None = None,
) -> Path:
    """Turns a delimited or Parquet file of edges, and such files of features and labels with a node id in each row,
    into the folder ``out``, which ``load_graph`` maps into memory and whose ``weights``, ``columns`` and ``header``
    these are. Returns the folder.

    Memory holds the node ids and a block of rows, whatever the length of the files, and for edges with weights a number
    each; edges are sorted on disk.
    """
    out = Path(out)
    if out.exists() and not is_converted(out) and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out} is there and not a converted graph; choose another folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.{uuid.uuid4().hex}.part")
    part.mkdir()
    try:
        facts = _convert(Path(edges), part, features, labels, weights, directed, columns, header)
        given = [Path(path) for path in (edges, features, labels) if path is not None]
        facts["sources"] = [{"path": str(path.absolute()), **stamp_of(path)} for path in given]
        facts["arrays"] = {path.name: stamp_of(path) for path in sorted(part.glob("*.npy"))}
        (part / FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        part.rename(out)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return out


def _convert(
    edges: Path,
    folder: Path,
    features: Any,
    labels: Any,
    weights: str | bool | None,
    directed: bool,
    columns: Any,
    header: bool | None,
) -> dict[str, Any]:
    stream = TableStream(edges, EDGE_COLUMN_NAMES, header)
    if len(stream.columns) < 2:
        raise DataError(f"{edges} has one column, but an edge needs two nodes; delimit them by a comma or a tab")
    ends = (
        end_columns(stream) if columns is None else (stream.column_number(columns[0]), stream.column_number(columns[1]))
    )
    ids = all_ids(stream, ends)
    weight = weight_column(stream, weights, {*ends})
    notes = [] if weight is None or weights else [f"the column {stream.columns[weight]!r} is taken for edge weights"]
    notes += write_edges(stream, ends, weight, ids, directed, folder)
    np.save(folder / "node_ids.npy", ids.ids)
    facts: dict[str, Any] = {
        "format": FORMAT, "name": edges.name.split(".")[0], "num_nodes": len(ids.ids), "directed": directed,
        "both_degrees": directed, "notes": notes,
    }  # fmt: skip
    if features is not None:
        facts["feature_names"] = _write_features(Path(features), ids, folder)
    if labels is not None:
        facts["label_names"] = _write_labels(Path(labels), ids, folder)
    return facts


def _write_features(path: Path, ids: StreamedIds, folder: Path) -> list[str]:
    """Writes ``x.npy``, a row for each node, in single precision; returns the names of its columns."""
    stream = TableStream(path, ID_NAMES)
    key = id_column(stream.columns)
    names = [name for number, name in enumerate(stream.columns) if number != key]
    if not names:
        raise DataError(f"{path} has ids and no features; add columns of numbers")
    if is_long(names):
        raise DataError(f"{path} has sparse features (id, feature, value), which cannot be converted; use load_graph")
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (len(ids.ids), len(names)))
    seen = np.zeros(len(ids.ids), dtype=bool)
    for block in stream.blocks():
        rows = _rows(block.column(key), ids, seen, path, "features")
        for place, name in enumerate(names):
            x[rows, place] = single_numbers(
                block.column(stream.columns.index(name)), f"{path}, column {name!r}", "features are numbers"
            )
    if not seen.all():
        missing = ids.ids[~seen]
        raise DataError(f"{path}: node {missing[0]} and {len(missing) - 1} others have no row; give each node features")
    x.flush()
    return names


def _write_labels(path: Path, ids: StreamedIds, folder: Path) -> list[str]:
    """Writes ``y.npy``; returns the names of the classes, sorted."""
    stream = TableStream(path, ID_NAMES | {"label", "class", "y"})
    if split_column([name for k, name in enumerate(stream.columns) if k != id_column(stream.columns)]) is not None:
        raise DataError(f"{path} has a column 'split', which cannot be converted; leave it out, or use load_graph")
    if len(stream.columns) != 2:
        raise DataError(f"{path} has {len(stream.columns)} columns; labels are read from two: a node id and a label")
    key = id_column(stream.columns)
    texts = np.full(len(ids.ids), None, dtype=object)
    seen = np.zeros(len(ids.ids), dtype=bool)
    for block in stream.blocks():
        rows = _rows(block.column(key), ids, seen, path, "a label")
        texts[rows] = block.column(1 - key).cast(pa.string()).to_numpy(zero_copy_only=False)
    names = sorted({text for text in texts if text}, key=_class_order)
    number = {name: k for k, name in enumerate(names)}
    np.save(folder / "y.npy", np.array([number.get(text, UNLABELLED) for text in texts], np.int64))
    return names


def _class_order(name: str) -> tuple[bool, int, str]:
    """Numbers by size, then words."""
    whole = name.isdecimal()
    return not whole, int(name) if whole else 0, name


def _rows(column: Any, ids: StreamedIds, seen: Any, path: Path, what: str) -> Any:
    rows = ids.numbers(column, str(path))
    if (rows < 0).any():
        name = column[int(np.flatnonzero(rows < 0)[0])].as_py()
        raise DataError(f"{path}: node {name} has {what}, but no edge; drop its row, or give it an edge")
    if len(np.unique(rows)) < len(rows) or seen[rows].any():
        raise DataError(f"{path}: a node has two rows; keep one of them")
    seen[rows] = True
    return rows
