"""A user's own graph: files and objects in, a PyG ``Data`` out."""

import warnings
from collections import Counter
from collections.abc import Iterator
from os.path import expanduser
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data, Dataset
from torch_geometric.data.data import BaseData

from h2hgcn.datasets.annotated import edges_from_annotated, edges_from_h5ad, is_annotated
from h2hgcn.datasets.arrays import MASKS, UNLABELLED, load_arrays
from h2hgcn.datasets.edges import (
    EdgeList,
    checked_weights,
    edges_from_frame,
    edges_from_matrix,
    edges_from_networkx,
    edges_from_pairs,
    edges_from_pyg,
    edges_from_table,
    real_weights,
)
from h2hgcn.datasets.formats import edges_from_arrays, edges_from_market, edges_from_xml
from h2hgcn.datasets.labels import label_tensor, labels_of, split_column
from h2hgcn.datasets.nodes import (
    NodeValues,
    Unlinked,
    add_structural_features,
    aligned,
    and_more,
    feature_tensor,
    features_of,
    structural_note,
)
from h2hgcn.datasets.on_disk import is_converted, load_converted, new_folder, save_converted
from h2hgcn.datasets.registry import DATASETS
from h2hgcn.datasets.table_files import (
    TABLE_SUFFIXES,
    TextFormat,
    check_is_file,
    file_kind,
    open_table,
)
from h2hgcn.datasets.tables import EDGE_COLUMN_NAMES, ID_NAMES, Arrays, Ids, blocks_of, id_column, is_frame
from h2hgcn.errors import DataError, DataWarning

# More ids than this are not compared with each other.
_MOST_COMPARED = 1_000_000

FORMATS = {
    ".npz": edges_from_arrays,
    ".npy": edges_from_arrays,
    ".graphml": edges_from_xml,
    ".gexf": edges_from_xml,
    ".mtx": edges_from_market,
    ".h5ad": edges_from_h5ad,
}


def load_graph(
    edges: Any,
    features: Any = None,
    labels: Any = None,
    weights: Any = None,
    directed: bool | None = None,
    *,
    columns: tuple[str, str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
    unlinked: Unlinked = "error",
) -> Data:
    """A PyG ``Data`` with ``x``, ``y``, ``edge_index``, ``edge_weight``, ``node_ids``, ``directed`` and ``notes``.

    Args:
        edges: A file (CSV, TSV or other delimited text, also .gz; Parquet; NPZ; GraphML; GEXF; MatrixMarket; .h5ad), a
            DataFrame (pandas, polars) or Arrow table, a networkx graph, a SciPy matrix, a PyG ``Data``, an AnnData
            object, a list of pairs of nodes, or of triples of two nodes and a weight, or an array. An array or tensor
            of integers with two rows is an ``edge_index`` as in PyG, any other has a pair in every row; every item of a
            list is an edge.
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
        delimiter: What delimits the fields of text files: a character, ``"tab"`` or ``"space"``; None finds out.
        comment: What comment lines of text files begin with, ``#`` by default; ``"none"`` if all lines are data.
        unlinked: What to do with nodes that have features or labels but no edge.

    The folder of a converted graph (``convert_graph``) is mapped into memory, and goes without the other arguments.
    Self-loops and repeated edges are left out. What was left out, made up or taken for granted is in ``notes``, and
    given once as a ``DataWarning``. Node ids, integers or texts, are sorted; ``node_ids[i]`` is the id of node ``i``.
    """
    if isinstance(edges, str | Path) and Path(edges).is_dir():
        others = (features, labels, weights, directed, columns, header, delimiter, comment)
        if is_converted(edges) and any(other is not None for other in others):
            raise DataError(f"{edges} is a converted graph, which has all that belongs to it; name nothing else")
        return load_converted(Path(edges))
    text = TextFormat(header, delimiter, comment)
    source = read_edges_from(edges, weights, columns, text)
    name = Path(edges).name.split(".")[0] if isinstance(edges, str | Path) else "graph"
    data = graph_of(source, name, features, labels, directed, unlinked, text)
    for note in data.notes:
        warnings.warn(f"{source.origin}: {note}", DataWarning, stacklevel=2)
    return data


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
    delimiter: str | None = None,
    comment: str | None = None,
    unlinked: Unlinked = "error",
) -> Path:
    """Reads files as ``load_graph`` does and writes the graph to the folder ``out``, which ``load_graph`` maps into
    memory. Returns the folder.

    Of delimited and Parquet files, memory holds the node ids, the labels and one batch of rows at a time, and for edges
    with weights a number each; edges are sorted on disk.
    """
    out, text = Path(out), TextFormat(header, delimiter, comment)
    with new_folder(out) as folder:
        arrays = Arrays(folder)
        source = read_edges_from(Path(edges), weights, columns, text, arrays)
        data = graph_of(source, Path(edges).name.split(".")[0], features, labels, directed, unlinked, text, arrays)
        if data.get("x") is not None and data.x.layout != torch.strided:
            raise DataError(f"{features or edges} has sparse features, which cannot be converted; use load_graph")
        given = [Path(path) for path in (edges, features, labels) if path is not None and Path(path).is_file()]
        save_converted(folder, data, given)
    return out


