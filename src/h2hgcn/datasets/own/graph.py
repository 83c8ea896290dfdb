"""A person's own graph, from files or from memory."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.datasets.conventions import UNLABELLED
from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.edge_sources import read_edges_from
from h2hgcn.datasets.own.node_features import feature_tensor, read_features
from h2hgcn.datasets.own.node_labels import label_tensor, read_labels
from h2hgcn.datasets.own.node_values import NodeValues, Unlinked, aligned
from h2hgcn.datasets.own.tables import Ids
from h2hgcn.datasets.structural import structural_features
from h2hgcn.errors import DataError, DataWarning


def load_graph(
    edges: Any,
    features: Any = None,
    labels: Any = None,
    weights: Any = None,
    directed: bool | None = None,
    *,
    columns: tuple[str, str] | None = None,
    header: bool | None = None,
    unlinked: Unlinked = "error",
) -> Data:
    """A PyG ``Data`` with ``x``, ``y``, ``edge_index``, ``edge_weight``, ``node_ids``, ``directed`` and ``notes``.

    Args:
        edges: A file (CSV, TSV or other delimited text, also .gz; Parquet; NPZ; GraphML; GEXF; MatrixMarket), a
            networkx graph, a SciPy matrix, a PyG ``Data``, pairs of nodes, or triples of two nodes and a weight.
        features: A file with a node id and a number in every further column, an array or sparse matrix for the nodes
            0, 1, 2, ..., a mapping by id, or, of a graph that has node attributes, the names of some. Without, the
            structural ones (degree, one-hot capped degree, constant) are made.
        labels: A file with an id and a label, an array, a mapping, or the name of a node attribute. Nodes without a
            label get -1.
        weights: The column (or edge attribute) that holds edge weights, or the weights themselves. None takes a column
            that is called so, or the third of three without a header; False takes none.
        directed: Whether an edge goes one way. None asks the graph, else no.
        columns: The columns that hold source and target; else those called so, else the first two.
        header: Whether a delimited file of edges has one; None finds out.
        unlinked: What to do with nodes that have features or labels but no edge.

    Self-loops and repeated edges are left out. What was left out, made up or taken for granted is in ``notes``, and
    said once as a ``DataWarning``. Node ids, integers or texts, are sorted; ``node_ids[i]`` is the id of node ``i``.
    """
    if unlinked not in ("error", "keep", "drop"):
        raise DataError(f"unlinked={unlinked!r} is not known; use 'error', 'keep' or 'drop'")
    source = read_edges_from(edges, weights, columns, header)
    node_features = _features(source, features)
    node_labels = _labels(source, labels)
    nodes = _nodes(source, [values for values in (node_features, node_labels) if values is not None], unlinked)
    data = Data(num_nodes=len(nodes))
    data.node_ids = nodes
    data.name = Path(edges).name.split(".")[0] if isinstance(edges, str | Path) else "graph"
    data.directed = bool(source.directed) if directed is None else directed
    notes = list(source.notes)
    _set_edges(data, source, nodes, notes)
    alone = len(nodes) - len(torch.unique(data.edge_index))
    if alone:
        notes.append(f"{alone} of {len(nodes)} nodes have no edge")
    _set_features(data, node_features, nodes, unlinked, notes)
    if node_labels is not None:
        _set_labels(data, node_labels, nodes, unlinked, notes)
    data.notes = notes
    for note in notes:
        warnings.warn(f"{source.origin}: {note}", DataWarning, stacklevel=2)
    return data


def _features(source: EdgeList, features: Any) -> NodeValues | None:
    if features is None:
        return None if source.features is None else _of_nodes(read_features(source.features), source)
    if source.attributes is not None and _are_names(features):
        names = [features] if isinstance(features, str) else list(features)
        columns = [_attribute(source, name) for name in names]
        nodes = [node for node in columns[0] if all(node in column for column in columns)]
        values = {
            node: [_number(column[node], name, source) for column, name in zip(columns, names, strict=True)]
            for node in nodes
        }
        read = read_features(values)
        read.names = names
        return read
    return read_features(features, source.ids)


def _labels(source: EdgeList, labels: Any) -> NodeValues | None:
    if labels is None:
        return None if source.labels is None else _of_nodes(read_labels(source.labels), source)
    if source.attributes is not None and _are_names(labels):
        return read_labels(_attribute(source, labels))
    return read_labels(labels, source.ids)


def _of_nodes(values: NodeValues, source: EdgeList) -> NodeValues:
    """Values that came with a graph belong to its nodes, in its order."""
    values.ids = source.ids
    return values


def _are_names(given: Any) -> bool:
    if isinstance(given, str):
        return not Path(given).suffix
    return isinstance(given, Sequence) and bool(given) and all(isinstance(name, str) for name in given)


def _attribute(source: EdgeList, name: str) -> dict[Any, Any]:
    assert source.attributes is not None
    values = source.attributes(name)
    if not values:
        raise DataError(f"{source.origin}: no node has an attribute {name!r}")
    return values


def _number(value: Any, name: str, source: EdgeList) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(
            f"{source.origin}: the node attribute {name!r} holds {value!r}, which is not a number"
        ) from None


def _nodes(source: EdgeList, values: list[NodeValues], unlinked: Unlinked) -> Ids:
    """All node ids, sorted."""
    known = np.sort(source.ids)
    if len(np.unique(known)) < len(known):
        raise DataError(f"{source.origin}: a node id comes twice; ids must differ")
    if source.all_nodes:
        return known
    for part in values:
        if part.ids is None and known.dtype.kind == "i":
            return _numbered_nodes(source, part)
        if part.ids is not None and unlinked == "keep":
            ids = part.ids.astype(np.str_) if known.dtype.kind == "U" else part.ids
            known = np.union1d(known, ids) if ids.dtype.kind == known.dtype.kind else known
    return known


def _numbered_nodes(source: EdgeList, values: NodeValues) -> Ids:
    """Rows without ids belong to the nodes 0, 1, 2, ..., so edges may name no others."""
    size = values.values.shape[0] if hasattr(values.values, "shape") else len(values.values)
    for codes in (source.source, source.target):
        ends = source.ids[codes]
        strangers = np.flatnonzero((ends < 0) | (ends >= size))
        if len(strangers):
            row = int(strangers[0])
            raise DataError(
                f"{source.where(row)}: the edge names node {ends[row]}, but {values.origin} has {size} rows, for the "
                f"nodes 0 to {size - 1}; add its row, or fix the edge"
            )
    return np.arange(size)


def _set_edges(data: Data, source: EdgeList, nodes: Ids, notes: list[str]) -> None:
    places = np.searchsorted(nodes, source.ids)
    first, second = places[source.source], places[source.target]
    weights = source.weights
    if weights is not None:
        _check_weights(source, weights)
    is_loop = first == second
    if is_loop.any():
        notes.append(f"{_count(int(is_loop.sum()), 'self-loop')} left out; every layer adds its own")
    size = len(nodes)
    low, high = (first, second) if data.directed else (np.minimum(first, second), np.maximum(first, second))
    keys = (low * size + high)[~is_loop]
    kept, where = np.unique(keys, return_index=True)
    if len(kept) < len(keys):
        backwards = int((first > second)[~is_loop].sum())
        both_ways = not data.directed and len(keys) == 2 * len(kept) and backwards == len(kept)
        notes.append(_repetition_note(len(keys) - len(kept), both_ways))
        if weights is not None:
            _note_other_weights(weights[~is_loop], weights[~is_loop][where][np.searchsorted(kept, keys)], notes)
    index = np.stack([kept // max(size, 1), kept % max(size, 1)])
    value = None if weights is None else weights[~is_loop][where].astype(np.float32)
    if not data.directed:
        order = np.argsort(np.concatenate([kept, index[1] * size + index[0]]))
        index = np.concatenate([index, index[::-1]], axis=1)[:, order]
        value = None if value is None else np.concatenate([value, value])[order]
    data.edge_index = torch.from_numpy(index)
    if value is not None:
        data.edge_weight = torch.from_numpy(value)


def _repetition_note(repeated: int, both_ways: bool) -> str:
    if both_ways:
        return f"every edge is listed in both directions: {repeated} undirected edges"
    return f"{_count(repeated, 'repeated edge')} left out"


def _note_other_weights(weights: NDArray[np.float64], first: NDArray[np.float64], notes: list[str]) -> None:
    differing = int((weights != first).sum())
    if differing:
        notes.append(
            f"of the repeated edges, {differing} had another weight than the first, which was kept; add them up "
            "beforehand if that is meant"
        )


def _check_weights(source: EdgeList, weights: NDArray[np.float64]) -> None:
    if len(weights) != len(source.source):
        raise DataError(f"{source.origin}: {len(weights)} weights for {len(source.source)} edges")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"{source.where(row)}: the weight {weights[row]} must be finite and not negative; fix or leave it out"
        )


def _set_features(data: Data, values: NodeValues | None, nodes: Ids, unlinked: Unlinked, notes: list[str]) -> None:
    if values is None:
        data.x, data.feature_names = structural_features(data.edge_index, len(nodes))
        data.structural = True
        notes.append("no features were given; structural ones were made: degree, one-hot degree up to 5, constant")
        return
    data.x = feature_tensor(values, aligned(values, nodes, "features", unlinked, notes), nodes)
    if values.names is not None:
        data.feature_names = values.names


def _set_labels(data: Data, values: NodeValues, nodes: Ids, unlinked: Unlinked, notes: list[str]) -> None:
    data.y, data.label_names = label_tensor(values, aligned(values, nodes, "a label", unlinked, notes))
    missing = int((data.y == UNLABELLED).sum())
    if missing:
        notes.append(f"{missing} of {len(nodes)} nodes have no label")


def _count(number: int, what: str) -> str:
    return f"1 {what} was" if number == 1 else f"{number} {what}s were"
