"""Features of a person's nodes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.datasets.arrays import load_arrays
from h2hgcn.datasets.matrices import holds_matrix, load_matrix
from h2hgcn.datasets.own.frames import is_frame, node_frame
from h2hgcn.datasets.own.ids import ids_of_objects
from h2hgcn.datasets.own.in_memory import plain_array
from h2hgcn.datasets.own.node_tables import id_column, read_node_table
from h2hgcn.datasets.own.node_values import NodeValues, and_more, named_array
from h2hgcn.datasets.own.single_precision import RANGE, single
from h2hgcn.datasets.own.tables import FileTable, Ids, check_is_file, shown
from h2hgcn.errors import DataError


def read_features(source: Any, known: Ids | None = None) -> NodeValues:
    """Numbers for nodes: a file or DataFrame with an id and a number in every other column, or with the columns id,
    ``feature`` and ``value``; an array, or a mapping.

    ``known`` are the ids of the edges, by which a header is told from a row.
    """
    if isinstance(source, str | Path):
        path = Path(source).expanduser()
        check_is_file(path)
        if path.suffix.lower() in (".npy", ".npz"):
            return _by_number(_load_numbers(path), str(path))
        file, notes = read_node_table(path, known)
        return _from_table(file, id_column(file.columns), notes)
    if isinstance(source, Mapping):
        return _from_mapping(source)
    if is_frame(source):
        return _from_table(*node_frame(source, "features", known), [])
    return _by_number(source, "the features")


def feature_tensor(values: NodeValues, rows: NDArray[np.int64], nodes: Ids) -> torch.Tensor:
    """The features of all nodes; each must have some."""
    missing = np.flatnonzero(rows < 0)
    if len(missing) and not values.sparse:
        raise DataError(
            f"{values.origin}: node {shown(nodes[missing[0]])} has no features{and_more(len(missing))}; add its row"
        )
    if sp.issparse(values.values):
        nothing = sp.csr_array((1, values.values.shape[1]), dtype=np.float32)  # the last row, that of -1
        chosen = sp.csr_array(sp.vstack([values.values, nothing]))[rows].tocoo()
        index = torch.from_numpy(np.stack([chosen.row, chosen.col]).astype(np.int64))
        return torch.sparse_coo_tensor(
            index, torch.from_numpy(chosen.data), chosen.shape, check_invariants=True
        ).coalesce()
    return torch.from_numpy(np.ascontiguousarray(values.values[rows]))


def _from_table(file: FileTable, column: int | None, notes: list[str]) -> NodeValues:
    """``column`` holds the ids, if there are any."""
    others = [k for k in range(len(file.columns)) if k != column]
    if column is not None and is_long([file.columns[k] for k in others]):
        return _from_triples(file, column, notes)
    if not others:
        held = f"the column {file.columns[0]!r} only" if file.columns else "no columns"
        raise DataError(f"{file.path} has {held}; features need an id and numbers beside it")
    values = np.stack([single(file.column(k).numbers()) for k in others], axis=1)
    names = [file.columns[k] for k in others]
    ids = None if column is None else file.ids(column)
    return _checked(NodeValues(values, str(file.path), file.where, ids, names, notes))


def is_long(columns: Sequence[str]) -> bool:
    """Whether a table of features has a row for each number that is not 0, as its columns beside the id say."""
    return sorted(name.lower() for name in columns) == ["feature", "value"]


def _from_triples(file: FileTable, column: int, notes: list[str]) -> NodeValues:
    """Rows of an id, the name of a feature and a number; what is not there is 0."""
    by_name = {name.lower(): k for k, name in enumerate(file.columns) if k != column}
    ids, (nodes,) = file.encoded_ids([column])
    names, (places,) = file.encoded_ids([by_name["feature"]], "feature")
    numbers = single(file.column(by_name["value"]).numbers())
    entries = nodes * len(names) + places
    order = np.argsort(entries, kind="stable")
    repeated = np.flatnonzero(entries[order][1:] == entries[order][:-1])
    if len(repeated):
        row = int(order[repeated[0] + 1])
        raise DataError(
            f"{file.where(row)}: the feature {shown(names[places[row]])} of {shown(ids[nodes[row]])} comes a second "
            f"time{and_more(len(repeated))}; keep one row"
        )
    values = sp.csr_array((numbers, (nodes, places)), shape=(len(ids), len(names)))
    first = np.unique(nodes, return_index=True)[1]
    return _checked(
        NodeValues(
            values, str(file.path), lambda row: file.where(int(first[row])), ids, [str(name) for name in names], notes,
            sparse=True,
        )
    )  # fmt: skip


def _from_mapping(source: Mapping[Any, Any]) -> NodeValues:
    if not source:
        raise DataError("the features are empty; give every node some, or leave them out")
    keys = list(source)
    rows = [_numbers_of(node, source[node]) for node in keys]
    if len({row.shape for row in rows}) > 1:
        raise DataError("the features are of different length; every node needs the same number")
    values = NodeValues(
        np.stack(rows),
        "the features",
        lambda row: f"the features of {keys[row]!r}",
        ids_of_objects(keys, "the features"),
    )
    return _checked(values)


def _numbers_of(node: Any, values: Any) -> NDArray[np.float64]:
    try:
        return np.atleast_1d(np.asarray(plain_array(values, f"the features of {node!r}"), dtype=np.float64))
    except (TypeError, ValueError):
        raise DataError(f"the features of {node!r} are {values!r}, which are not numbers") from None


def _by_number(source: Any, origin: str) -> NodeValues:
    array = plain_array(source, origin)
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    return _checked(NodeValues(array, origin, lambda row: f"{origin}, row {row}"))


def _checked(features: NodeValues) -> NodeValues:
    """Features in single precision, none of which are missing or infinite: the door that all of them come through."""
    values = features.values
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise DataError(f"{features.origin} must be numbers in rows, but are {values.dtype} of shape {values.shape}")
    features.values = single(values)
    if sp.issparse(values):
        entries = features.values.tocoo()
        bad = entries.row[~np.isfinite(entries.data)]
    else:
        bad = np.flatnonzero(~np.isfinite(features.values).all(axis=1))
    if len(bad):
        raise DataError(
            f"{features.where(int(bad[0]))}: NaN or infinity, or a number beyond {RANGE}{and_more(len(bad))}; "
            "fill the gap, scale the column, or leave it out"
        )
    return features


def _load_numbers(path: Path) -> Any:
    arrays = load_arrays(path)
    if isinstance(arrays, np.ndarray):
        return arrays
    if holds_matrix(arrays):
        return load_matrix(path)
    return named_array(path, arrays, ("x", "features", "feats"))
