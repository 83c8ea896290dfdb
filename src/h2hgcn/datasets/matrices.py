"""SciPy's sparse matrices, checked before anything is computed with them."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from h2hgcn.errors import DataError

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
