"""What people have in memory (lists, arrays, tensors, keys of mappings), as NumPy and SciPy have it."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from h2hgcn.datasets.own.tables import Ids
from h2hgcn.errors import DataError


def plain_array(source: Any, origin: str) -> Any:
    """A NumPy array, or, of a sparse matrix or tensor, a SciPy matrix."""
    if sp.issparse(source):
        return source
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
        return _in_known_precision(tensor).numpy()
    entries = tensor.to_sparse_coo().coalesce()
    if entries.sparse_dim() != 2 or entries.dense_dim():
        return _in_known_precision(entries.to_dense()).numpy()
    values = _in_known_precision(entries.values()).numpy()
    return sp.coo_array((values, tuple(entries.indices().numpy())), shape=tuple(entries.shape))


def _in_known_precision(tensor: torch.Tensor) -> torch.Tensor:
    """NumPy knows no bfloat16."""
    return tensor.float() if tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor


def ids_of_keys(keys: Iterable[Any]) -> Ids:
    """Keys of a mapping as node ids: integers if all are, else texts, as nodes of a graph in memory."""
    keys = list(keys)
    if all(isinstance(key, int | np.integer) and not isinstance(key, bool) for key in keys):
        try:
            return np.asarray(keys, dtype=np.int64)
        except OverflowError:
            pass
    return np.asarray([str(key) for key in keys], dtype=np.str_)
