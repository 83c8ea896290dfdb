"""A user's own graph: files and objects in, a PyG ``Data`` out."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.datasets.arrays import UNLABELLED, load_arrays
from h2hgcn.datasets.edges import read_edges_from, single_precision_weights
from h2hgcn.datasets.nodes import (
    NodeValues,
    Unlinked,
    aligned,
    and_more,
    feature_tensor,
    features_of,
    label_tensor,
    labels_of,
    num_rows,
    split_column,
)
from h2hgcn.datasets.on_disk import is_converted, load_converted
from h2hgcn.datasets.registry import DATASETS
from h2hgcn.datasets.structural import add_structural_features
from h2hgcn.datasets.table_columns import ID_NAMES, MASKS, EdgeList, id_column
from h2hgcn.datasets.tables import PARQUET_SUFFIXES, Ids, find_layout, read_text
from h2hgcn.errors import DataError, DataWarning


def set_edges(data: Data, source: EdgeList, nodes: Ids, notes: list[str]) -> None:
    """Gives ``data`` its ``edge_index`` and ``edge_weight``; what is left out is noted."""
    places = np.searchsorted(nodes, source.ids)
    first, second = places[source.source], places[source.target]
    weights = single_precision_weights(source)
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
    value = None if weights is None else weights[~is_loop][where]
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


def _note_other_weights(weights: NDArray[np.float32], first: NDArray[np.float32], notes: list[str]) -> None:
    differing = int((weights != first).sum())
    if differing:
        notes.append(
            f"of the repeated edges, {differing} had another weight than the first, which was kept; add them up "
            "beforehand if that is meant"
        )


def _count(number: int, what: str) -> str:
    return f"1 {what} was" if number == 1 else f"{number} {what}s were"


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


def load_graph_by_text(
    edges: str,
    features: str | None = None,
    labels: str | None = None,
    weights: str | None = None,
    directed: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    header: bool | None = None,
    unlinked: str | None = None,
) -> Any:
    """``load_graph`` for what flags and configuration files say."""
    if not edges:
        raise DataError("--edges is empty; name a file of edges")
    if edges in DATASETS and not Path(edges).exists():
        raise DataError(f"--edges {edges}: that is a named dataset, not a file; train on it with --dataset {edges}")
    if Path(edges).is_dir() and not is_converted(edges):
        raise DataError(
            f"{edges} is a folder; for a folder of graphs use --graphs {edges}, for one graph name its file"
        )
    if (source is None) != (target is None):
        raise DataError("--source and --target belong together; give both or none")
    chosen: Any = features
    if features is not None and _has_attributes(edges) and not Path(features).exists():
        chosen = features.split(",")
    columns = None if source is None or target is None else (source, target)
    return load_graph(
        Path(edges), chosen, labels, False if weights == "none" else weights, directed,
        columns=columns, header=header, unlinked=unlinked or "error",  # type: ignore[arg-type]  # checked there
    )  # fmt: skip


def has_split(edges: str | None, labels: str | None) -> bool:
    """Whether the files of a graph have a split of its nodes, as far as their headers say: a column beside the labels,
    or masks beside the edges. What is wrong with a file is said when it is loaded.
    """
    try:
        if labels is not None and Path(labels).is_file() and Path(labels).suffix.lower() not in (".npy", ".npz"):
            columns = _columns(Path(labels))
            if split_column([name for k, name in enumerate(columns) if k != id_column(columns)]) is not None:
                return True
        if edges is not None and Path(edges).suffix.lower() == ".npz" and Path(edges).is_file():
            arrays = load_arrays(Path(edges))
            return not isinstance(arrays, np.ndarray) and all(np.ndim(arrays.get(name, 0)) == 1 for name in MASKS)
    except (DataError, OSError, pa.ArrowException):
        pass
    return False


def _columns(path: Path) -> list[str]:
    if path.suffix.lower() in PARQUET_SUFFIXES:
        return list(pq.read_schema(path).names)
    return find_layout(path, read_text(path), None, ID_NAMES | {"label", "split"}).columns


def _has_attributes(graph: str) -> bool:
    return Path(graph).suffix.lower() in (".graphml", ".gexf")