def graph_of(
    source: EdgeList,
    name: str,
    features: Any = None,
    labels: Any = None,
    directed: bool | None = None,
    unlinked: Unlinked = "error",
    text: TextFormat | None = None,
    arrays: Arrays | None = None,
) -> Data:
    """The graph of edges that were read; for the arguments see ``load_graph``. ``arrays`` says where large arrays are
    kept; in a folder there are no structural features, which are made when the graph is loaded.
    """
    if unlinked not in ("error", "keep", "drop"):
        raise DataError(f"unlinked={unlinked!r} is not known; use 'error', 'keep' or 'drop'")
    arrays = arrays or Arrays()
    node_features = features_of(source, features, text, arrays)
    node_labels = None if labels is None and source.labels is None else labels_of(source, labels, text)
    nodes = _nodes(source, [values for values in (node_features, node_labels) if values is not None], unlinked)
    data = Data(num_nodes=len(nodes))
    data.node_ids = nodes
    data.name = name
    data.directed = bool(source.directed) if directed is None else directed
    notes = [*source.notes, *_look_alikes(nodes, "nodes")]
    _set_edges(data, source, notes, arrays)
    for mask_name, given in source.masks.items():
        mask = np.zeros(len(nodes), dtype=bool)
        mask[np.searchsorted(nodes, source.ids)] = given
        data[mask_name] = torch.from_numpy(mask)
    if node_features is not None:
        rows = aligned(node_features, nodes, "features", unlinked, notes)
        data.x = feature_tensor(node_features, rows, nodes, arrays)
        missing = int((rows < 0).sum())
        if missing:  # of sparse features
            notes.append(f"{missing} of {len(nodes)} nodes have no row in {node_features.origin}; their features are 0")
        if node_features.names is not None:
            data.feature_names = node_features.names
    elif arrays.folder is None:
        notes.append(add_structural_features(data))
    else:
        notes.append(structural_note(data.directed))
    if node_labels is not None:
        _set_labels(data, node_labels, unlinked, notes)
    data.notes = notes
    return data


