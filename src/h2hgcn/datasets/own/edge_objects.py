"""Edges of graphs that are in memory already."""

from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from h2hgcn.datasets.own.edge_list import EdgeList
from h2hgcn.datasets.own.tables import Ids
from h2hgcn.errors import DataError


def edges_from_networkx(graph: nx.Graph, weights: str | bool | None, origin: str) -> EdgeList:
    nodes = list(graph.nodes)
    ids = _ids_of(nodes, origin)
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
    return edges


def _ids_of(nodes: list[Any], origin: str) -> Ids:
    if all(isinstance(node, int) and not isinstance(node, bool) for node in nodes):
        return np.asarray(nodes, dtype=np.int64)
    texts = [str(node) for node in nodes]
    if len(set(texts)) < len(texts):
        raise DataError(f"{origin}: several nodes have the same name when written as text; rename them")
    return np.asarray(texts, dtype=np.str_)


def edges_from_matrix(matrix: Any, weights: str | bool | None, origin: str) -> EdgeList:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{origin} has shape {matrix.shape}, but an adjacency matrix is square")
    if isinstance(weights, str):
        raise DataError(f"{origin} has no column {weights!r}; its values are the weights (weights=True or False)")
    if matrix.dtype.kind == "c":
        raise DataError(f"{origin} has complex entries; edge weights are real")
    compressed = sp.csr_array(matrix, copy=True)  # its owner keeps the zeros
    compressed.eliminate_zeros()
    coo = compressed.tocoo()
    edges = EdgeList(
        np.arange(matrix.shape[0]), coo.row.astype(np.int64), coo.col.astype(np.int64),
        lambda row: f"{origin}, entry ({coo.row[row]}, {coo.col[row]})", origin,
        directed=bool((compressed != compressed.T).nnz), all_nodes=True,
    )  # fmt: skip
    values = coo.data.astype(np.float64)
    if weights is not False and len(values) and (weights is True or np.any(values != 1)):
        edges.weights = values
        edges.notes.append("the values of the matrix are taken for edge weights")
    return edges


def edges_from_pyg(data: Any, weights: str | bool | None) -> EdgeList:
    if data.edge_index is None:
        raise DataError("the PyG graph has no edge_index")
    index = data.edge_index.cpu().numpy()
    ids = getattr(data, "node_ids", None)
    ids = np.arange(data.num_nodes) if ids is None else np.asarray(ids)
    if index.size and (index.min() < 0 or index.max() >= len(ids)):
        raise DataError(f"the PyG graph has {len(ids)} nodes, but its edges name nodes {index.min()} to {index.max()}")
    where, origin = (lambda row: f"the PyG graph, edge {row}"), "the PyG graph"
    edges = EdgeList(ids, index[0], index[1], where, origin, all_nodes=True)
    edges.directed = bool(data.is_directed())
    key = weights if isinstance(weights, str) else "edge_weight"
    given = None if weights is False else getattr(data, key, None)
    if given is None and (isinstance(weights, str) or weights is True):
        raise DataError(f"the PyG graph has no {key}")
    if given is not None:
        edges.weights = _one_column(given, key, len(index[0]))
    elif weights is None and getattr(data, "edge_attr", None) is not None:
        edges.notes.append("edge_attr is not used; pass weights='edge_attr' if it holds weights")
    edges.features, edges.labels = data.x, data.y
    return edges


def edges_from_pairs(pairs: Any, origin: str = "the edges", with_weights: bool = True) -> EdgeList:
    """Edges of an array ``(k, 2)`` or ``(2, k)``, or of a list of pairs, or of triples with a weight at the end."""
    if not hasattr(pairs, "shape"):
        return _from_list(list(pairs), origin, with_weights)
    array = np.asarray(pairs.cpu() if hasattr(pairs, "cpu") else pairs)
    if array.ndim == 2 and array.shape[0] == 2 and array.shape[1] != 2:
        array = array.T
    if array.ndim != 2 or array.shape[1] != 2:
        raise DataError(f"{origin} have shape {array.shape}; pass pairs of nodes (k × 2)")
    if array.dtype.kind == "u":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iU":
        raise DataError(f"{origin} are of type {array.dtype}; node ids are integers or text")
    ids, codes = np.unique(array, return_inverse=True)
    codes = codes.reshape(array.shape)
    return EdgeList(ids, codes[:, 0], codes[:, 1], lambda row: f"{origin}, row {row}", origin)


def _from_list(pairs: list[Any], origin: str, with_weights: bool) -> EdgeList:
    lengths = {len(pair) if isinstance(pair, tuple | list) else 0 for pair in pairs}
    if not lengths <= {2} and not lengths <= {3}:
        raise DataError(f"{origin} must all be pairs of nodes, or all be triples of two nodes and a weight")
    kinds = {type(node) for pair in pairs for node in pair[:2]}
    if not kinds <= {int, np.int64, np.int32} and not kinds <= {str, np.str_}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"{origin} name nodes by {names}; use integers alone, or texts alone")
    array = np.array([pair[:2] for pair in pairs]).reshape(-1, 2)
    edges = edges_from_pairs(array.astype(np.int64) if not len(array) else array, origin)
    if with_weights and lengths == {3}:
        edges.weights = np.array([float(pair[2]) for pair in pairs])
    return edges


def real_weights(weights: Any, origin: str) -> NDArray[np.float64]:
    """Weights as an array of numbers, one for each edge."""
    try:
        array = np.asarray(weights.detach().cpu() if hasattr(weights, "detach") else weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{origin}: the weights are not all numbers ({error})") from None
    return array.reshape(-1)


def _one_column(weights: Any, key: str, size: int) -> NDArray[np.float64]:
    if weights.numel() != size:
        raise DataError(
            f"the PyG graph has {size} edges, but {key} has shape {tuple(weights.shape)}; weights are one each"
        )
    array: NDArray[np.float64] = weights.detach().cpu().double().reshape(-1).numpy()
    return array
