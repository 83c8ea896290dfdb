"""A folder of graphs as a collection: one graph a file, or the files of a TU dataset."""

import math
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from os.path import expanduser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected, to_undirected

from h2hgcn.datasets.arrays import unknown_nodes
from h2hgcn.datasets.collection import GraphList
from h2hgcn.datasets.edges import EdgeList
from h2hgcn.datasets.labels import label_tensor, read_labels
from h2hgcn.datasets.loading import FORMATS, graph_of, options_of, read_edges_from
from h2hgcn.datasets.nodes import add_structural_features, and_more, structural_features, structural_note
from h2hgcn.datasets.table_files import TABLE_SUFFIXES, TextFormat
from h2hgcn.datasets.tables import ID_NAMES, listed, single
from h2hgcn.errors import DataError, DataWarning

if TYPE_CHECKING:
    from h2hgcn.datasets.benchmarks import TUGraphs

_GRAPH_SUFFIXES = TABLE_SUFFIXES | FORMATS.keys()
_GRAPH_ID_NAMES = ID_NAMES | {"graph", "graph_id", "graphs", "file"}
_TU_EDGES = "_A.txt"
_NODE_LABEL = "node label"

Classes = tuple[torch.Tensor, list[Any]]  # counted from 0, and their names


def load_graphs(
    folder: str | PathLike[str],
    labels: Any = None,
    features: Any = None,
    weights: str | bool | None = None,
    directed: bool | None = None,
    *,
    columns: tuple[str, str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
) -> GraphList:
    """The graphs of a folder, with their names, classes and features, for ``fit``, ``h2hgcn.train`` or ``run.predict``.

    The folder holds one graph a file, in any format that ``load_graph`` reads, or the files of a TU dataset
    (``NAME_A.txt``, ``NAME_graph_indicator.txt``, ...). A graph is called by its file's name without the ending, or by
    its number in a TU dataset, counted from 0.

    Args:
        labels: A file or DataFrame with a graph's name and its class, a mapping by name, or a list in the order of
            ``graph_ids``. None takes ``labels.csv`` (or another table called ``labels``) in the folder, or the
            ``graph_labels`` of a TU dataset; without these, and with False, the graphs have no classes.
        features: Names of node attributes (GraphML, GEXF) or of columns of a TU dataset. None takes the ``x`` of NPZ
            files, all attributes that are a number at every node of every graph, or the node attributes and one-hot
            node labels of a TU dataset; where there are none, and with False, the structural ones of ``load_graph``.
        weights, directed, columns, header, delimiter, comment: As for ``load_graph``, the same for all files.

    What was left out, made up or assumed is in ``notes``, and given once as a ``DataWarning``.
    """
    path = Path(expanduser(folder))
    if not path.is_dir():
        what = "is a file; one graph is read by load_graph (--edges)" if path.exists() else "does not exist"
        raise DataError(f"{path} {what}; name a folder of graphs")
    if isinstance(features, str):
        features = [features]
    text, prefix = TextFormat(header, delimiter, comment), _tu_prefix(path)
    if prefix is not None:
        if columns is not None or text != TextFormat() or weights:
            raise DataError(f"{path} holds a TU dataset; columns, header, delimiter, comment and weights do not apply")
        graphs = _tu_graphs(*prefix, features, directed, labels)
    else:
        read = partial(read_edges_from, weights=weights, columns=columns, text=text)
        graphs = _file_graphs(path, labels, features, directed, read, text)
    for note in graphs.notes:
        warnings.warn(f"{path}: {note}", DataWarning, stacklevel=2)
    return graphs


def load_graphs_by_text(graphs: str, features: str | Sequence[str] | None = None, **flags: Any) -> GraphList:
    """``load_graphs`` for what flags and configuration files say."""
    if not graphs:
        raise DataError("--graphs is empty; name a folder of graphs")
    chosen = False if features == "none" else features.split(",") if isinstance(features, str) else features
    return load_graphs(graphs, features=chosen, **options_of(**flags))


def _file_graphs(
    folder: Path, labels: Any, features: Any, directed: bool | None, read: Callable[[Path], EdgeList], text: TextFormat
) -> GraphList:
    labels = _labels_file(folder) if labels is None else labels
    files, notes = _graph_files(folder, labels)
    sources = {name: read(path) for name, path in files.items()}
    directions: dict[bool, str] = {}
    for source in sources.values():
        if not len(source.ids):
            raise DataError(f"{source.origin} holds a graph without nodes; take it out of the folder")
        source.labels = None  # those of nodes, where a graph has one class
        directions.setdefault(bool(source.directed), source.origin)
    if directed is None and len(directions) > 1:
        raise DataError(
            f"{directions[True]} has directed edges, {directions[False]} has undirected ones; pass directed=False "
            "(--undirected) to read all edges both ways, or directed=True (--directed) to read all as they are listed"
        )
    chosen = _chosen_features(list(sources.values()), features, notes)
    graphs: list[Data] = []
    remarks: dict[str, list[str]] = {}  # notes that differ in numbers alone, together
    for name, source in sources.items():
        try:
            graph = graph_of(source, name, chosen, None, directed)
        except DataError as error:
            raise error if source.origin in str(error) else DataError(f"{source.origin}: {error}") from error
        for note in graph.notes:
            remarks.setdefault(re.sub(r"\d+", "0", note), []).append(f"{files[name].name}: {note}")
        graphs.append(graph)
    for kind, same in remarks.items():
        if "no features" not in kind:
            notes.append(same[0] + (f" (similar in {len(same) - 1} more)" if len(same) > 1 else ""))
    notes += [note for note in graphs[0].notes if note == structural_note(bool(graphs[0].directed))]
    ids = list(sources)
    classes = None if labels is None or labels is False else _classes(labels, ids, notes, text)
    return _collection(folder.name, graphs, ids, classes, notes)


def _collection(
    name: str, graphs: list[Data], ids: list[str] | None, classes: Classes | None, notes: list[str]
) -> GraphList:
    """The graphs with what belongs to each; what they share is in the list."""
    y, label_names = (None, None) if classes is None else classes
    plain = []
    for number, graph in enumerate(graphs):
        kept = Data(x=graph.x, edge_index=graph.edge_index)
        if graph.edge_weight is not None:
            kept.edge_weight = graph.edge_weight
        if ids is not None:
            kept.name, kept.node_ids = ids[number], graph.node_ids
        if y is not None:
            kept.y = y[number : number + 1]
        plain.append(kept)
    return GraphList(
        plain, name=name, graph_ids=ids, label_names=label_names, notes=notes, labeled=y is not None,
        feature_names=getattr(graphs[0], "feature_names", None),
    )  # fmt: skip


def _graph_files(folder: Path, labels: Any) -> tuple[dict[str, Path], list[str]]:
    """The files by the names of their graphs, in natural order (g2 before g10), and notes on what is left out."""
    tables = {_labels_file(folder)}
    if isinstance(labels, str | PathLike):
        tables.add(Path(expanduser(labels)).resolve())
    found: dict[str, Path] = {}
    others = []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.startswith(".") or not tables.isdisjoint((path, path.resolve())):
            continue
        name, kind = _name_and_kind(path)
        if path.is_dir() or kind not in _GRAPH_SUFFIXES:
            others.append(path.name)
        elif name in found:
            raise DataError(f"{found[name]} and {path} are both called {name!r} without their endings; rename one")
        else:
            found[name] = path
    if not found:
        held = f"it holds {', '.join(others[:3])}" if others else "it is empty"
        kinds = ", ".join(sorted(_GRAPH_SUFFIXES))
        raise DataError(f"{folder} holds no graphs ({held}); put one file a graph into it: {kinds}")
    notes = [f"left out, since these are no graph files: {listed(others)}"] if others else []
    return {name: found[name] for name in sorted(found, key=_natural)}, notes


def _labels_file(folder: Path) -> Path | None:
    """The table in the folder that is called ``labels``."""
    parts = {path: _name_and_kind(path) for path in folder.glob("labels.*")}
    return min(
        (path for path, (name, kind) in parts.items() if name == "labels" and kind in TABLE_SUFFIXES), default=None
    )


def _name_and_kind(path: Path) -> tuple[str, str]:
    """A file's name without its ending, and the ending, ``.gz`` aside."""
    plain = Path(path.stem) if path.suffix.lower() == ".gz" else Path(path.name)
    return plain.stem, plain.suffix.lower()


def _natural(name: str) -> tuple[list[Any], str]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)], name


