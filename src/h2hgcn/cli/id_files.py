"""Files that say what to predict: pairs of nodes, nodes, or numbers of graphs, each named by id."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2hgcn.errors import DataError, DataWarning

if TYPE_CHECKING:
    from h2hgcn.datasets.own.tables import FileTable


def read_pairs(path: Path, known: Any) -> list[list[Any]]:
    """The sources and the targets of pairs of ``known`` ids, as two lists."""
    from h2hgcn.datasets.own.edge_tables import EDGE_COLUMN_NAMES, end_columns

    table = _read(path, known, EDGE_COLUMN_NAMES)
    if len(table.columns) < 2:
        raise DataError(f"{path} has one column; a pair needs two nodes: delimit them by a comma or a tab")
    sources, targets = _known_ids(table, end_columns(table), known, "node")
    alone = next((row for row, (a, b) in enumerate(zip(sources, targets, strict=True)) if a == b), None)
    if alone is not None:
        raise DataError(
            f"{table.where(alone)}: the pair is the node {sources[alone]!r} with itself; leave the row out, since "
            "a link joins two nodes"
        )
    return [sources, targets]


def read_ids(path: Path, known: Any, what: str) -> list[Any]:
    """Some of the ``known`` ids of nodes or graphs, as ``what`` says."""
    from h2hgcn.datasets.own.node_tables import id_column

    table = _read(path, known, frozenset({what}))
    return _known_ids(table, (id_column(table.columns),), known, what)[0]


def _read(path: Path, known: Any, names: frozenset[str]) -> "FileTable":
    from h2hgcn.datasets.own.node_tables import read_node_table

    table, notes = read_node_table(path, known, names)
    if names.isdisjoint(name.lower() for name in table.columns):
        for note in notes:
            warnings.warn(note, DataWarning, stacklevel=2)
    return table


def _known_ids(table: "FileTable", columns: tuple[int, ...], known: Any, what: str) -> list[list[Any]]:
    """Ids as the graph has them, found by what is written, so that 7 is 7 in a column of text, too."""
    from h2hgcn.datasets.own.ids import unknown_nodes

    by_text = {str(node): node for node in known.tolist()}
    written = [table.column(column).ids().to_pylist() for column in columns]
    unknown = [
        (row, node) for row, ids in enumerate(zip(*written, strict=True)) for node in ids if str(node) not in by_text
    ]
    if unknown:
        row = unknown[0][0]
        said = unknown_nodes([node for _, node in unknown], known, what)
        raise DataError(f"{table.where(row)}: {said}{_hint(table, row)}")
    return [[by_text[str(node)] for node in ids] for ids in written]


def _hint(table: "FileTable", row: int) -> str:
    is_first = row == 0 and not table.has_header
    return "; if the line is a header, name its columns id, or source and target" if is_first else ""