def _nodes(source: EdgeList, values: list[NodeValues], unlinked: Unlinked) -> Ids:
    """All node ids, sorted."""
    known = np.sort(source.ids)
    if (known[1:] == known[:-1]).any():
        raise DataError(f"{source.origin}: a node id comes twice; ids must differ")
    by_number = next((part for part in values if part.ids is None), None)
    if by_number is not None and not source.all_nodes and known.dtype.kind == "i":
        known = np.arange(len(by_number))
        for codes in (source.source, source.target):
            ends = source.ids[codes]
            strangers = np.flatnonzero((ends < 0) | (ends >= len(known)))
            if len(strangers):
                row = int(strangers[0])
                raise DataError(
                    f"{source.where(row)}: the edge names node {ends[row]}, but {by_number.origin} has {len(known)} "
                    f"rows, for the nodes 0 to {len(known) - 1}; add its row, or fix the edge"
                )
    for part in values if unlinked == "keep" else ():
        if part.ids is not None:
            ids = part.ids.astype(np.str_) if known.dtype.kind == "U" else part.ids
            known = np.union1d(known, ids) if ids.dtype.kind == known.dtype.kind else known
    return known


def _set_edges(data: Data, source: EdgeList, notes: list[str], arrays: Arrays) -> None:
    """Gives ``data`` its ``edge_index`` and ``edge_weight``: sorted, each edge once, both directions if undirected."""
    size, counts, weighted = data.num_nodes, Counter[str](), source.weights is not None
    keys, *weights = arrays.join("keys", _edge_keys(source, data.node_ids, data.directed, counts))
    if weighted:
        order = np.argsort(keys, kind="stable")
        keys, *weights = arrays.join("sorted", ((keys[order[p]], weights[0][order[p]]) for p in blocks_of(len(keys))))
    else:
        keys.sort()
    is_first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    _note_repetitions(is_first, weights, data.directed, counts, notes)
    kept = int(is_first.sum())
    edge_index = arrays.empty("edge_index", (2, kept), np.int64)
    values = arrays.empty("edge_weight", (kept,), np.float32) if weighted else None
    linked = np.zeros(size, bool)
    start = 0
    for part in blocks_of(len(keys)):
        chosen = keys[part][is_first[part]]
        block = slice(start, start + len(chosen))
        edge_index[:, block] = np.divmod(chosen, max(size, 1))
        linked[edge_index[:, block]] = True
        if values is not None:
            values[block] = weights[0][part][is_first[part]]
        start = block.stop
    if not linked.all():
        notes.append(f"{size - int(linked.sum())} of {size} nodes have no edge")
    data.edge_index = torch.from_numpy(edge_index)
    if values is not None:
        data.edge_weight = torch.from_numpy(values)


