"""Hierarchies: the transitive closure of a directed acyclic graph, and random taxonomies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.sparse import csgraph
from torch import Tensor

from h2hgcn.errors import DataError

# Links of a closure that fit in a few GB of memory together with what is computed from them.
_MOST_LINKS = 1 << 26

# Nodes of a cycle that a message names.
_NAMED = 8


def transitive_closure(edge_index: Tensor, num_nodes: int, names: Sequence[Any] | None = None) -> Tensor:
    """All links ``(2, k)`` from a node to a node that can be reached from it, sorted by source and target.

    Raises a ``DataError`` that names one cycle, by ``names`` of nodes or by numbers, if there is any. Self-loops are
    dropped.
    """
    rows, columns = edge_index.numpy()
    kept = rows != columns
    size = (num_nodes, num_nodes)
    edges = sp.csr_array((np.ones(int(kept.sum()), dtype=np.int8), (rows[kept], columns[kept])), shape=size)
    edges.data[:] = 1  # repeated edges were added up
    _check_acyclic(edges, names)
    closure = paths = edges
    while paths.nnz:
        paths = paths @ edges  # walks that are one edge longer
        paths.data[:] = 1
        closure = closure + paths
        closure.data[:] = 1
        if closure.nnz > _MOST_LINKS:
            raise DataError(
                f"the transitive closure has more than {_MOST_LINKS:,} links; leave out --closure, or embed a part of "
                "the hierarchy"
            )
    closure.sort_indices()
    links = closure.tocoo()
    return torch.from_numpy(np.stack([links.row, links.col]).astype(np.int64))


def _check_acyclic(edges: sp.csr_array, names: Sequence[Any] | None) -> None:
    count, component = csgraph.connected_components(edges, directed=True, connection="strong")
    if count == edges.shape[0]:
        return
    inside = np.bincount(component)[component] > 1
    node = int(inside.argmax())
    seen: dict[int, int] = {}
    while node not in seen:  # each node of a strong component has an edge that stays in it
        seen[node] = len(seen)
        targets = edges.indices[edges.indptr[node] : edges.indptr[node + 1]]
        node = int(targets[component[targets] == component[node]][0])
    cycle = [*list(seen)[seen[node] :], node]
    shown = [str(number if names is None else names[number]) for number in cycle]
    if len(shown) > _NAMED + 1:
        shown = [*shown[:_NAMED], "...", shown[-1]]
    raise DataError(
        f"the graph has a cycle, so it has no transitive closure: {' -> '.join(shown)}; remove an edge of it, or leave "
        "out --closure"
    )


def random_taxonomy(num_nodes: int, seed: int = 0) -> NDArray[np.int64]:
    """Edges ``(num_nodes - 1, 2)`` from child to parent of a ragged random tree, whose root is node 0.

    Nodes arrive one after the other and choose a parent in proportion to a random appetite for children, which is
    log-normal, and to ``1 / (1 + depth)``: a few nodes have many children, most have none, and depths vary.
    """
    if num_nodes < 1:
        raise DataError(f"num_nodes={num_nodes}: a taxonomy has at least one node")
    random = np.random.default_rng(seed)
    appetite = random.lognormal(sigma=2.0, size=num_nodes)
    parents = np.zeros(num_nodes, dtype=np.int64)
    depth = np.zeros(num_nodes)
    weight = np.zeros(num_nodes)
    weight[0] = appetite[0]
    for node in range(1, num_nodes):
        total = np.cumsum(weight[:node])
        parent = min(int(np.searchsorted(total, random.random() * total[-1], side="right")), node - 1)
        parents[node], depth[node] = parent, depth[parent] + 1
        weight[node] = appetite[node] / (1 + depth[node])
    return np.stack([np.arange(1, num_nodes), parents[1:]], axis=1)
