"""From tables of any length to a folder of arrays, block by block."""

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from h2hgcn.datasets.conventions import UNLABELLED
from h2hgcn.datasets.own.converted import FACTS, FORMAT, is_converted, stamp_of
from h2hgcn.datasets.own.edge_tables import EDGE_COLUMN_NAMES, end_columns, weight_column
from h2hgcn.datasets.own.node_features import is_long
from h2hgcn.datasets.own.node_labels import split_column
from h2hgcn.datasets.own.node_tables import ID_NAMES, id_column
from h2hgcn.datasets.own.streamed_edges import write_edges
from h2hgcn.datasets.own.streamed_ids import StreamedIds, all_ids
from h2hgcn.datasets.own.streams import TableStream, single_numbers
from h2hgcn.errors import DataError


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
