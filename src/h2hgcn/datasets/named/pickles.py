"""Pickles of arrays, sparse matrices and plain containers; anything else in them is refused before it runs.

Nothing that a pickle names is handed to it. Classes of this file stand in for NumPy's and SciPy's: a pickle can change
the attributes of a class that it is given, and can set flags of a dtype that make NumPy take numbers for addresses.
"""

import copyreg
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from h2hgcn.errors import DataError


class _StandIn:
    """What a pickle may build. With a ``__setstate__`` of its own, only instances take a state, never the class."""

    def __setstate__(self, state: Any) -> None:
        raise TypeError(f"{type(self).__name__} has no state")


class _Dtype(_StandIn):
    """A type of plain numbers, of which only the byte order may be said afterwards."""

    def __init__(self, name: str, *flags: Any) -> None:
        self.dtype = np.dtype(name)
        if self.dtype.kind not in "biuf":
            raise TypeError(f"arrays of {name} are not numbers")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array(_StandIn, np.ndarray):
    def __new__(cls) -> "_Array":
        return super().__new__(cls, 0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        version, shape, kind, is_fortran, numbers = state
        if min(shape, default=0) < 0 or math.prod(shape) * kind.dtype.itemsize != len(numbers):
            raise ValueError(f"{len(numbers)} bytes are no array of shape {shape}")
        np.ndarray.__setstate__(self, (version, shape, kind.dtype, is_fortran, numbers))


class _EmptyArray(_StandIn):
    """NumPy's ``_reconstruct``, which is called for an array and gives it its state afterwards."""

    def __new__(cls, kind: type, shape: tuple[int], typecode: bytes) -> Any:
        return _Array()


class _CsrMatrix(_StandIn, sp.csr_matrix):  # type: ignore[misc]
    def __new__(cls) -> "_CsrMatrix":
        return super().__new__(cls)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # copies, which the rest of the pickle cannot change once they were checked
        parts = tuple(np.array(state[name]) for name in ("data", "indices", "indptr"))
        sp.csr_matrix.__init__(self, parts, shape=state["_shape"])
        self.check_format(full_check=True)


class _Dictionary(_StandIn, dict[Any, Any]):
    """A dictionary for a ``defaultdict``: what is not in the file is not made up."""

    def __init__(self, factory: Any = None) -> None:
        super().__init__()


# Names as they were in the year of the files, and as they are today.
_ALLOWED: dict[tuple[str, str], type] = {
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("collections", "defaultdict"): _Dictionary,
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _EmptyArray,
    ("numpy._core.multiarray", "_reconstruct"): _EmptyArray,
    ("scipy.sparse.csr", "csr_matrix"): _CsrMatrix,
    ("scipy.sparse._csr", "csr_matrix"): _CsrMatrix,
}


class _AllowList(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise DataError(f"asks for {module}.{name}, which is not on the list of what data may hold; it was not run")
        return _ALLOWED[module, name]


def load_pickle(path: Path) -> Any:
    """What a pickle holds, Python 2's included."""
    copyreg.clear_extension_cache()  # what is in there is handed out without asking the list
    try:
        with path.open("rb") as file:
            loaded = _AllowList(file, encoding="latin1").load()
    except DataError as error:
        raise DataError(f"{path} {error}") from None
    except Exception as error:  # a damaged pickle of allowed things can end in anything
        raise DataError(f"{path} is not a whole pickle ({error}); put the original in its place") from error
    finally:
        copyreg.clear_extension_cache()  # nor may others be handed what stands in here
    return np.asarray(loaded) if isinstance(loaded, _Array) else loaded
