"""A person's own graph, from files or from memory."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.datasets.conventions import UNLABELLED
from h2hgcn.datasets.own.converted import is_converted, load_converted
from h2hgcn.datasets.own.edge_list import MASKS, EdgeList
from h2hgcn.datasets.own.edge_sources import read_edges_from
from h2hgcn.datasets.own.node_features import feature_tensor
from h2hgcn.datasets.own.node_labels import label_tensor
from h2hgcn.datasets.own.node_sources import features_of, labels_of, num_rows
from h2hgcn.datasets.own.node_values import NodeValues, Unlinked, aligned, and_more
from h2hgcn.datasets.own.simple_edges import set_edges
from h2hgcn.datasets.own.tables import Ids
from h2hgcn.datasets.structural import add_structural_features
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
            DataFrame (pandas, polars) or Arrow table, a networkx graph, a SciPy matrix, a PyG ``Data``, a list of pairs
            of nodes, or of triples of two nodes and a weight, or an array. An array or tensor of integers with two rows
            is an ``edge_index`` as in PyG, any other has a pair in every row; every item of a list is an edge.
        features: A file or DataFrame with a node id and a number in every further column (ids may be in the index), or
            with the columns id, feature and value, which give a sparse ``x`` (what has no row is 0); an array or
            sparse matrix for the nodes 0, 1, 2, ..., a mapping by id, or, of a graph that has node attributes, the
            names of some. Without, the structural ones (degree, one-hot capped degree, constant) are made; a directed
            graph has these for in-degree and out-degree.
        labels: A file or DataFrame with an id, a label and perhaps a column ``split`` (train, val, test or blank),
            which gives ``train_mask``, ``val_mask`` and ``test_mask``; a Series by id, an array, a mapping, or the name
            of a node attribute. Nodes without a label get -1.
        weights: The column (or edge attribute) that holds edge weights, or the weights themselves. None takes a column
            that is called so, or the third of three without a header; False takes none.
        directed: Whether an edge goes one way. None asks the graph, else no.
        columns: The columns that hold source and target; else those called so, else the first two.
        header: Whether a delimited file of edges has one; None finds out.
        unlinked: What to do with nodes that have features or labels but no edge.

    The folder of a converted graph (``convert_graph``) is mapped into memory, and goes without the other arguments.
    Self-loops and repeated edges are left out. What was left out, made up or taken for granted is in ``notes``, and
    said once as a ``DataWarning``. Node ids, integers or texts, are sorted; ``node_ids[i]`` is the id of node ``i``.
    """
    if is_converted(edges):
        _check_alone(edges, features, labels, weights, directed, columns, header)
        return load_converted(Path(edges))
    if unlinked not in ("error", "keep", "drop"):
        raise DataError(f"unlinked={unlinked!r} is not known; use 'error', 'keep' or 'drop'")
    source = read_edges_from(edges, weights, columns, header)
    name = Path(edges).name.split(".")[0] if isinstance(edges, str | Path) else "graph"
    data = graph_of(source, name, features, labels, directed, unlinked)
    for note in data.notes:
        warnings.warn(f"{source.origin}: {note}", DataWarning, stacklevel=2)
    return data


def graph_of(
    source: EdgeList,
    name: str,
    features: Any = None,
    labels: Any = None,
    directed: bool | None = None,
    unlinked: Unlinked = "error",
) -> Data:
    """The graph of edges that were read; for the arguments see ``load_graph``."""
    node_features = features_of(source, features)
    node_labels = labels_of(source, labels)
    nodes = _nodes(source, [values for values in (node_features, node_labels) if values is not None], unlinked)
    data = Data(num_nodes=len(nodes))
    data.node_ids = nodes
    data.name = name
    data.directed = bool(source.directed) if directed is None else directed
    notes = list(source.notes)
    set_edges(data, source, nodes, notes)
    _set_masks(data, source, nodes)
    alone = len(nodes) - len(torch.unique(data.edge_index))
    if alone:
        notes.append(f"{alone} of {len(nodes)} nodes have no edge")
    _set_features(data, node_features, nodes, unlinked, notes)
    if node_labels is not None:
        _set_labels(data, node_labels, nodes, unlinked, notes)
    data.notes = notes
    return data


def _check_alone(edges: Any, *others: Any) -> None:
    if any(other is not None for other in others):
        raise DataError(f"{edges} is a converted graph, which has all that belongs to it; name nothing else")


def _nodes(source: EdgeList, values: list[NodeValues], unlinked: Unlinked) -> Ids:
    """All node ids, sorted."""
    known = np.sort(source.ids)
    if len(np.unique(known)) < len(known):
        raise DataError(f"{source.origin}: a node id comes twice; ids must differ")
    rows = next((part for part in values if part.ids is None), None)
    if rows is not None and not source.all_nodes and known.dtype.kind == "i":
        known = _numbered_nodes(source, rows)
    for part in values if unlinked == "keep" else ():
        if part.ids is not None:
            ids = part.ids.astype(np.str_) if known.dtype.kind == "U" else part.ids
            known = np.union1d(known, ids) if ids.dtype.kind == known.dtype.kind else known
    return known


def _numbered_nodes(source: EdgeList, values: NodeValues) -> Ids:
    """Rows without ids belong to the nodes 0, 1, 2, ..., so edges may name no others."""
    size = num_rows(values)
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


def _set_masks(data: Data, source: EdgeList, nodes: Ids) -> None:
    for name, given in source.masks.items():
        mask = np.zeros(len(nodes), dtype=bool)
        mask[np.searchsorted(nodes, source.ids)] = given
        data[name] = torch.from_numpy(mask)


def _set_features(data: Data, values: NodeValues | None, nodes: Ids, unlinked: Unlinked, notes: list[str]) -> None:
    if values is None:
        notes.append(add_structural_features(data))
        return
    rows = aligned(values, nodes, "features", unlinked, notes)
    data.x = feature_tensor(values, rows, nodes)
    if values.sparse and (rows < 0).any():
        notes.append(
            f"{int((rows < 0).sum())} of {len(nodes)} nodes have no row in {values.origin}; their features are 0"
        )
    if values.names is not None:
        data.feature_names = values.names


def _set_labels(data: Data, values: NodeValues, nodes: Ids, unlinked: Unlinked, notes: list[str]) -> None:
    rows = aligned(values, nodes, "a label", unlinked, notes)
    data.y, data.label_names = label_tensor(values, rows)
    if values.parts is not None:
        _set_split(data, values, rows, notes)
    missing = int((data.y == UNLABELLED).sum())
    if missing:
        notes.append(f"{missing} of {len(nodes)} nodes have no label")


def _set_split(data: Data, values: NodeValues, rows: NDArray[np.int64], notes: list[str]) -> None:
    """The split that came with labels, as masks; it replaces one that the graph brought along."""
    assert values.parts is not None
    parts = [values.parts[row] if row >= 0 else None for row in rows.tolist()]
    unlabelled = [k for k, part in enumerate(parts) if part is not None and data.y[k] == UNLABELLED]
    if unlabelled:
        node = unlabelled[0]
        raise DataError(
            f"{values.where(int(rows[node]))}: the node is in the {parts[node]} split, but has no label"
            f"{and_more(len(unlabelled))}; give it one, or leave its split blank"
        )
    for name in MASKS:
        data[name] = torch.tensor([part is not None and name == f"{part}_mask" for part in parts])
    counts = ", ".join(f"{int(data[name].sum())} {name.removesuffix('_mask')}" for name in MASKS)
    notes.append(f"the column 'split' of {values.origin} is taken for the split of nodes: {counts}")
