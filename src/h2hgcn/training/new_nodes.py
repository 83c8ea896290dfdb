"""A run on its own graph joined with new nodes and edges."""

import warnings
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from h2hgcn.datasets import task_features
from h2hgcn.datasets.arrays import UNLABELLED, closest_id, integers_in, unknown_nodes
from h2hgcn.datasets.edges import EdgeList, checked_weights
from h2hgcn.datasets.loading import read_edges_from
from h2hgcn.datasets.nodes import NodeValues, aligned, and_more, feature_tensor, features_of, read_features
from h2hgcn.datasets.pairs import contains
from h2hgcn.datasets.table_files import DELIMITED_SUFFIXES, TextFormat
from h2hgcn.datasets.tables import Ids, listed, shown
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.tasks.base import Problem
from h2hgcn.tasks.checks import check_same_columns
from h2hgcn.training.names import NodeNames
from h2hgcn.training.run import Run, reached_from

# What a joined graph has from that of the run, beside edges, features and labels.
_KEPT = ("name", "directed", "structural", "feature_names", "label_names", "label_columns", "append_structure")

# So many new ids are compared with those of the run, and may be mistyped if they are so similar to one.
_CHECKED_IDS, _ALMOST_SAME = 20, 0.8


class ExtendedRun(Run):
    """What ``Run.with_new`` returns: the trained model on the run's graph with new nodes and edges.

    ``nodes`` are those of the run and then ``new_nodes``. All edges carry messages, for link prediction also those that
    were held out. It has no metrics of its own and is not saved.
    """

    def __init__(self, run: Run, data: Data, new_nodes: Ids) -> None:
        super().__init__(run.model, run.task, run.config, run.result, run.history, data)
        self.trained: Run = getattr(run, "trained", run)
        self.new_nodes = new_nodes

    @cached_property
    def embeddings(self) -> Tensor:
        """A point for each node of the joined graph."""
        return self.trained.encode(self.data)

    @property
    def links(self) -> Tensor:
        edge_index: Tensor = self.data.edge_index
        return edge_index

    @property
    def problem(self) -> Problem:
        raise DataError("a run with new nodes has no split and no metrics; use those of the run that it comes from")

    def encode(self, data: Any) -> Tensor:
        return self.trained.encode(data)

    def known_nodes(self, data: Any) -> Tensor | None:
        return self.trained.known_nodes(data)

    def save(self, path: str | Path) -> None:
        raise DataError("a run with new nodes is not saved; keep their edges and features, and call with_new again")


def extended_run(
    run: Run, edges: Any, features: Any, weights: Any, columns: tuple[str, str] | None, text: TextFormat
) -> ExtendedRun:
    """``Run.with_new``."""
    if run.task.of_collections:
        raise DataError("this run is about graphs of a collection, which have no new nodes; predict the whole graph")
    if run.data is None:
        raise DataError("the run does not hold its graph, which new nodes join; run its command again")
    run.check_inductive()
    if getattr(run.task, "closure", False):
        raise DataError("this run has the closure of its hierarchy, which new edges change; train again with them")
    if edges is None and features is None:
        raise DataError("there is nothing new; give new edges, the features of new nodes, or both")
    own, names, notes = run.data, NodeNames(run.data), list[str]()
    source = None if edges is None else _read_edges(own, names, edges, weights, columns, text)
    values = None
    if source is not None:
        notes += source.notes
        values = features_of(source, features, text)
    elif features is not None:
        values = read_features(features, text=text)
    if values is not None:
        _check_ids(values, names)
    named = [part.ids for part in (source, values) if part is not None and part.ids is not None]
    candidates = np.unique(np.concatenate(named))
    new = candidates[names.known(candidates) < 0]
    # none, or for each new node its row of features
    rows = np.full(len(new), -1) if values is None else aligned(values, new, "features", "error", notes)
    if names.ids.dtype.kind == "U":  # a row of features shows that a new node is meant
        for name in new[rows < 0][:_CHECKED_IDS]:
            known = closest_id(name, names.ids, _ALMOST_SAME)
            if known is not None:
                notes.append(f"{shown(name)} is taken for a new node; did you mean {shown(known)}?")
    data = Data(num_nodes=len(names.ids) + len(new), node_ids=np.concatenate([names.ids, new]))
    for name in _KEPT:
        if getattr(own, name, None) is not None:
            data[name] = own[name]
    _set_edges(data, own, source, notes)
    _check_connected(run, data, source, names, notes)
    _set_features(data, run, values, rows, new, notes)
    y = getattr(own, "y", None)
    if y is not None and y.dim() == 1 and len(y) == len(names.ids):
        data.y = torch.cat([y, y.new_full((len(new),), UNLABELLED)])
    for note in notes:
        warnings.warn(note, DataWarning, stacklevel=3)
    return ExtendedRun(run, data, new)


