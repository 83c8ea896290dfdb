"""Features and labels of a person's nodes, out of the files and objects they come in, in the order of the nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.conventions import UNLABELLED
from h2hgcn.datasets.matrices import holds_matrix, load_matrix, whole_matrix
from h2hgcn.datasets.own.tables import FileTable, Ids, check_is_file, read_table, shown
from h2hgcn.errors import DataError

Unlinked = Literal["error", "keep", "drop"]

_ID_NAMES = frozenset({"id", "ids", "node", "node_id", "nodeid", "name"})
_LABEL_NAMES = frozenset({"label", "labels", "y", "class", "category", "target"})


@dataclass
class NodeValues:
    """Values of nodes: in rows that belong to ``ids``, or, without ids, to the nodes 0, 1, 2, ..."""

    values: Any
    origin: str
    where: Callable[[int], str]
    ids: Ids | None = None
    names: list[str] | None = None


def read_features(source: Any, known: Ids | None = None) -> NodeValues:
    """Numbers for nodes: a file with an id and a number in every other column, an array, or a mapping by id.

    ``known`` are the ids of the edges, by which a header of unknown words is told from a row.
    """
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        check_is_file(path)
        if path.suffix.lower() in (".npy", ".npz"):
            return _rows(_load_numbers(path), str(path))
        file = _told_by_ids(read_table(path, known_names=_ID_NAMES), known)
        column = _id_column(file.columns)
        others = [k for k in range(len(file.columns)) if k != column]
        if not others:
            raise DataError(
                f"{path} has the column {file.columns[0]!r} only; features need an id and numbers beside it"
            )
        values = np.stack([file.numbers(k).astype(np.float32) for k in others], axis=1)
        return NodeValues(values, str(path), file.where, file.ids(column), [file.columns[k] for k in others])
    if isinstance(source, Mapping):
        ids = list(source)
        rows = [_numbers_of(node, source[node]) for node in ids]
        if len({len(row) for row in rows}) > 1:
            raise DataError("the features are of different length; every node needs the same number")
        return _checked(
            NodeValues(np.stack(rows), "the features", lambda row: f"the features of {ids[row]!r}", np.asarray(ids))
        )
    return _rows(source, "the features")


def read_labels(source: Any, known: Ids | None = None) -> NodeValues:
    """Classes of nodes: a file with an id and a label, an array, or a mapping by id; ``known`` as for features."""
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        check_is_file(path)
        if path.suffix.lower() in (".npy", ".npz"):
            return NodeValues(_load_labels(path), str(path), lambda row: f"{path}, row {row}")
        file = _told_by_ids(read_table(path, known_names=_ID_NAMES | _LABEL_NAMES, text_columns=2), known)
        column = _id_column(file.columns)
        names = [k for k, name in enumerate(file.columns) if name.lower() in _LABEL_NAMES and k != column]
        others = names or [k for k in range(len(file.columns)) if k != column]
        if len(others) != 1:
            raise DataError(
                f"{path} has the columns {', '.join(file.columns)}; labels need an id and one column, called "
                "'label' if there are more"
            )
        labels = file.table.column(others[0]).to_pylist()
        return NodeValues([_label(value) for value in labels], str(path), file.where, file.ids(column))
    if isinstance(source, Mapping):
        ids = list(source)
        return NodeValues(
            [_label(v) for v in source.values()],
            "the labels",
            lambda row: f"the label of {ids[row]!r}",
            np.asarray(ids),
        )
    array = np.asarray(source.cpu() if hasattr(source, "cpu") else source)
    return NodeValues(_label_list(array, "the labels"), "the labels", lambda row: f"the labels, row {row}")


def _told_by_ids(file: FileTable, known: Ids | None) -> FileTable:
    """A first line that names no node, above one that does, is a header."""
    if known is None or file.has_header or len(file.table) < 2:
        return file
    nodes = set(map(str, known.tolist()))
    first, second = (str(value) for value in file.ids(0)[:2].tolist())
    return file.with_header() if first not in nodes and second in nodes else file


def aligned(values: NodeValues, nodes: Ids, what: str, unlinked: Unlinked, notes: list[str]) -> NDArray[np.int64]:
    """For every node, the row of ``values`` that is its own, or -1. Rows of nodes that are not there are noted."""
    if values.ids is None:
        return _by_number(values, nodes, what)
    ids = values.ids.astype(np.str_) if nodes.dtype.kind == "U" else values.ids
    if ids.dtype.kind != nodes.dtype.kind:
        raise DataError(
            f"{values.where(0)}: the id {shown(ids[0])} is not an integer, but those of the edges are; "
            f"{what} must use the same ids"
        )
    order = np.argsort(ids, kind="stable")
    repeated = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(repeated):
        row = order[repeated[0] + 1]
        raise DataError(f"{values.where(int(row))}: the id {shown(ids[row])} comes a second time; keep one row a node")
    places = np.searchsorted(ids[order], nodes).clip(max=max(len(ids) - 1, 0))
    found = ids[order][places] == nodes if len(ids) else np.zeros(len(nodes), dtype=bool)
    strangers = np.flatnonzero(~np.isin(ids, nodes))
    if len(strangers) and unlinked == "error":
        raise DataError(
            f"{values.where(int(strangers[0]))}: {shown(ids[strangers[0]])} has {what}, but no edge"
            f"{_and_more(len(strangers))}; pass unlinked='keep' (--unlinked keep) to have such nodes without edges, "
            "or 'drop'"
        )
    if len(strangers):
        notes.append(f"{len(strangers)} nodes with {what} but no edge were dropped")
    return np.where(found, order[places] if len(ids) else -1, -1)


def feature_tensor(values: NodeValues, rows: NDArray[np.int64], nodes: Ids) -> torch.Tensor:
    """The features of all nodes; each must have some."""
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        raise DataError(
            f"{values.origin}: node {shown(nodes[missing[0]])} has no features{_and_more(len(missing))}; add its row"
        )
    if sp.issparse(values.values):
        chosen = sp.csr_array(values.values)[rows].tocoo()
        index = torch.from_numpy(np.stack([chosen.row, chosen.col]).astype(np.int64))
        return torch.sparse_coo_tensor(
            index, torch.from_numpy(chosen.data.astype(np.float32)), chosen.shape, check_invariants=True
        ).coalesce()
    return torch.from_numpy(np.ascontiguousarray(values.values[rows], dtype=np.float32))


def label_tensor(values: NodeValues, rows: NDArray[np.int64]) -> tuple[torch.Tensor, list[Any]]:
    """Classes counted from 0, -1 where there is none, and the names of the classes."""
    labels = [values.values[row] if row >= 0 else None for row in rows]
    kinds = {type(label) for label in labels if label is not None}
    if len(kinds) > 1:
        labels = [None if label is None else str(label) for label in labels]
    names = sorted({label for label in labels if label is not None})
    if not names:
        raise DataError(f"{values.origin}: no node has a label")
    number = {name: k for k, name in enumerate(names)}
    return torch.tensor([UNLABELLED if label is None else number[label] for label in labels]), names


def _by_number(values: NodeValues, nodes: Ids, what: str) -> NDArray[np.int64]:
    count = values.values.shape[0] if hasattr(values.values, "shape") else len(values.values)
    if len(nodes) != count or nodes.dtype.kind != "i" or not np.array_equal(nodes, np.arange(count)):
        raise DataError(
            f"{values.origin} has {count} rows without ids, but there are {len(nodes)} nodes with ids from "
            f"{shown(nodes[0])} to {shown(nodes[-1])}; {what} without ids belong to the nodes 0 to {count - 1}: pass "
            "them with ids"
        )
    return np.arange(count)


def _rows(source: Any, origin: str) -> NodeValues:
    if sp.issparse(source):
        source = whole_matrix(source, origin)
    else:
        source = np.asarray(source.cpu() if hasattr(source, "cpu") else source)
        if source.ndim == 1:
            source = source[:, None]
        if source.ndim != 2 or source.dtype.kind not in "biuf":
            raise DataError(f"{origin} must be numbers in rows, but are {source.dtype} of shape {source.shape}")
    return _checked(NodeValues(source, origin, lambda row: f"{origin}, row {row}"))


def _checked(features: NodeValues) -> NodeValues:
    values = features.values
    if sp.issparse(values):
        rows = np.flatnonzero(~np.isfinite(values.tocoo().data))
        rows = values.tocoo().row[rows]
    else:
        rows = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(rows):
        raise DataError(
            f"{features.where(int(rows[0]))}: NaN or infinity{_and_more(len(rows))}; fill the gap, or leave the column "
            "out"
        )
    return features


def _numbers_of(node: Any, values: Any) -> NDArray[np.float32]:
    try:
        return np.atleast_1d(np.asarray(values, dtype=np.float32))
    except (TypeError, ValueError):
        raise DataError(f"the features of {node!r} are {values!r}, which are not numbers") from None


def _id_column(columns: Sequence[str]) -> int:
    return next((k for k, name in enumerate(columns) if name.lower() in _ID_NAMES), 0)


def _load_numbers(path: Path) -> Any:
    arrays = load_arrays(path)
    if isinstance(arrays, np.ndarray):
        return arrays
    if holds_matrix(arrays):
        return load_matrix(path)
    return _named_array(path, arrays, ("x", "features", "feats"))


def _load_labels(path: Path) -> list[Any]:
    arrays = load_arrays(path)
    array = arrays if isinstance(arrays, np.ndarray) else _named_array(path, arrays, ("y", "labels"))
    return _label_list(array, str(path))


def _named_array(path: Path, arrays: Mapping[str, Any], names: Sequence[str]) -> Any:
    name = next((name for name in names if name in arrays), None) or (next(iter(arrays)) if len(arrays) == 1 else None)
    if name is None:
        raise DataError(f"{path} holds the arrays {', '.join(arrays)}; call one of them {names[0]!r}")
    return arrays[name]


def _label_list(array: Any, origin: str) -> list[Any]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{origin} must be one label a node, but have shape {array.shape}")
    return [None if array.dtype.kind in "iuf" and value == UNLABELLED else _label(value) for value in array.tolist()]


def _label(value: Any) -> Any:
    """A label as an integer or a text; None where there is none."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, str):
        text = value.strip()
        return (int(text) if text.lstrip("-").isdigit() and str(int(text)) == text else text) if text else None
    if isinstance(value, float) and not value.is_integer():
        raise DataError(f"the label {value!r} is neither an integer nor a text; classes are counted, not measured")
    return int(value) if isinstance(value, int | float | np.integer) else str(value)


def _and_more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
