"""Sparse matrices in CSR form: products, edges as sorted entries, and node features."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import coalesce, is_torch_sparse_tensor

from h2hgcn.geometry.numerics import full_precision
from h2hgcn.kernels import is_exported, is_transformed, is_wrapped, use_kernel


class SparseMatrix(NamedTuple):
    """A matrix in CSR form and its transpose."""

    crow: Tensor
    col: Tensor
    values: Tensor
    transpose_crow: Tensor
    transpose_col: Tensor
    transpose_values: Tensor

    @property
    def transpose(self) -> SparseMatrix:
        return SparseMatrix(
            self.transpose_crow, self.transpose_col, self.transpose_values, self.crow, self.col, self.values
        )

    def to(self, dtype: torch.dtype) -> SparseMatrix:
        return self._replace(values=self.values.to(dtype), transpose_values=self.transpose_values.to(dtype))


def row_pointers(sorted_rows: Tensor, size: int) -> Tensor:
    """CSR row pointers (int32, which the products want) from the row of every entry."""
    starts = torch.arange(size + 1, dtype=sorted_rows.dtype, device=sorted_rows.device)
    return torch.searchsorted(sorted_rows, starts, out_int32=True)


def transpose_pattern(crow: Tensor, col: Tensor, num_columns: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Row pointers and columns of the transpose of a matrix, square by default, and which entry each entry was."""
    num_columns = len(crow) - 1 if num_columns is None else num_columns
    if not crow.is_cpu or is_wrapped(crow) or torch.compiler.is_compiling():
        sorted_columns, order = torch.sort(col, stable=True)
        rows = torch.repeat_interleave(crow.diff(), output_size=len(col))
        return row_pointers(sorted_columns, num_columns), rows[order].int(), order.int()
    entries = np.arange(len(col), dtype=np.int32)
    by_column = sp.csr_array((entries, col.numpy(), crow.numpy()), (len(crow) - 1, num_columns)).tocsc()
    return torch.from_numpy(by_column.indptr), torch.from_numpy(by_column.indices), torch.from_numpy(by_column.data)


def row_sums(crow: Tensor, values: Tensor) -> Tensor:
    """The sum of each row."""
    if values.requires_grad or not use_kernel(values):
        rows = torch.repeat_interleave(crow.diff(), output_size=len(values))
        return values.new_zeros(len(crow) - 1).index_add(0, rows, values)
    return torch.segment_reduce(values, "sum", offsets=crow.long(), unsafe=True)


def divided_by_row_sums(crow: Tensor, values: Tensor) -> Tensor:
    """The entries of each row divided by their sum."""
    return values / torch.repeat_interleave(row_sums(crow, values), crow.diff(), output_size=len(values))


def scaled_columns(col: Tensor, scale: Tensor, values: Tensor) -> Tensor:
    """The entries times a number of their column."""
    return values * scale.index_select(0, col)


# An operator of its own, so that torch.compile, which does not know CSR tensors, sees plain ones.
_library = torch.library.Library("h2hgcn", "DEF")
_library.define("csr_matmul(Tensor crow, Tensor col, Tensor values, Tensor dense) -> Tensor")


# FBGEMM's weighted embedding sum is the same product, and in float32 twice as fast as MKL's
# (benchmarks/sparse_products.py). The call is private to PyTorch: without it, the CSR product is used.
_HAS_FBGEMM = "fbgemm" in torch.backends.quantized.supported_engines and hasattr(torch, "_embedding_bag_forward_only")


def csr_product(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """``matrix @ dense`` without gradients, where nobody traces: the way through PyTorch's dispatcher takes time."""
    return _product(matrix.crow, matrix.col, matrix.values, dense)


def _product(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    if dense.dim() == 1:
        return _product(crow, col, values, dense.unsqueeze(1)).squeeze(1)
    if _HAS_FBGEMM and dense.dtype == torch.float32 and dense.is_cpu and dense.numel():
        return torch._embedding_bag_forward_only(dense.contiguous(), col, crow, False, 0, False, values, True)[0]
    _hush_csr()
    matrix = torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, len(dense)), check_invariants=False)
    with full_precision(dense):
        return matrix @ dense


