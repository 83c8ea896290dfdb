"""Sparse node features, prepared once for products with dense weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import is_torch_sparse_tensor

from h2hgcn.kernels.csr import SparseMatrix, row_pointers, sparse_matmul, transpose_pattern


class SparseFeatures(NamedTuple):
    """A sparse matrix ``(nodes, features)`` and its transpose."""

    matrix: SparseMatrix
    transpose_order: Tensor
    shape: tuple[int, int]

    def to(self, dtype: torch.dtype) -> SparseFeatures:
        values = self.matrix.values
        return self if values.dtype == dtype else self._with_values(values.to(dtype))

    def rows(self, nodes: Tensor | slice) -> SparseFeatures:
        """The features of some nodes."""
        crow, col, values = self.matrix[:3]
        first, counts = crow[:-1][nodes], crow.diff()[nodes]
        new_crow = F.pad(counts.cumsum(0), (1, 0)).int()
        shift = torch.repeat_interleave(first - new_crow[:-1], counts)
        entries = torch.arange(len(shift), device=col.device) + shift
        return _assembled(new_crow, col[entries], values[entries], (len(counts), self.shape[1]))

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
    """Turns a sparse torch tensor or SciPy matrix into the form that encoders multiply.

    Encoders prepare raw features at every call; to call an encoder many times, prepare them once, as tasks do.
    """
    if isinstance(x, SparseFeatures):
        return x
    with torch.inference_mode(False), torch.no_grad():
        if not isinstance(x, Tensor):
            coo = x.tocoo()
            index = torch.stack([torch.from_numpy(coo.row).long(), torch.from_numpy(coo.col).long()])
            x = torch.sparse_coo_tensor(index, torch.from_numpy(coo.data), coo.shape, check_invariants=False)
        if x.requires_grad:
            raise ValueError("sparse features do not get gradients; pass them dense, or detach them")
        x = x.to_sparse_coo().coalesce()
        if x.sparse_dim() != 2 or x.dense_dim() != 0:
            raise ValueError(f"sparse features must be a matrix of numbers, but have shape {tuple(x.shape)}")
        (rows, columns), shape = x.indices(), (x.shape[0], x.shape[1])
        if len(rows) and (int(rows.max()) >= shape[0] or int(columns.max()) >= shape[1]):
            raise ValueError(f"sparse features of shape {shape} hold an entry outside of it; rebuild them")
        return _assembled(row_pointers(rows, shape[0]), columns.int(), x.values().clone(), shape)


def _assembled(crow: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> SparseFeatures:
    transpose_crow, transpose_col, order = transpose_pattern(crow, col, shape[1])
    matrix = SparseMatrix(crow, col, values, transpose_crow, transpose_col, values[order])
    return SparseFeatures(matrix, order, shape)


def check_features(x: Any, in_features: int) -> None:
    """Raises unless ``x`` has a row of ``in_features`` numbers for each node."""
    if not isinstance(x, Tensor) and not is_sparse(x):
        raise ValueError(f"x is a {type(x).__name__}; pass a tensor, or a sparse matrix of torch or SciPy")
    shape = tuple(x.shape)
    if len(shape) != 2 or shape[1] != in_features:
        raise ValueError(
            f"x has shape {shape}, but the encoder was made for {in_features} features; pass one row of {in_features} "
            f"numbers for each node, or make an encoder with in_features={shape[-1] if shape else 0}"
        )
