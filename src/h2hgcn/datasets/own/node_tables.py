"""Files with one row a node: which column holds the ids, and whether the first line is a row."""

from collections.abc import Sequence
from pathlib import Path

from h2hgcn.datasets.own.tables import FileTable, Ids, read_table

ID_NAMES = frozenset({"id", "ids", "node", "node_id", "nodeid", "name"})
_SHOWN_NAMES = 5


def read_node_table(
    path: Path, known: Ids | None, names: frozenset[str] = frozenset(), id_names: frozenset[str] = ID_NAMES
) -> tuple[FileTable, list[str]]:
    """A table, and what is to be said of it. ``known`` are the ids of the edges; ``names`` are found in headers."""
    file = read_table(path, known_names=id_names | names)
    if not file.header_guessed or known is None:
        return file, []
    told = _told_by_ids(file, set(map(str, known.tolist())), id_names)
    if not told.has_header:
        doubt = [f"the first line of {path} is taken for a row, not for a header"] if file.has_header else []
        return told, doubt
    if told.columns[id_column(told.columns, id_names)].lower() in id_names:
        return told, []
    return told, [f"the first line of {path} is taken for a header: {', '.join(told.columns[:_SHOWN_NAMES])}"]


def id_column(columns: Sequence[str], id_names: frozenset[str] = ID_NAMES) -> int:
    return next((k for k, name in enumerate(columns) if name.lower() in id_names), 0)


def _told_by_ids(file: FileTable, nodes: set[str], id_names: frozenset[str]) -> FileTable:
    """The file, read anew if the ids of the edges tell better than its words whether it has a header.

    A first line that names a node, which no other line does, is a row; one that names none, above one that does, is a
    header.
    """
    column = id_column(file.columns, id_names) if file.has_header else 0
    ids = [str(node) for node in file.ids(column).tolist()]
    if file.has_header:
        name = file.columns[column]
        return file.with_header(False) if name in nodes and name not in ids else file
    is_header = len(ids) > 1 and ids[0] not in nodes and ids[1] in nodes
    return file.with_header(True) if is_header else file