def _chosen_features(sources: list[EdgeList], features: Any, notes: list[str]) -> Any:
    """What ``graph_of`` takes as features, the same for all graphs; None are those of files, or structural ones."""
    if features is False or (features is not None and _is_structural(features)):
        for source in sources:
            source.features = None
        return None
    if features is not None:
        lacking = next((source.origin for source in sources if source.attributes is None), None)
        if lacking is not None:
            raise DataError(f"{lacking} has no node attributes; use GraphML or GEXF files, or leave features out")
        return list(features)
    origins = {source.features is not None: source.origin for source in reversed(sources)}
    if len(origins) > 1:
        raise DataError(f"{origins[True]} has features (x), {origins[False]} has none; give all the same columns")
    if True in origins:
        return None
    names = list(dict.fromkeys(name for source in sources for name in source.attribute_names))
    numeric = [name for name in names if all(_is_numeric(source, name) for source in sources)]
    unused = [name for name in names if name not in numeric]
    if numeric:
        notes.append(f"node attributes taken as features: {listed(numeric)}")
    if unused:
        notes.append(f"node attributes not used, since they are not a number at every node: {listed(unused)}")
    return numeric or None


def _is_numeric(source: EdgeList, name: str) -> bool:
    values = {} if source.attributes is None else source.attributes(name)
    return len(values) == len(source.ids) and all(
        isinstance(value, int | float) and math.isfinite(value) for value in values.values()
    )