def _read_edges(
    own: Data, names: NodeNames, edges: Any, weights: Any, columns: tuple[str, str] | None, text: TextFormat
) -> EdgeList:
    """New edges, with weights if those of the run have some, and with ids of the type that the run has."""
    weighted = getattr(own, "edge_weight", None) is not None
    if not weighted and weights not in (None, False):
        raise DataError("the edges of the run have no weights; leave those of new edges out")
    if text.header is None and columns is None:
        text = replace(text, header=_has_header(edges, names, text))
    source = read_edges_from(edges, weights if weighted else False, columns, text)
    if weighted and source.weights is None:
        raise DataError(
            f"{source.origin}: the edges of the run have weights; give new edges some, in a column 'weight'"
        )
    source.ids = _as_own(source.ids, names, source.origin)
    return source


def _has_header(edges: Any, names: NodeNames, text: TextFormat) -> bool | None:
    """Whether the first line of a delimited file of new edges is a header, as far as ids of the run tell."""
    is_delimited = isinstance(edges, str | Path) and DELIMITED_SUFFIXES & set(Path(edges).suffixes)
    if not is_delimited or names.ids.dtype.kind != "U":
        return None
    try:
        lines = read_edges_from(edges, False, None, replace(text, header=False))
    except DataError:  # which the usual way of reading explains better
        return None
    ends = np.stack([lines.source, lines.target])
    if not ends.size or lines.ids.dtype.kind != "U":
        return None
    if (names.known(lines.ids[ends[:, 0]]) >= 0).any():
        return False
    return True if ends.shape[1] > 1 and not np.isin(ends[:, 0], ends[:, 1:]).any() else None


def _as_own(ids: Ids, names: NodeNames, origin: str) -> Ids:
    """New ids of the type that those of the run have."""
    if names.ids.dtype.kind == "U":
        return ids.astype(np.str_)
    if ids.dtype.kind == "U":
        strange = next(k for k in range(len(ids)) if integers_in(ids[k : k + 1]) is None)
        raise DataError(
            f"{origin}: the id {shown(ids[strange])} is not an integer, but those of the run are; give new nodes "
            "integers as ids"
        )
    return ids


def _check_ids(values: NodeValues, names: NodeNames) -> None:
    """Brings the ids of features to those of the run; they name new nodes."""
    if values.ids is None:
        raise DataError(f"{values.origin} has no ids; name the new node of each row, as in a column 'id'")
    values.ids = _as_own(values.ids, names, values.origin)
    known = np.flatnonzero(names.known(values.ids) >= 0)
    if len(known):
        row = int(known[0])
        raise DataError(
            f"{values.where(row)}: {shown(values.ids[row])} is a node of the run, which has its features"
            f"{and_more(len(known))}; leave its row out, or give a new node another id"
        )


def _set_edges(data: Data, own: Data, source: EdgeList | None, notes: list[str]) -> None:
    """The edges of the run, and new ones after them."""
    data.edge_index, weight = own.edge_index, getattr(own, "edge_weight", None)
    if weight is not None:
        data.edge_weight = weight.reshape(-1)
    if source is None:
        return
    count, directed = int(data.num_nodes), getattr(own, "directed", False)
    weights = None if source.weights is None else checked_weights(source.weights, source.where)
    pairs = NodeNames(data).numbers(source.ids)[np.stack([source.source, source.target])]
    there = own.edge_index.numpy()
    if not directed:
        pairs, there = (np.stack([np.minimum(*ends), np.maximum(*ends)]) for ends in (pairs, there))
    keys, rows = np.unique(pairs[0] * count + pairs[1], return_index=True)
    is_loop = pairs[0, rows] == pairs[1, rows]
    own_keys = there[0] * count + there[1]  # far more than new ones, so these are not sorted
    is_known = np.isin(keys, own_keys[contains(keys, own_keys)]) & ~is_loop
    for left_out, what in ((is_loop, "join a node with itself"), (is_known, "are in the graph of the run already")):
        if left_out.any():
            notes.append(f"{source.origin}: edges that {what} were left out: {int(left_out.sum())}")
    rows = rows[~is_loop & ~is_known]
    added = torch.from_numpy(pairs[:, rows])
    added = added if directed else torch.cat([added, added.flip(0)], dim=1)
    data.edge_index = torch.cat([own.edge_index, added], dim=1)
    if weights is not None:
        more = torch.from_numpy(weights[rows]).repeat(1 if directed else 2)
        data.edge_weight = torch.cat([data.edge_weight, more.to(data.edge_weight.dtype)])


