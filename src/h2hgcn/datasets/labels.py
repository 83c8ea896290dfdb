"""Labels of the nodes of a user's graph, or of the graphs of a collection."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import UNLABELLED, ids_of_objects, plain_array
from h2hgcn.datasets.edges import EdgeList
from h2hgcn.datasets.nodes import NodeValues, are_names, attribute_of, by_key, of_graph, open_values
from h2hgcn.datasets.table_files import TextFormat
from h2hgcn.datasets.tables import ID_NAMES, Ids, Table
from h2hgcn.errors import DataError

_LABEL_NAMES = frozenset({"label", "labels", "y", "class", "category", "target"})
_PARTS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
_GAPS = frozenset({"na", "n/a", "nan", "null", "none", "?", "-"})  # as other programs write that there is no label
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # written as Python writes it: 01 and +1 are texts


def labels_of(source: EdgeList, labels: Any, text: TextFormat | None = None) -> NodeValues:
    """The labels that were given, else those of the graph."""
    if labels is None:
        return of_graph(read_labels(source.labels), source, "y")
    if source.attributes is not None and are_names(labels):
        return read_labels(attribute_of(source, labels))
    return read_labels(labels, source.ids, text=text)


def read_labels(
    source: Any, known: Ids | None = None, id_names: frozenset[str] = ID_NAMES, text: TextFormat | None = None
) -> NodeValues:
    """Classes of nodes: a file or DataFrame with an id, a label and perhaps a column ``split``; an array, or a mapping
    by id.

    ``known`` are the ids of the edges, which tell a header from a row; ``id_names`` are names of id columns.
    """
    given, column, origin, notes = open_values(
        source, "labels", ("y", "labels"), known, text or TextFormat(), _LABEL_NAMES, id_names
    )
    if isinstance(given, Table):
        return _labels_of_table(given, column, notes)
    if isinstance(given, Mapping):
        keys, labels = list(given), [_label(value) for value in given.values()]
        return _noted(NodeValues(labels, origin, by_key("label", keys), ids_of_objects(keys, origin)))
    array = plain_array(given, origin)
    array = array.toarray() if sp.issparse(array) else array
    array = array.reshape(-1) if array.shape[1:] == (1,) else array
    if array.ndim != 1:
        raise DataError(f"{origin} must be one label a node, but have shape {array.shape}")
    labels = [None if value == UNLABELLED else _label(value) for value in array.tolist()]
    return NodeValues(labels, origin, lambda row: f"{origin}, row {row}")


def _labels_of_table(table: Table, column: int | None, notes: list[str]) -> NodeValues:
    """``column`` holds the ids, if there are any."""
    others = [k for k in range(len(table.columns)) if k != column]
    split = split_column(table.columns, column)
    parts: list[str | None] | None = None
    if split is not None:
        others.remove(split)
        words = [None if value is None else str(value).strip().lower() for value in table.values(split)]
        for row, word in enumerate(words):
            if word and word not in _PARTS:
                raise DataError(f"{table.where(row)}: the split {word!r} is not train, val or test, or blank")
        parts = [_PARTS[word] if word else None for word in words]
    others = [k for k in others if table.columns[k].lower() in _LABEL_NAMES] or others
    if len(others) != 1:
        raise DataError(
            f"{table.origin} has the columns {', '.join(table.columns)}; labels need an id and one column, called "
            "'label' if there are more"
        )
    labels = [_label(value) for value in table.values(others[0])]
    ids = None if column is None else table.ids(column)
    notes = [*notes, *table.notes()]
    return _noted(NodeValues(labels, str(table.origin), table.where, ids, notes=notes, parts=parts))


def split_column(columns: Sequence[str], ids: int | None) -> int | None:
    """Which of the columns beside the ids has the parts of a split; labels are in another one."""
    others = [k for k in range(len(columns)) if k != ids]
    return next((k for k in others if columns[k].lower() == "split" and len(others) > 1), None)


def _noted(labels: NodeValues) -> NodeValues:
    """In arrays -1 is no label, as PyTorch and PyG have it; where a gap can be left, it is a class, and so is NA."""
    if UNLABELLED in labels.values:
        labels.notes.append(f"the label -1 in {labels.origin} is taken for a class; leave a gap where there is none")
    texts = Counter(label for label in labels.values if isinstance(label, str) and label.lower() in _GAPS)
    for text, count in sorted(texts.items()):
        found = f"{text!r}, {count:,} of the labels in {labels.origin}, is taken for a class"
        labels.notes.append(f"{found}; leave a gap where it means none")
    return labels


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


def label_tensor(values: NodeValues, rows: NDArray[np.int64]) -> tuple[torch.Tensor, list[Any]]:
    """Classes counted from 0, -1 where there is none, and the names of the classes."""
    labels = [values.values[row] if row >= 0 else None for row in rows]
    if len({type(label) for label in labels if label is not None}) > 1:
        labels = [None if label is None else str(label) for label in labels]
    names = sorted({label for label in labels if label is not None})
    if not names:
        raise DataError(f"{values.origin}: no node has a label")
    number = {None: UNLABELLED} | {name: k for k, name in enumerate(names)}
    return torch.tensor([number[label] for label in labels]), names