def _is_structural(features: Sequence[str]) -> bool:
    """Whether these are the names of structural features, as a run keeps them."""
    empty = torch.zeros(2, 0, dtype=torch.long)
    return any(list(features) == structural_features(empty, 1, both)[1] for both in (False, True))


def _classes(labels: Any, names: list[str], notes: list[str], text: TextFormat | None = None) -> Classes:
    """The class of each graph, as it is labeled."""
    values = read_labels(labels, np.array(names), _GRAPH_ID_NAMES, text)
    notes += values.notes
    if values.parts is not None:
        notes.append(f"{values.origin}: the column 'split' is not used; collections are split into folds")
    if values.ids is None and len(values) != len(names):
        raise DataError(f"{values.origin}: {len(values)} classes for {len(names)} graphs; give each graph one")
    row_of: dict[str, int] = {}
    known = set(names)
    for row, given in enumerate(names if values.ids is None else map(str, values.ids.tolist())):
        name = given if given in known else _name_and_kind(Path(given))[0]  # perhaps its file's whole name
        if name not in known:
            raise DataError(f"{values.where(row)}: {unknown_nodes([given], np.array(names), 'graph')}")
        if name in row_of:
            raise DataError(f"{values.where(row)}: the graph {name!r} comes a second time; keep one row a graph")
        row_of[name] = row
    missing = [name for name in names if name not in row_of or values.values[row_of[name]] is None]
    if missing:
        raise DataError(
            f"{values.origin}: the graph {missing[0]!r} has no class{and_more(len(missing))}; add its row, or take it "
            "out of the folder and predict it later"
        )
    return label_tensor(values, np.array([row_of[name] for name in names]))


