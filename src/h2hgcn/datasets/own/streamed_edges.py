"""Edges of any number: read in blocks, sorted on disk, written as an array that can be mapped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.datasets.own.streamed_ids import Codes, StreamedIds
from h2hgcn.datasets.own.streams import TableStream, single_numbers
from h2hgcn.errors import DataError
from h2hgcn.jit import compiled

# Numbers that are looked at together.
_BLOCK = 1 << 22


def write_edges(
    stream: TableStream, ends: tuple[int, int], weight: int | None, ids: StreamedIds, directed: bool, folder: Path
) -> list[str]:
    """Writes ``edge_index.npy``, and ``edge_weight.npy`` of a column ``weight``: sorted, without loops and repetitions,
    both directions of undirected edges; returns what is to be noted.
    """
    size = len(ids.ids)
    loops = _write_keys(stream, ends, weight, ids, directed, folder)
    keys, weights = _sorted_keys(folder, weight is not None)
    kept, differing = _keep_first(keys, weights)
    length = kept if directed else 2 * kept
    edges = np.lib.format.open_memmap(folder / "edge_index.npy", "w+", np.int64, (2, length))
    values = weights
    if weight is not None:
        values = np.lib.format.open_memmap(folder / "edge_weight.npy", "w+", np.float32, (length,))
    if directed:
        for part in _parts(kept):
            edges[0, part], edges[1, part] = np.divmod(keys[part], size)
        values[:kept] = weights[:kept]
    else:
        _fill_both_ways(keys[:kept], weights[:kept], size, edges, values)
    for scratch in folder.glob("*.scratch"):
        scratch.unlink()
    notes = [
        (loops, "self-loops were left out; every layer adds its own"),
        (len(keys) - kept, "repeated edges were left out"),
        (differing, "of the repeated edges had another weight than the first, which was kept"),
    ]
    return [f"{count} {what}" for count, what in notes if count]


def _write_keys(
    stream: TableStream, ends: tuple[int, int], weight: int | None, ids: StreamedIds, directed: bool, folder: Path
) -> int:
    """Edges as one number each, and their weights, in files; returns the number of loops, which are left out."""
    loops = 0
    with (folder / "keys.scratch").open("wb") as keys, (folder / "weights.scratch").open("wb") as weights:
        for block in stream.blocks():
            first, second = (ids.numbers(block.column(column), str(stream.path)) for column in ends)
            no_loop = first != second
            loops += int((~no_loop).sum())
            if not directed:
                first, second = np.minimum(first, second), np.maximum(first, second)
            (first * len(ids.ids) + second)[no_loop].tofile(keys)
            if weight is not None:
                _weights(block.column(weight), stream, weight)[no_loop].tofile(weights)
    return loops


def _weights(column: Any, stream: TableStream, number: int) -> NDArray[np.float32]:
    where = f"{stream.path}, column {stream.columns[number]!r}"
    weights = single_numbers(column, where, "give every edge a number, or take no weights (--weights none)")
    if (weights < 0).any():
        raise DataError(f"{where}: the weight {weights.min():g} is negative; fix it or leave it out")
    return weights


def _sorted_keys(folder: Path, weighted: bool) -> tuple[Codes, NDArray[np.float32]]:
    keys, weights = _mapped(folder / "keys.scratch", np.int64), _mapped(folder / "weights.scratch", np.float32)
    if not weighted:
        keys.sort()
        return keys, weights
    order = np.argsort(keys, kind="stable")
    sorted_keys, sorted_weights = (folder / f"sorted-{name}.scratch" for name in ("keys", "weights"))
    with sorted_keys.open("wb") as key_file, sorted_weights.open("wb") as weight_file:
        for part in _parts(len(order)):
            keys[order[part]].tofile(key_file)
            weights[order[part]].tofile(weight_file)
    return _mapped(sorted_keys, np.int64), _mapped(sorted_weights, np.float32)


def _mapped(path: Path, dtype: Any) -> Any:
    return np.memmap(path, dtype, "r+") if path.stat().st_size else np.empty(0, dtype)


def _parts(length: int) -> Iterator[slice]:
    return (slice(first, min(first + _BLOCK, length)) for first in range(0, length, _BLOCK))


@compiled
def _keep_first(keys: Any, weights: Any) -> tuple[int, int]:
    """Moves the first of equal numbers, and its weight, to the front; returns how many these are, and how many others
    had another weight.
    """
    count = differing = 0
    for k in range(len(keys)):
        if k == 0 or keys[k] != keys[count - 1]:
            keys[count] = keys[k]
            if len(weights):
                weights[count] = weights[k]
            count += 1
        elif len(weights) and weights[k] != weights[count - 1]:
            differing += 1
    return count, differing


@compiled
def _fill_both_ways(keys: Any, weights: Any, size: int, edges: Any, values: Any) -> None:
    """A row's smaller neighbours come by before its larger ones, both in order, so that rows are sorted."""
    places = np.zeros(size + 1, np.int64)
    for key in keys:
        places[key // size + 1] += 1
        places[key % size + 1] += 1
    for node in range(size):
        places[node + 1] += places[node]
    for k in range(len(keys)):
        low, high = keys[k] // size, keys[k] % size
        for row, other in ((low, high), (high, low)):
            edges[0, places[row]], edges[1, places[row]] = row, other
            if len(weights):
                values[places[row]] = weights[k]
            places[row] += 1
