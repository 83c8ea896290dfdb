"""Graphs of annotated matrices: an ``AnnData`` object or its .h5ad file, as scanpy and squidpy have them."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from h2hgcn.datasets.arrays import given_ids
from h2hgcn.datasets.edges import EdgeList, edges_from_matrix
from h2hgcn.datasets.tables import listed
from h2hgcn.errors import DataError, first_line
from h2hgcn.lazy import import_extra

# The graph of scanpy.pp.neighbors; it writes distances beside it, which are no weights.
_USUAL_GRAPH = "connectivities"
_USUAL_FEATURES = "X_pca"


def is_annotated(source: Any) -> bool:
    """Whether this is an ``AnnData`` object; the package need not be imported to see it."""
    return type(source).__name__ == "AnnData" and all(hasattr(source, name) for name in ("obs", "obsm", "obsp"))


def edges_from_h5ad(path: Path, weights: str | bool | None) -> EdgeList:
    """The edges of a .h5ad file."""
    return edges_from_annotated(read_h5ad(path), weights, str(path))


def read_h5ad(path: Path) -> Any:
    """The ``AnnData`` object of a file."""
    anndata = import_extra("anndata", "the reader of .h5ad files", "anndata")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the format, on which the reader of a graph cannot act
            return anndata.read_h5ad(path)
    except Exception as error:  # h5py and anndata raise whatever they meet
        raise DataError(f"{path} cannot be read as an AnnData file ({first_line(error)}); write it again") from error


def edges_from_annotated(source: Any, weights: str | bool | None, origin: str) -> EdgeList:
    """The observations as nodes, and a matrix of ``obsp`` as edges, its values being the weights.

    ``weights`` may name the matrix. Features are ``obsm["X_pca"]``, else ``X``; others, and labels, go by their names.
    """
    name = _graph_of(source, weights if isinstance(weights, str) else None, origin)
    edges = edges_from_matrix(
        source.obsp[name], True if isinstance(weights, str) else weights, f"{origin}, obsp[{name!r}]"
    )
    edges.origin = origin
    edges.ids = given_ids(np.asarray(source.obs_names, dtype=np.str_), source.n_obs, f"{origin}, obs_names")
    edges.notes = [f"edges are obsp[{name!r}], {'with' if edges.weights is not None else 'without'} weights"]
    edges.attribute_names = [str(column) for column in source.obs.columns]

    def attributes(column: str) -> dict[Any, Any]:
        if column not in source.obs:
            raise DataError(f"{origin}: obs has no column {column!r}; it has {listed(edges.attribute_names, 10)}")
        values = source.obs[column].dropna()
        numbers = np.flatnonzero(source.obs[column].notna())
        return dict(zip(edges.ids[numbers].tolist(), values.tolist(), strict=True))

    def matrix(wanted: Any) -> Any:
        if wanted in source.obsm:
            return np.asarray(source.obsm[wanted]) if hasattr(source.obsm[wanted], "columns") else source.obsm[wanted]
        return source.X if wanted == "X" else source.layers.get(wanted)

    edges.attributes, edges.matrices = attributes, matrix
    usual = _USUAL_FEATURES if _USUAL_FEATURES in source.obsm else "X"
    edges.features = matrix(usual)
    return edges


def _graph_of(source: Any, wanted: str | None, origin: str) -> str:
    """The key of the matrix that holds the edges."""
    names = list(source.obsp)
    if not names:
        raise DataError(f"{origin}: obsp holds no graph; make one, as scanpy.pp.neighbors(adata) does")
    if wanted is not None:
        if wanted not in names:
            raise DataError(f"{origin}: obsp has no {wanted!r}; it has {', '.join(names)}")
        return wanted
    if _USUAL_GRAPH in names:
        return _USUAL_GRAPH
    if len(names) > 1:
        raise DataError(f"{origin}: obsp has {', '.join(names)}; name the one with the edges: weights= (--weights)")
    return names[0]
