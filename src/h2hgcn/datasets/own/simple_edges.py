"""Edges of a simple graph, in PyG's form: no loops, each edge once, both directions of undirected ones."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.edge_weights import single_precision_weights
from h2hgcn.datasets.own.tables import Ids


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
