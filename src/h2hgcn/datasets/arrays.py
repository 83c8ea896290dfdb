"""Arrays, sparse matrices and edges, checked before anything is computed with them."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from h2hgcn.errors import DataError

UNLABELLED = -1  # the class of a node that has no label
MASKS = ("train_mask", "val_mask", "test_mask")
RANGE = "what single precision holds (1.4e-45 to 3.4e38)"

# Rows that are worked on together, so that arrays may be larger than memory.
BLOCK = 1 << 22


class Arrays:
    """Where the large arrays of a graph are: in memory, or as files of a folder that are mapped into memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def empty(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array to be filled; in a folder, ``NAME.npy``."""
        if self.folder is None or 0 in shape:  # nothing can be mapped of an empty file
            return np.empty(shape, dtype)
        return np.lib.format.open_memmap(self.folder / f"{name}.npy", "w+", dtype, shape)

    def join(self, name: str, parts: Iterator[tuple[NDArray[Any], ...]]) -> list[NDArray[Any]]:
        """Several arrays whose rows come together in parts, of which there is at least one; scratch of a folder."""
        if self.folder is None:
            return [column[0] if len(column) == 1 else np.concatenate(column) for column in zip(*parts, strict=True)]
        files = [(self.folder / f"{name}-{k}.scratch").open("wb") for k in range(4)]
        try:
            for part in parts:
                for array, file in zip(part, files, strict=False):
                    array.tofile(file)
        finally:
            for file in files:
                file.close()
        return [
            np.memmap(file.name, array.dtype, "r+").reshape(-1, *array.shape[1:])
            if Path(file.name).stat().st_size
            else np.empty((0, *array.shape[1:]), array.dtype)
            for file, array in zip(files, part, strict=False)
        ]


def blocks_of(length: int) -> Iterator[slice]:
    """Slices that together make up ``length`` rows; at least one."""
    return (slice(first, min(first + BLOCK, length)) for first in range(0, max(length, 1), BLOCK))


def single(values: Any) -> Any:
    """An array or SciPy matrix in single precision; what is too large becomes infinite, to be found by its checker."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32, copy=False)


def load_arrays(path: Path) -> Any:
    """What a .npy or .npz file holds: an array, or a dictionary of them."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            members = {name: loaded[name] for name in loaded.files}
    except Exception as error:  # NumPy lets through whatever zip, zlib and its parser of headers raise
        raise DataError(f"{path} cannot be read as NumPy arrays ({error}); write or download it again") from error
    return {name: member for name, member in members.items() if isinstance(member, np.ndarray)}


def to_numpy(values: Any) -> NDArray[Any]:
    """An array of a tensor, wherever it lies and whatever depends on it, or of anything that NumPy takes for one."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return np.asarray(values)


_CSR_MEMBERS = {"indptr", "indices", "data", "shape"}


def holds_matrix(names: Collection[str]) -> bool:
    """Whether these are the arrays of a file that ``scipy.sparse.save_npz`` wrote."""
    return {"format", "shape", "data"} <= set(names) or set(names) >= _CSR_MEMBERS


def load_matrix(path: Path) -> Any:
    """The matrix of a file that ``scipy.sparse.save_npz`` wrote."""
    try:
        matrix = sp.load_npz(path)
    except Exception as error:  # as with NumPy's files
        raise DataError(
            f"{path} cannot be read as a SciPy matrix ({error}); write it again with scipy.sparse.save_npz"
        ) from error
    return whole_matrix(matrix, str(path))


def whole_matrix(matrix: Any, origin: str) -> Any:
    """The matrix itself, if it is sound: SciPy's compiled loops follow its indices wherever they lead."""
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"{origin}: entries of type {matrix.dtype}, but they must be real numbers")
    try:
        _check_indices(matrix)
    except ValueError as error:
        raise DataError(f"{origin} is not a valid sparse matrix ({error}); build it again") from error
    return matrix


def _check_indices(matrix: Any) -> None:
    # The checks mend small things in place, so they are run on a matrix that shares the arrays, not on the caller's.
    if matrix.format in ("csr", "csc", "bsr"):
        shared = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        shared.check_format(full_check=True)
    elif matrix.format == "coo":
        type(matrix)((matrix.data, matrix.coords), shape=matrix.shape)


def edge_ends(graph: Any) -> NDArray[np.int64]:
    """The two ends of every edge, ``(2, edges)``."""
    edge_index = torch.as_tensor(graph.edge_index).detach().cpu()
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise DataError(f"edge_index is {edge_index.dtype}; name nodes by whole numbers (torch.int64)")
    if edge_index.dim() != 2 or len(edge_index) != 2:
        raise DataError(f"edge_index has shape {tuple(edge_index.shape)}; give one row of sources and one of targets")
    ends: NDArray[np.int64] = edge_index.numpy().astype(np.int64, copy=False)
    check_nodes(graph, "edge_index", ends)
    return ends


def check_nodes(graph: Any, name: str, nodes: NDArray[np.int64]) -> None:
    """Whether all of these nodes are nodes of the graph."""
    num_nodes = int(graph.num_nodes or 0)
    if nodes.size and (nodes.min() < 0 or nodes.max() >= num_nodes):
        wrong = nodes.min() if nodes.min() < 0 else nodes.max()
        raise DataError(f"{name} names node {wrong}, but the graph has {num_nodes} nodes; fix num_nodes or the edges")


def edge_weights(graph: Any) -> NDArray[np.float32] | None:
    """The weight of every edge, ``(edges)``, if the graph has any."""
    if getattr(graph, "edge_weight", None) is None:
        return None
    weights = torch.as_tensor(graph.edge_weight).detach().cpu()
    num_edges = graph.edge_index.shape[1]
    if weights.shape != (num_edges,):
        raise DataError(f"edge_weight has shape {tuple(weights.shape)}; give one number for each of {num_edges} edges")
    if not bool(weights.float().isfinite().all()):
        raise DataError("edge_weight holds numbers that are not finite in float32; mend or drop them")
    return weights.float().numpy()
