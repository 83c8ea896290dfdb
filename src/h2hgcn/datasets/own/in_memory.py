"""What people have in memory (lists, arrays, tensors), as NumPy and SciPy have it."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from h2hgcn.datasets.arrays import to_numpy
from h2hgcn.datasets.matrices import whole_matrix
from h2hgcn.errors import DataError


def plain_array(source: Any, origin: str) -> Any:
    """A NumPy array, or, of a sparse matrix or tensor, a SciPy matrix."""
    if sp.issparse(source):
        return whole_matrix(source, origin)
    if isinstance(source, torch.Tensor):
        return _from_tensor(source.detach().cpu())
    try:
        return np.asarray(source)
    except (TypeError, ValueError, RuntimeError):
        raise DataError(
            f"{origin} are no rows of equal length; pass an array or a tensor with as much for every node"
        ) from None


def _from_tensor(tensor: torch.Tensor) -> Any:
    if tensor.layout == torch.strided:
        return to_numpy(tensor)
    entries = tensor.to_sparse_coo().coalesce()
    if entries.sparse_dim() != 2 or entries.dense_dim():
        return to_numpy(entries.to_dense())
    values = to_numpy(entries.values())
    return sp.coo_array((values, tuple(entries.indices().numpy())), shape=tuple(entries.shape))
