"""Pickles of arrays, sparse matrices and plain containers; anything else in them is refused before it runs."""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from h2hgcn.errors import DataError

# NumPy's own way to rebuild an array, asked for without its private module.
_REBUILD_ARRAY = np.empty(0).__reduce__()[0]

# Names as they were in the year of the files, and what they mean today.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _REBUILD_ARRAY,
    ("numpy._core.multiarray", "_reconstruct"): _REBUILD_ARRAY,
    ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    ("scipy.sparse._csr", "csr_matrix"): sp.csr_matrix,
}


# What a damaged pickle of allowed things can end in.
_FAULTS = (
    pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError, MemoryError,
    OverflowError, RecursionError,
)  # fmt: skip


class _AllowList(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise DataError(f"asks for {module}.{name}, which is not on the list of what data may hold; it was not run")
        return _ALLOWED[module, name]


def load_pickle(path: Path) -> Any:
    """What a pickle holds, Python 2's included."""
    try:
        with path.open("rb") as file:
            return _AllowList(file, encoding="latin1").load()
    except DataError as error:
        raise DataError(f"{path} {error}") from None
    except _FAULTS as error:
        raise DataError(f"{path} is not a whole pickle ({error}); put the original in its place") from error
