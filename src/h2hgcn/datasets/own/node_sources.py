"""Features and labels of a graph's nodes: those that were given for it, or that it brought along."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.node_features import read_features
from h2hgcn.datasets.own.node_labels import read_labels
from h2hgcn.datasets.own.node_values import NodeValues
from h2hgcn.errors import DataError


def features_of(source: EdgeList, features: Any) -> NodeValues | None:
    """The features that were given, by a file, an object or the names of attributes, else those of the graph."""
    if features is None:
        return None if source.features is None else _of_nodes(read_features(source.features), source, "x")
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


def labels_of(source: EdgeList, labels: Any) -> NodeValues | None:
    """The labels that were given, else those of the graph."""
    if labels is None:
        return None if source.labels is None else _of_nodes(read_labels(source.labels), source, "y")
    if source.attributes is not None and _are_names(labels):
        return read_labels(_attribute(source, labels))
    return read_labels(labels, source.ids)


def _of_nodes(values: NodeValues, source: EdgeList, name: str) -> NodeValues:
    """Values that came with a graph belong to its nodes, in its order."""
    rows = num_rows(values)
    if rows != len(source.ids):
        raise DataError(
            f"{source.origin}: {name} has {rows} rows for {len(source.ids)} nodes; give one row a node, or leave it out"
        )
    values.ids = source.ids
    return values


def num_rows(values: NodeValues) -> int:
    return values.values.shape[0] if hasattr(values.values, "shape") else len(values.values)


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
