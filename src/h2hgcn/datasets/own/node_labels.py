"""Labels of a person's nodes."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.conventions import UNLABELLED
from h2hgcn.datasets.own.frames import is_frame, node_frame
from h2hgcn.datasets.own.ids import ids_of_objects
from h2hgcn.datasets.own.in_memory import plain_array
from h2hgcn.datasets.own.node_tables import ID_NAMES, id_column, read_node_table
from h2hgcn.datasets.own.node_values import NodeValues, named_array
from h2hgcn.datasets.own.tables import FileTable, Ids, check_is_file
from h2hgcn.errors import DataError

_LABEL_NAMES = frozenset({"label", "labels", "y", "class", "category", "target"})
_PARTS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # written as Python writes it: 01 and +1 are texts


def read_labels(source: Any, known: Ids | None = None, id_names: frozenset[str] = ID_NAMES) -> NodeValues:
    """Classes of nodes: a file or DataFrame with an id, a label and perhaps a column ``split``; an array, or a mapping
    by id.

    ``known`` are the ids of the edges, by which a header is told from a row; ``id_names`` are names of id columns.
    """
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        check_is_file(path)
        if path.suffix.lower() in (".npy", ".npz"):
            return _by_number(_load_labels(path), str(path))
        file, notes = read_node_table(path, known, _LABEL_NAMES, id_names)
        return _from_table(file, id_column(file.columns, id_names), notes)
    if isinstance(source, Mapping):
        keys = list(source)
        labels = [_label(value) for value in source.values()]
        return _noted(
            NodeValues(
                labels, "the labels", lambda row: f"the label of {keys[row]!r}", ids_of_objects(keys, "the labels")
            )
        )
    if is_frame(source):
        return _from_table(*node_frame(source, "labels", known), [])
    return _by_number(source, "the labels")


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


def _from_table(file: FileTable, column: int | None, notes: list[str]) -> NodeValues:
    """``column`` holds the ids, if there are any."""
    others = [k for k in range(len(file.columns)) if k != column]
    split = split_column([file.columns[k] for k in others])
    parts = None if split is None else _parts(file, others.pop(split))
    others = [k for k in others if file.columns[k].lower() in _LABEL_NAMES] or others
    if len(others) != 1:
        raise DataError(
            f"{file.path} has the columns {', '.join(file.columns)}; labels need an id and one column, called "
            "'label' if there are more"
        )
    labels = [_label(value) for value in file.table.column(others[0]).to_pylist()]
    ids = None if column is None else file.ids(column)
    return _noted(NodeValues(labels, str(file.path), file.where, ids, notes=notes, parts=parts))


def split_column(columns: Sequence[str]) -> int | None:
    """Which of the columns beside the id has the parts of a split; labels are in another one."""
    places = [k for k, name in enumerate(columns) if name.lower() == "split"]
    return places[0] if places and len(columns) > 1 else None


def _parts(file: FileTable, column: int) -> list[str | None]:
    """The part that each row's node is in, None where there is a blank."""
    words = [None if value is None else str(value).strip().lower() for value in file.table.column(column).to_pylist()]
    for row, word in enumerate(words):
        if word and word not in _PARTS:
            raise DataError(
                f"{file.where(row)}: the split {word!r} is not known; use train, val or test, or leave it blank"
            )
    return [_PARTS[word] if word else None for word in words]


def _noted(labels: NodeValues) -> NodeValues:
    """In arrays -1 is no label, as PyTorch and PyG have it; where a gap can be left, it is a class like any other."""
    if UNLABELLED in labels.values:
        labels.notes.append(f"the label -1 in {labels.origin} is taken for a class; leave a gap where there is none")
    return labels


def _by_number(source: Any, origin: str) -> NodeValues:
    array = plain_array(source, origin)
    if sp.issparse(array):
        array = array.toarray()
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.reshape(-1)
    if array.ndim != 1:
        raise DataError(f"{origin} must be one label a node, but have shape {array.shape}")
    labels = [None if _is_unlabelled(value) else _label(value) for value in array.tolist()]
    return NodeValues(labels, origin, lambda row: f"{origin}, row {row}")


def _is_unlabelled(value: Any) -> bool:
    return isinstance(value, int | float) and value == UNLABELLED


def _label(value: Any) -> Any:
    """A label as an integer or a text; None where there is none."""
    if hasattr(value, "tolist"):  # numbers of NumPy and PyTorch
        value = value.tolist()
    if isinstance(value, list | tuple | set | dict):
        raise DataError(f"the label {value!r} is neither an integer nor a text; give every node one label")
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, str):
        text = value.strip()
        return (int(text) if _INTEGER.fullmatch(text) else text) if text else None
    if isinstance(value, float) and not value.is_integer():
        raise DataError(f"the label {value!r} is neither an integer nor a text; classes are counted, not measured")
    return int(value) if isinstance(value, int | float) else str(value)


def _load_labels(path: Path) -> Any:
    arrays = load_arrays(path)
    return arrays if isinstance(arrays, np.ndarray) else named_array(path, arrays, ("y", "labels"))
