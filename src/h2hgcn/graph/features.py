"""Sparse node features, prepared once for products with dense weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.utils import is_torch_sparse_tensor

from h2hgcn.kernels.csr import SparseMatrix, row_pointers, sparse_matmul, transpose_pattern


class SparseFeatures(NamedTuple):
    """A sparse matrix ``(nodes, features)`` and its transpose."""

    matrix: SparseMatrix
    transpose_order: Tensor
    shape: tuple[int, int]

    def to(self, dtype: torch.dtype) -> SparseFeatures:
        if self.matrix.values.dtype == dtype:
            return self
        return self._with_values(self.matrix.values.to(dtype))

    def dropout(self, p: float, training: bool) -> SparseFeatures:
        """Drops stored entries, as dropout of the dense matrix would."""
        if not training or p == 0:
            return self
        return self._with_values(F.dropout(self.matrix.values, p, training=True))

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        product = sparse_matmul(self.matrix, weight.mT)
        return product if bias is None else product + bias

    def to_dense(self) -> Tensor:
        crow, col, values = self.matrix[:3]
        rows = torch.repeat_interleave(crow.diff(), output_size=len(col))
        return values.new_zeros(self.shape).index_put((rows, col.long()), values)

    def _with_values(self, values: Tensor) -> SparseFeatures:
        matrix = self.matrix._replace(values=values, transpose_values=values[self.transpose_order])
        return self._replace(matrix=matrix)


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix: torch's, SciPy's, or prepared."""
    return isinstance(x, SparseFeatures) or is_torch_sparse_tensor(x) or hasattr(x, "tocoo")


def prepare_features(x: Any) -> SparseFeatures:
    """Turns a sparse torch tensor or SciPy matrix into the form that every epoch can share.

    The result is remembered for as long as ``x`` lives and, if it is a tensor, its version does not change; make a
    new SciPy matrix rather than change its values.
    """
    if isinstance(x, SparseFeatures):
        return x
    version = x._version if isinstance(x, Tensor) and not x.is_inference() else 0
    known = _remembered.get(x)
    if known is None or known[0] != version:
        with torch.inference_mode(False), torch.no_grad():
            known = (version, _prepare(x))
        _remembered[x] = known
    features: SparseFeatures = known[1]
    return features


_remembered: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _prepare(x: Any) -> SparseFeatures:
    coo: Tensor = x if isinstance(x, Tensor) else _from_scipy(x)
    if coo.requires_grad:
        raise ValueError("sparse features do not get gradients; pass them dense, or detach them")
    coo = coo.to_sparse_coo().coalesce()
    if coo.sparse_dim() != 2 or coo.dense_dim() != 0:
        raise ValueError(f"sparse features must be a matrix of numbers, but have shape {tuple(coo.shape)}")
    rows, columns = coo.indices()
    values = coo.values().clone()
    if len(rows) and (int(rows.max()) >= coo.shape[0] or int(columns.max()) >= coo.shape[1]):
        raise ValueError(f"sparse features of shape {tuple(coo.shape)} hold an entry outside of it; rebuild them")
    crow, col = row_pointers(rows, coo.shape[0]), columns.int()
    transpose_crow, transpose_col, order = transpose_pattern(crow, col, coo.shape[1])
    matrix = SparseMatrix(crow, col, values, transpose_crow, transpose_col, values[order])
    return SparseFeatures(matrix, order, (coo.shape[0], coo.shape[1]))


def _from_scipy(x: Any) -> Tensor:
    coo = x.tocoo()
    index = torch.stack([torch.from_numpy(coo.row).long(), torch.from_numpy(coo.col).long()])
    return torch.sparse_coo_tensor(index, torch.from_numpy(coo.data), coo.shape, check_invariants=False)
