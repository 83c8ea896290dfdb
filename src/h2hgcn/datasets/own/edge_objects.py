"""Edges of graphs that are in memory already."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.utils import is_undirected

from h2hgcn.datasets.arrays import to_numpy
from h2hgcn.datasets.matrices import whole_matrix
from h2hgcn.datasets.own.edge_list import MASKS, EdgeList
from h2hgcn.datasets.own.edge_weights import real_weights
from h2hgcn.datasets.own.ids import given_ids, ids_of_objects, numbered_ids
from h2hgcn.datasets.own.tables import Codes, Ids
from h2hgcn.errors import DataError


def edges_from_networkx(graph: nx.Graph, weights: str | bool | None, origin: str) -> EdgeList:
    nodes = list(graph.nodes)
    ids = ids_of_objects(nodes, origin)
    number = {node: k for k, node in enumerate(nodes)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    key = "weight" if weights in (None, True) else weights
    edges = EdgeList(ids, pairs[:, 0], pairs[:, 1], lambda row: f"{origin}, edge {row + 1}", origin, all_nodes=True)
    edges.directed = graph.is_directed()
    given = [data.get(key) for _, _, data in graph.edges(data=True)] if key else []
    if any(value is not None for value in given):
        if any(value is None for value in given):
            row = next(k for k, value in enumerate(given) if value is None)
            raise DataError(
                f"{edges.where(row)}: no {key!r}, which other edges have; give it one, or pass weights=False"
            )
        edges.weights = real_weights(given, origin)
        if not isinstance(weights, str):
            edges.notes.append(f"the edge attribute {key!r} is taken for edge weights")
    elif isinstance(weights, str):
        raise DataError(f"{origin}: no edge has an attribute {weights!r}")
    names = dict(zip(nodes, ids.tolist(), strict=True))
    edges.attributes = lambda name: {names[node]: value for node, value in graph.nodes(data=name) if value is not None}
    edges.attribute_names = list(dict.fromkeys(name for _, data in graph.nodes(data=True) for name in data))
    return edges


def edges_from_matrix(matrix: Any, weights: str | bool | None, origin: str) -> EdgeList:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{origin} has shape {matrix.shape}, but an adjacency matrix is square")
    if isinstance(weights, str):
        raise DataError(f"{origin} has no column {weights!r}; its values are the weights (weights=True or False)")
    ids = numbered_ids(matrix.shape[0], matrix.nnz, origin)
    compressed = sp.csr_array(whole_matrix(matrix, origin), copy=True)  # its owner keeps the zeros
    compressed.eliminate_zeros()
    coo = compressed.tocoo()
    edges = EdgeList(
        ids, coo.row.astype(np.int64), coo.col.astype(np.int64),
        lambda row: f"{origin}, entry ({coo.row[row]}, {coo.col[row]})", origin,
        directed=bool((compressed != compressed.T).nnz), all_nodes=True,
    )  # fmt: skip
    values = coo.data.astype(np.float64)
    if weights is not False and len(values) and (weights is True or np.any(values != 1)):
        edges.weights = values
        edges.notes.append("the values of the matrix are taken for edge weights")
    return edges


def edges_from_pyg(data: Any, weights: str | bool | None) -> EdgeList:
    origin = "the PyG graph"
    index = _edge_index(data, origin)
    ids = _pyg_ids(data, index.shape[1], origin)
    if index.size and (index.min() < 0 or index.max() >= len(ids)):
        raise DataError(f"{origin} has {len(ids)} nodes, but its edges name nodes {index.min()} to {index.max()}")
    edges = EdgeList(ids, index[0], index[1], lambda row: f"{origin}, edge {row}", origin, all_nodes=True)
    key = weights if isinstance(weights, str) else "edge_weight"
    given = None if weights is False else getattr(data, key, None)
    if given is not None:
        edges.weights = real_weights(given, f"{origin}, {key}")
    elif weights is None and getattr(data, "edge_attr", None) is not None:
        edges.notes.append("edge_attr is not used; pass weights='edge_attr' if it holds weights")
    edges.directed = _is_directed(data, edges)
    edges.features, edges.labels = data.x, data.y
    take_masks(lambda name: getattr(data, name, None), edges)
    return edges


def _edge_index(data: Any, origin: str) -> Codes:
    if not isinstance(data.edge_index, torch.Tensor):
        raise DataError(f"{origin} has no edge_index")
    index = to_numpy(data.edge_index)
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        raise DataError(
            f"{origin} has an edge_index of shape {index.shape} and type {index.dtype}; it takes two rows of integers"
        )
    return index.astype(np.int64)


def _pyg_ids(data: Any, num_edges: int, origin: str) -> Ids:
    given, count = getattr(data, "node_ids", None), num_nodes_of(data)
    return numbered_ids(count, num_edges, origin) if given is None else given_ids(given, count, f"{origin}, node_ids")


def num_nodes_of(data: Any) -> int:
    """What is said, else the rows of what belongs to nodes: PyG's own guess does not ask ``y`` and ``node_ids``."""
    if data.x is None and "num_nodes" not in data:
        rows = next((part for part in (getattr(data, "node_ids", None), data.y) if part is not None), None)
        if rows is not None and np.ndim(rows) > 0:
            return len(rows)
    return data.num_nodes or 0


def _is_directed(data: Any, edges: EdgeList) -> bool:
    said = getattr(data, "directed", None)
    if isinstance(said, bool | np.bool_):
        return bool(said)
    weights = edges.weights
    if weights is not None and len(weights) != len(edges.source):  # refused later, as from any source
        return False
    values = None if weights is None else torch.from_numpy(weights)
    return not is_undirected(torch.from_numpy(np.stack([edges.source, edges.target])), values, len(edges.ids))


def take_masks(mask_called: Callable[[str], Any], edges: EdgeList) -> None:
    """Keeps the masks that a graph brings along; those of another shape, as for several splits, are noted."""
    for name in MASKS:
        given = mask_called(name)
        if given is None:
            continue
        mask = to_numpy(given)
        if mask.shape == (len(edges.ids),) and mask.dtype.kind == "b":
            edges.masks[name] = mask
        else:
            edges.notes.append(
                f"{name} is not used: it is {mask.dtype} of shape {mask.shape}, not True or False for each of "
                f"{len(edges.ids)} nodes; of several splits, choose one"
            )
