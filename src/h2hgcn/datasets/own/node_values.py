"""Values of a person's nodes, and how they are brought into the order of the nodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.own.ids import closest_id
from h2hgcn.datasets.own.tables import Ids, shown
from h2hgcn.errors import DataError

Unlinked = Literal["error", "keep", "drop"]


@dataclass
class NodeValues:
    """Values of nodes: in rows that belong to ``ids``, or, without ids, to the nodes 0, 1, 2, ...

    With ``sparse``, nodes without a row have zeros. ``parts`` are the parts of a split that came with labels.
    """

    values: Any
    origin: str
    where: Callable[[int], str]
    ids: Ids | None = None
    names: list[str] | None = None
    notes: list[str] = field(default_factory=list)
    sparse: bool = False
    parts: list[str | None] | None = None


def aligned(values: NodeValues, nodes: Ids, what: str, unlinked: Unlinked, notes: list[str]) -> NDArray[np.int64]:
    """For every node, the row of ``values`` that is its own, or -1. What is to be said goes to ``notes``."""
    notes.extend(values.notes)
    if values.ids is None:
        return _by_number(values, nodes, what)
    ids = values.ids.astype(np.str_) if nodes.dtype.kind == "U" else values.ids
    if ids.dtype.kind != nodes.dtype.kind:
        raise DataError(
            f"{values.where(0)}: the id {shown(ids[0])} is not an integer, but those of the edges are; "
            f"{what} must use the same ids"
        )
    order = np.argsort(ids, kind="stable")
    repeated = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(repeated):
        row = order[repeated[0] + 1]
        raise DataError(f"{values.where(int(row))}: the id {shown(ids[row])} comes a second time; keep one row a node")
    places = np.searchsorted(ids[order], nodes).clip(max=max(len(ids) - 1, 0))
    found = ids[order][places] == nodes if len(ids) else np.zeros(len(nodes), dtype=bool)
    strangers = np.flatnonzero(~np.isin(ids, nodes))
    if len(strangers) and unlinked == "error":
        near = closest_id(ids[strangers[0]], nodes)
        meant = "" if near is None else f"; did you mean {near!r}? Else"
        raise DataError(
            f"{values.where(int(strangers[0]))}: {shown(ids[strangers[0]])} has {what}, but no edge"
            f"{and_more(len(strangers))}{meant or ';'} pass unlinked='keep' (--unlinked keep) to have such nodes "
            "without edges, or 'drop'"
        )
    if len(strangers):
        notes.append(f"{len(strangers)} nodes with {what} but no edge were dropped")
    return np.where(found, order[places] if len(ids) else -1, -1)


def _by_number(values: NodeValues, nodes: Ids, what: str) -> NDArray[np.int64]:
    count = values.values.shape[0] if hasattr(values.values, "shape") else len(values.values)
    if len(nodes) != count or nodes.dtype.kind != "i" or not np.array_equal(nodes, np.arange(count)):
        raise DataError(
            f"{values.origin} has {count} rows without ids, but there are {len(nodes)} nodes with ids from "
            f"{shown(nodes[0])} to {shown(nodes[-1])}; {what} without ids belong to the nodes 0 to {count - 1}: pass "
            "them with ids, as in a column 'id'"
        )
    return np.arange(count)


def named_array(path: Path, arrays: Mapping[str, Any], names: Sequence[str]) -> Any:
    name = next((name for name in names if name in arrays), None) or (next(iter(arrays)) if len(arrays) == 1 else None)
    if name is None:
        raise DataError(f"{path} holds the arrays {', '.join(arrays)}; call one of them {names[0]!r}")
    return arrays[name]


def and_more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