def _check_connected(run: Run, data: Data, source: EdgeList | None, names: NodeNames, notes: list[str]) -> None:
    """Raises if nothing gives a new node its place: neither features nor a path to a node of the run."""
    by_features = run.places_by_features(data)
    if source is not None and (names.known(source.ids) < 0).all():
        found = f"{source.origin}: no edge leads to a node of the run: {unknown_nodes(source.ids.tolist(), names.ids)}"
        if not by_features:
            raise DataError(found)
        notes.append(found)
    if by_features:
        return
    lost = np.flatnonzero(~reached_from(data.edge_index, np.arange(data.num_nodes) < len(names.ids)))
    if len(lost):
        structural = getattr(run.data, "structural", False)
        instead = ", or train with features" if structural else ": this run places nodes by links"
        raise DataError(
            f"node {shown(data.node_ids[lost[0]])} is new and no path leads from it to a node of the run"
            f"{and_more(len(lost))}, so nothing gives it a place; add its edges{instead}"
        )


def _set_features(
    data: Data, run: Run, values: NodeValues | None, rows: NDArray[np.int64], new: Ids, notes: list[str]
) -> None:
    """The features of the run's nodes, and those of new ones after them; structural ones are computed again."""
    own = run.data
    if getattr(own, "structural", False):
        if values is not None:
            raise DataError(f"{values.origin}: the run was trained without features; leave those of new nodes out")
        data.x = torch.zeros(int(data.num_nodes), own.x.shape[1])
        data.x = task_features(data, run.task.name, data.edge_index)
        return
    missing = np.flatnonzero(rows < 0)
    is_needed = run.places_by_features(data) or getattr(run.model.head, "features", None) is not None
    if len(missing) and is_needed and (values is None or not values.sparse):
        columns = getattr(own, "feature_names", None)
        raise DataError(
            f"node {shown(new[missing[0]])} is new and has no features, which the model needs{and_more(len(missing))}; "
            f"give its row{'' if columns is None else f' with {listed(columns)}'} in --new-features (features=)"
        )
    added = torch.zeros(len(new), own.x.shape[1])
    if values is not None:
        _check_columns(values, own, notes)
        if values.sparse:
            added = feature_tensor(values, rows, new)
        else:
            added[torch.from_numpy(rows >= 0)] = torch.from_numpy(values.values[rows[rows >= 0]])
    x = own.x if own.x.is_floating_point() else own.x.float()
    if x.layout == torch.strided:
        data.x = torch.cat([x, (added if added.layout == torch.strided else added.to_dense()).to(x.dtype)])
    else:
        data.x = torch.cat([x.to_sparse_coo(), added.to_sparse_coo().to(x.dtype)]).coalesce()


def _check_columns(values: NodeValues, own: Data, notes: list[str]) -> None:
    """Raises unless new features have the columns of the run; those of a long table are brought into their order."""
    columns = getattr(own, "feature_names", None)
    if values.sparse and values.names is not None and columns is not None:
        place = {name: k for k, name in enumerate(columns)}
        strange = [name for name in values.names if name not in place]
        if len(strange) == len(values.names):
            raise DataError(f"{values.origin}: the run has none of the features {listed(strange)}; use the same names")
        if strange:
            notes.append(f"{values.origin}: features that the run does not have were left out: {listed(strange)}")
        entries = values.values.tocoo()
        moved = np.array([place.get(name, -1) for name in values.names])[entries.col]
        chosen, shape = moved >= 0, (values.values.shape[0], len(columns))
        values.values = sp.csr_array((entries.data[chosen], (entries.row[chosen], moved[chosen])), shape=shape)
    elif columns is not None and values.names is not None and sorted(columns) == sorted(values.names):
        values.values = values.values[:, [values.names.index(name) for name in columns]]
    else:
        check_same_columns(columns, Data(name=values.origin, feature_names=values.names))
    if values.values.shape[1] != own.x.shape[1]:
        raise DataError(
            f"{values.origin} has {values.values.shape[1]} features a node; the run was trained with {own.x.shape[1]}"
        )