def _tu_prefix(folder: Path) -> tuple[Path, str] | None:
    """Where the files of a TU dataset are, and what their names start with; PyG keeps them in ``raw``."""
    for place in (folder, folder / "raw"):
        edges = sorted(path.name.removesuffix(_TU_EDGES) for path in place.glob(f"*{_TU_EDGES}"))
        names = [name for name in edges if (place / f"{name}_graph_indicator.txt").is_file()]
        if len(names) > 1:
            raise DataError(f"{place} holds the TU datasets {', '.join(names)}; keep one in a folder")
        if names:
            return place, names[0]
    return None


def _tu_graphs(folder: Path, name: str, features: Any, directed: bool | None, labels: Any) -> GraphList:
    from h2hgcn.datasets.benchmarks import read_tu

    tu = read_tu(folder, name)
    unused = [part for part in ("edge_labels", "edge_attributes") if (folder / f"{name}_{part}.txt").exists()]
    notes = [f"{' and '.join(unused)} are not used"] if unused else []
    x, columns = _tu_features(tu, folder / name, features)
    note = None
    if directed is None:
        owner = np.repeat(np.arange(tu.num_graphs), np.diff(tu.edge_pointers))
        whole = torch.from_numpy(tu.edge_index + tu.node_pointers[owner])
        directed = not is_undirected(whole, num_nodes=len(tu.labels))
    graphs = []
    for number in range(tu.num_graphs):
        first, last = tu.node_pointers[number : number + 2].tolist()
        start, end = tu.edge_pointers[number : number + 2].tolist()
        edge_index = torch.from_numpy(np.ascontiguousarray(tu.edge_index[:, start:end]))
        edge_index = edge_index if directed else to_undirected(edge_index, num_nodes=last - first)
        graph = Data(edge_index=edge_index, num_nodes=last - first, directed=directed)
        if x is None:
            note = add_structural_features(graph)
        else:
            graph.x, graph.feature_names = x[first:last], columns
        graphs.append(graph)
    if note is not None:
        notes.append(note)
    classes = None
    if labels is None and tu.y is not None:
        known, y = np.unique(tu.y, return_inverse=True)
        classes = torch.from_numpy(y), known.tolist()
    elif labels is not None and labels is not False:
        classes = _classes(labels, [str(number) for number in range(len(graphs))], notes)
    return _collection(name, graphs, None, classes, notes)


def _tu_features(tu: "TUGraphs", where: Path, features: Any) -> tuple[torch.Tensor | None, list[str]]:
    """Features of all nodes and the names of the columns; None for structural ones."""
    one_hot, label_columns = tu.one_hot_labels()
    attribute_columns = [f"node attribute {k + 1}" for k in range(tu.attributes.shape[1])]
    columns = attribute_columns + label_columns
    if features is False or not (columns or features) or (features and _is_structural(features)):
        return None, []
    x = np.concatenate([single(tu.attributes), one_hot], 1, dtype=np.float32)
    if not np.isfinite(x).all():
        raise DataError(f"{where}_node_attributes.txt holds NaN or infinity; fill the gap, or leave the nodes out")
    if features is None:
        return torch.from_numpy(x), columns
    wanted = list(features)
    # a label that these graphs lack is a column of zeros, one that the model does not know cannot be used
    strange = [name for name in wanted if name not in columns and not name.startswith(_NODE_LABEL)]
    if strange:
        raise DataError(f"{where}: no node has {strange[0]!r}; the columns are {listed(columns)}")
    unknown = [name for name in label_columns if name not in wanted and x[:, columns.index(name)].any()]
    if unknown and any(name.startswith(_NODE_LABEL) for name in wanted):
        raise DataError(f"{where}_node_labels.txt: some nodes have {unknown[0]!r}, which is none of {listed(wanted)}")
    empty = np.zeros(len(x), np.float32)
    chosen = [x[:, columns.index(name)] if name in columns else empty for name in wanted]
    return torch.from_numpy(np.stack(chosen, 1)), wanted