def _edge_keys(
    source: EdgeList, nodes: Ids, directed: bool, counts: Counter[str]
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Edges as numbers ``source * nodes + target``, with their weights; undirected ones also in the other direction.

    Self-loops are left out. ``counts`` gets how many there are, and how many edges go to a smaller node.
    """
    places = np.searchsorted(nodes, source.ids)
    for part in blocks_of(len(source.source)):
        first, second = places[source.source[part]], places[source.target[part]]
        kept = first != second
        weights: tuple[NDArray[Any], ...] = ()
        if source.weights is not None:
            start = part.start
            weights = (checked_weights(source.weights[part], lambda row: source.where(start + row))[kept],)  # noqa: B023
        first, second = first[kept], second[kept]
        counts["loops"] += len(kept) - len(first)
        counts["backwards"] += int((first > second).sum())
        keys = first * len(nodes) + second
        if not directed:  # one after the other, so that the first of equal edges is the same in both directions
            keys = np.stack([keys, second * len(nodes) + first], 1).ravel()
            weights = tuple(np.repeat(values, 2) for values in weights)
        yield keys, *weights


def _note_repetitions(
    is_first: NDArray[np.bool_], weights: list[Any], directed: bool, counts: Counter[str], notes: list[str]
) -> None:
    directions = 1 if directed else 2
    kept = int(is_first.sum()) // directions
    repeated = len(is_first) // directions - kept
    if counts["loops"]:
        notes.append(f"{_count(counts['loops'], 'self-loop')} left out; every layer adds its own")
    if repeated and not directed and repeated == kept == counts["backwards"]:
        notes.append(f"every edge is listed in both directions: {repeated} undirected edges")
    elif repeated:
        notes.append(f"{_count(repeated, 'repeated edge')} left out")
    for values in weights if repeated else ():
        firsts, others = np.flatnonzero(is_first), np.flatnonzero(~is_first)
        same = firsts[np.searchsorted(firsts, others) - 1]
        differing = int((values[others] != values[same]).sum()) // directions
        if differing:
            notes.append(
                f"of the repeated edges, {differing} had another weight than the first, which was kept; add them up "
                "beforehand if that is meant"
            )


def _count(number: int, what: str) -> str:
    return f"1 {what} was" if number == 1 else f"{number} {what}s were"


def _set_labels(data: Data, values: NodeValues, unlinked: Unlinked, notes: list[str]) -> None:
    """Labels, and masks of a split that came with them, which replace those that the graph brought along."""
    rows = aligned(values, data.node_ids, "a label", unlinked, notes)
    data.y, data.label_names = label_tensor(values, rows)
    missing = data.y == UNLABELLED
    if values.parts is not None:
        parts = [values.parts[row] if row >= 0 else None for row in rows.tolist()]
        unlabelled = [k for k in missing.nonzero().flatten().tolist() if parts[k] is not None]
        if unlabelled:
            node = unlabelled[0]
            raise DataError(
                f"{values.where(int(rows[node]))}: the node is in the {parts[node]} split, but has no label"
                f"{and_more(len(unlabelled))}; give it one, or leave its split blank"
            )
        for name in MASKS:
            data[name] = torch.tensor([name == f"{part}_mask" for part in parts])
        counts = ", ".join(f"{int(data[name].sum())} {name.removesuffix('_mask')}" for name in MASKS)
        notes.append(f"the column 'split' of {values.origin} is taken for the split of nodes: {counts}")
    if missing.any():
        notes.append(f"{int(missing.sum())} of {len(rows)} nodes have no label")
    notes.extend(_look_alikes(np.array(data.label_names), "classes"))


def _look_alikes(names: Ids, what: str) -> Iterator[str]:
    """A note on texts that may have been meant to be the same."""
    if names.dtype.kind != "U" or len(names) > _MOST_COMPARED:
        return
    folded = pc.utf8_lower(pc.replace_substring_regex(pa.array(names, pa.large_string()), r"\s+", " "))
    codes = folded.dictionary_encode().indices.to_numpy()
    surplus = len(codes) - len(np.unique(codes))
    if surplus:
        first, second, *_ = names[codes == codes[np.argmax(np.bincount(codes)[codes] > 1)]].tolist()
        more = f", and {surplus - 1:,} more do" if surplus > 1 else ""
        yield f"{first!r} and {second!r} differ in case or blanks only, but are different {what}{more}"


def read_edges_from(
    source: Any, weights: Any, columns: tuple[str, str] | None, text: TextFormat, arrays: Arrays | None = None
) -> EdgeList:
    """The edges of a file or of an object in memory, with the weights that were asked for."""
    are_given = weights is not None and not isinstance(weights, str | bool)
    edges = _edges_of(source, False if are_given else weights, columns, text, arrays or Arrays())
    if are_given:
        edges.weights = real_weights(weights, len(edges.source), edges.origin)
    elif weights and edges.weights is None and len(edges.source):
        named = f" called {weights!r}" if isinstance(weights, str) else ""
        raise DataError(f"{edges.origin}: there are no weights{named}; leave them out, or pass them as weights=[...]")
    return edges


def _edges_of(
    source: Any, weights: str | bool | None, columns: tuple[str, str] | None, text: TextFormat, arrays: Arrays
) -> EdgeList:
    if isinstance(source, str | Path):
        path = Path(expanduser(source))
        kind = file_kind(path)
        if kind not in FORMATS:
            # columns may also be named by number, which tells nothing of a header
            named = {name.strip().lower() for name in (*(columns or ()), weights) if isinstance(name, str)}
            names = EDGE_COLUMN_NAMES | {name for name in named if not name.isdecimal()}
            table = open_table(path, text, names, keep=arrays.folder is None)
            return edges_from_table(table, weights, columns, text, arrays)
        check_is_file(path)
        if columns is not None or text.header is not None:
            raise DataError(f"{path}: columns and header are for delimited and Parquet files, not for {kind}")
        return FORMATS[kind](path, weights)
    if is_frame(source) and text.header is None:
        return edges_from_frame(source, weights, columns)
    if columns is not None or text.header is not None:
        raise DataError("columns is for tables and DataFrames, header for delimited files")
    if isinstance(source, nx.Graph):
        return edges_from_networkx(source, weights, "the networkx graph")
    if is_annotated(source):
        return edges_from_annotated(source, weights, "the AnnData object")
    if sp.issparse(source):
        return edges_from_matrix(source, weights, "the SciPy matrix")
    if isinstance(source, Data):
        return edges_from_pyg(source, weights)
    if isinstance(source, BaseData | Dataset):
        raise DataError(
            f"edges come from one homogeneous graph, not from a {type(source).__name__}; pass dataset[0], or "
            "graph.to_homogeneous()"
        )
    if not hasattr(source, "__iter__"):
        raise DataError(f"edges come from a file or a graph, not from an object of type {type(source).__name__}")
    if isinstance(source, torch.Tensor) and source.layout != torch.strided:
        raise DataError("the edges are a sparse tensor; pass a SciPy matrix, or its edge_index")
    return edges_from_pairs(source, with_weights=weights is not False)


def load_graph_by_text(edges: str, features: str | None = None, **flags: Any) -> Data:
    """``load_graph`` for what flags and configuration files say."""
    if not edges:
        raise DataError("--edges is empty; name a file of edges")
    path = Path(edges)
    if edges.lower() in DATASETS and not path.exists():
        raise DataError(f"--edges {edges}: that is a named dataset, not a file; train on it with --dataset {edges}")
    if path.is_dir() and not is_converted(edges):
        raise DataError(f"{edges} is a folder; name a file, or for a folder of graphs use --graphs {edges}")
    chosen: Any = features
    if features is not None and path.suffix.lower() in (".graphml", ".gexf", ".h5ad"):  # which have node attributes
        is_file = Path(features).exists() or file_kind(Path(features)) in TABLE_SUFFIXES | {".npy", ".npz"}
        is_one = path.suffix.lower() == ".h5ad" and "," not in features  # which may be a matrix
        chosen = features if is_file or is_one else features.split(",")
    return load_graph(path, chosen, **options_of(**flags))


def options_of(
    weights: str | None = None, source: str | None = None, target: str | None = None, **others: Any
) -> dict[str, Any]:
    """The arguments of ``load_graph`` for what flags say of a graph."""
    if (source is None) != (target is None):
        raise DataError("--source and --target belong together; give both or none")
    options = others | {
        "weights": False if weights == "none" else weights, "columns": None if source is None else (source, target),
    }  # fmt: skip
    return {name: value for name, value in options.items() if value is not None}


def has_split(edges: str | None, labels: str | None, text: TextFormat | None = None) -> bool:
    """Whether the files of a graph have a split of its nodes, as far as their headers say: a column beside the labels,
    or masks beside the edges. What is wrong with a file is reported when it is loaded.
    """
    try:
        if labels is not None and Path(labels).is_file() and file_kind(Path(labels)) not in (".npy", ".npz"):
            columns = open_table(Path(labels), text or TextFormat(), ID_NAMES | {"label", "split"}).columns
            if split_column(columns, id_column(columns)) is not None:
                return True
        if edges is not None and Path(edges).suffix.lower() == ".npz" and Path(edges).is_file():
            arrays = load_arrays(Path(edges))
            return isinstance(arrays, dict) and all(np.ndim(arrays.get(name, 0)) == 1 for name in MASKS)
    except (DataError, OSError, pa.ArrowException):
        pass
    return False
