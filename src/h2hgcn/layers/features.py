"""Sparse node features, prepared once for products with dense weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.utils import is_torch_sparse_tensor

from h2hgcn.layers.sparse import SparseMatrix, row_pointers, sparse_matmul


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

    def linear(self, weight: Tensor, bias: Tensor) -> Tensor:
        return sparse_matmul(self.matrix, weight.mT) + bias

    def to_dense(self) -> Tensor:
        crow, col, values = self.matrix[:3]
        return torch.sparse_csr_tensor(crow, col, values, self.shape, check_invariants=False).to_dense()

    def _with_values(self, values: Tensor) -> SparseFeatures:
        matrix = self.matrix._replace(values=values, transpose_values=values[self.transpose_order])
        return self._replace(matrix=matrix)


def is_sparse(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix: torch's, SciPy's, or prepared."""
    return isinstance(x, SparseFeatures) or is_torch_sparse_tensor(x) or hasattr(x, "tocoo")


def prepare_features(x: Any) -> SparseFeatures:
    """Turns a sparse torch tensor or SciPy matrix into the form that every epoch can share.

    The result is remembered for as long as ``x`` lives; make a new object rather than change its values.
    """
    if isinstance(x, SparseFeatures):
        return x
    if x not in _remembered:
        _remembered[x] = _prepare(x)
    features: SparseFeatures = _remembered[x]
    return features


_remembered: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _prepare(x: Any) -> SparseFeatures:
    coo: Tensor = x if isinstance(x, Tensor) else _from_scipy(x)
    coo = coo.detach().to_sparse_coo().coalesce()
    rows, columns = coo.indices()
    values = coo.values()
    if values.dim() != 1 or coo.dim() != 2:
        raise ValueError(f"sparse features must be a matrix of numbers, but have shape {tuple(coo.shape)}")
    order = torch.argsort(columns, stable=True)
    matrix = SparseMatrix(
        row_pointers(rows, coo.shape[0]), columns.int(), values,
        row_pointers(columns, coo.shape[1]), rows[order].int(), values[order],
    )  # fmt: skip
    return SparseFeatures(matrix, order, (coo.shape[0], coo.shape[1]))


def _from_scipy(x: Any) -> Tensor:
    coo = x.tocoo()
    index = torch.stack([torch.from_numpy(coo.row).long(), torch.from_numpy(coo.col).long()])
    return torch.sparse_coo_tensor(index, torch.from_numpy(coo.data), coo.shape, check_invariants=False)