@cache
def _hush_csr() -> None:
    """PyTorch says once in a process that CSR tensors are in beta, on which users cannot act."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)


_library.impl("csr_matmul", _product, "CompositeExplicitAutograd")
torch.library.register_fake(
    "h2hgcn::csr_matmul",
    lambda crow, col, values, dense: dense.new_empty((crow.shape[0] - 1, *dense.shape[1:])),
    lib=_library,
)

csr_matmul = torch.ops.h2hgcn.csr_matmul


def sparse_matmul(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """``matrix @ dense`` for a vector or a matrix, with gradients to ``dense`` and the values."""
    dense = dense.to(matrix.values.dtype)  # autocast may have lowered it
    if is_transformed() or is_exported():  # by gather and scatter, which all know: ten times slower
        rows = torch.repeat_interleave(matrix.crow.diff(), output_size=len(matrix.col))
        terms = dense[matrix.col.long()] * (matrix.values if dense.dim() == 1 else matrix.values.unsqueeze(1))
        return terms.new_zeros(len(matrix.crow) - 1, *dense.shape[1:]).index_add(0, rows, terms)
    product: Tensor = _SparseProduct.apply(dense, *matrix)  # type: ignore[no-untyped-call]
    return product


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(dense, *parts)
        matrix = SparseMatrix(*parts)
        product: Tensor = csr_matmul(matrix.crow, matrix.col, matrix.values, dense)
        return product

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        dense, *parts = ctx.saved_tensors
        matrix = SparseMatrix(*parts)
        needs_dense, _, _, needs_values, *_ = ctx.needs_input_grad
        grad_dense = grad_values = None
        if needs_dense:
            grad_dense = sparse_matmul(matrix.transpose, grad)
        if needs_values:
            rows = torch.repeat_interleave(matrix.crow.diff(), output_size=len(matrix.col))
            products = grad[rows] * dense[matrix.col]
            grad_values = products.sum(-1) if dense.dim() == 2 else products
        return grad_dense, None, None, grad_values, None, None, None


# Row pointers are int32, which the products want.
_MOST = 2**31 - 1


def sorted_entries(rows: Tensor, columns: Tensor, weights: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """CSR row pointers and columns (int32) and weights of a square matrix of this size.

    Weights of repeated entries are added up; a node without a self-loop gets one of weight 1.
    """
    if weights.requires_grad or not use_kernel(weights):
        return _by_sorting(rows, columns, weights, size)
    row, column, weight = (part.contiguous().numpy() for part in (rows, columns, weights))
    missing = np.ones(size, bool)
    missing[row[row == column]] = False
    (nodes,) = missing.nonzero()
    count = len(row) + len(nodes)
    if count > _MOST:
        raise ValueError(f"the graph has {count:,} entries, self-loops included; there may be {_MOST:,}")
    index = tuple(np.concatenate([part, nodes], dtype=np.int32, casting="unsafe") for part in (row, column))
    weight = np.concatenate([weight, np.ones(len(nodes), weight.dtype)])
    matrix = sp.coo_array((weight, index), (size, size)).tocsr()
    return torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data)


def _by_sorting(rows: Tensor, columns: Tensor, weights: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """With PyTorch's operations, which know devices and gradients."""
    index = torch.stack([rows, columns])
    is_loop = index[0] == index[1]
    missing = torch.ones(size, dtype=torch.bool, device=index.device)
    missing[index[0][is_loop]] = False
    nodes = missing.nonzero().squeeze(1)
    index = torch.cat([index, nodes.expand(2, -1)], dim=1)
    index, weights = coalesce(index, torch.cat([weights, weights.new_ones(len(nodes))]), size)
    return row_pointers(index[0], size), index[1].int(), weights


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
        crow, col, values, *_ = self.matrix
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
        crow, col, values, *_ = self.matrix
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
            _check_indices(x)
            coo = x.tocoo()
            index = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
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


def _check_indices(matrix: Any) -> None:
    """Raises if SciPy's compiled loops would follow the indices of a matrix out of it."""
    if getattr(matrix, "format", None) in ("csr", "csc", "bsr"):
        try:  # on a matrix that shares the arrays, since the check fixes small things in place
            type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape).check_format()
        except ValueError as error:
            raise ValueError(f"x is not a valid sparse matrix ({error}); build it again") from error


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
