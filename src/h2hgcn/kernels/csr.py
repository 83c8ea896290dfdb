"""Sparse matrices in CSR form: products, row sums, and edges as sorted entries."""

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import _sparsetools as sparsetools  # private: loops in C on plain arrays
from torch import Tensor
from torch_geometric.utils import coalesce

from h2hgcn.geometry.numerics import full_precision
from h2hgcn.kernels import is_transformed, is_wrapped, use_kernel


class SparseMatrix(NamedTuple):
    """A matrix in CSR form and its transpose."""

    crow: Tensor
    col: Tensor
    values: Tensor
    transpose_crow: Tensor
    transpose_col: Tensor
    transpose_values: Tensor

    def to(self, dtype: torch.dtype) -> "SparseMatrix":
        return self._replace(values=self.values.to(dtype), transpose_values=self.transpose_values.to(dtype))


def row_pointers(sorted_rows: Tensor, size: int) -> Tensor:
    """CSR row pointers (int32, which the products want) from the row of every entry."""
    starts = torch.arange(size + 1, dtype=sorted_rows.dtype, device=sorted_rows.device)
    return torch.searchsorted(sorted_rows, starts, out_int32=True)


def transpose_pattern(crow: Tensor, col: Tensor, num_columns: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Row pointers and columns of the transpose of a matrix, square by default, and which entry each entry was."""
    num_columns = len(crow) - 1 if num_columns is None else num_columns
    if not crow.is_cpu or is_wrapped(crow):
        sorted_columns, order = torch.sort(col, stable=True)
        rows = torch.repeat_interleave(crow.diff(), output_size=len(col))
        return row_pointers(sorted_columns, num_columns), rows[order].int(), order.int()
    entries = np.arange(len(col), dtype=np.int32)
    parts = np.empty(num_columns + 1, np.int32), np.empty_like(entries), np.empty_like(entries)
    sparsetools.csr_tocsc(len(crow) - 1, num_columns, crow.numpy(), col.numpy(), entries, *parts)
    transpose_crow, transpose_col, order = (torch.from_numpy(part) for part in parts)
    return transpose_crow, transpose_col, order


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
# (benchmarks/sparse_products.py).
_HAS_FBGEMM = "fbgemm" in torch.backends.quantized.supported_engines


def csr_product(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """What ``csr_matmul`` does, where nobody traces: the way through PyTorch's dispatcher takes time."""
    if dense.dim() == 1:
        return csr_product(crow, col, values, dense.unsqueeze(1)).squeeze(1)
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


_library.impl("csr_matmul", csr_product, "CompositeExplicitAutograd")
torch.library.register_fake(
    "h2hgcn::csr_matmul",
    lambda crow, col, values, dense: dense.new_empty((crow.shape[0] - 1, *dense.shape[1:])),
    lib=_library,
)

csr_matmul = torch.ops.h2hgcn.csr_matmul


def sparse_matmul(matrix: SparseMatrix, dense: Tensor) -> Tensor:
    """``matrix @ dense`` for a vector or a matrix, with gradients to ``dense`` and the values."""
    crow, col, values, *pattern, transpose_values = matrix
    dense = dense.to(values.dtype)  # autocast may have lowered it
    if is_transformed():  # by gather and scatter, which torch.func knows: ten times slower
        rows = torch.repeat_interleave(crow.diff(), output_size=len(col))
        terms = dense[col] * (values if dense.dim() == 1 else values.unsqueeze(1))
        return terms.new_zeros(len(crow) - 1, *dense.shape[1:]).index_add(0, rows, terms)
    product: Tensor = _SparseProduct.apply(  # type: ignore[no-untyped-call]
        values, dense, crow, col, transpose_values, *pattern
    )
    return product


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, dense: Tensor, crow: Tensor, col: Tensor, *transpose: Tensor) -> Tensor:
        ctx.save_for_backward(values, dense, crow, col, *transpose)
        product: Tensor = csr_matmul(crow, col, values, dense)
        return product

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, dense, crow, col, *transpose = ctx.saved_tensors
        grad_values = grad_dense = None
        if ctx.needs_input_grad[0]:
            rows = torch.repeat_interleave(crow.diff(), output_size=len(col))
            products = grad[rows] * dense[col]
            grad_values = products.sum(-1) if dense.dim() == 2 else products
        if ctx.needs_input_grad[1]:
            transpose_values, *pattern = transpose
            grad_dense = _SparseProduct.apply(  # type: ignore[no-untyped-call]
                transpose_values, grad, *pattern, values, crow, col
            )
        return grad_values, grad_dense, None, None, None, None, None


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
    by_rows = bool((row[1:] >= row[:-1]).all())
    row, column = (np.concatenate([part, nodes], dtype=np.int32, casting="unsafe") for part in (row, column))
    weight = np.concatenate([weight, np.ones(len(nodes), weight.dtype)])
    crow, col, sums = np.empty(size + 1, np.int32), np.empty_like(row), np.empty_like(weight)
    if by_rows:
        sparsetools.coo_tocsr(size, size, count, row, column, weight, crow, col, sums)
        sparsetools.csr_sort_indices(size, crow, col, sums)
    else:  # by columns first, so that those of a row then come in their order
        by_columns = np.empty_like(crow), np.empty_like(row), np.empty_like(weight)
        sparsetools.coo_tocsr(size, size, count, column, row, weight, *by_columns)
        sparsetools.csr_tocsc(size, size, *by_columns, crow, col, sums)
    if not sparsetools.csr_has_canonical_format(size, crow, col):
        sparsetools.csr_sum_duplicates(size, size, crow, col, sums)
    return torch.from_numpy(crow), torch.from_numpy(col[: crow[-1]]), torch.from_numpy(sums[: crow[-1]])


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
