import numpy as np
import pytest
import scipy.sparse
import torch
from samples import random_graph
from torch.autograd import gradcheck, gradgradcheck

from h2hgcn.kernels.csr import csr_matmul, row_shares, sparse_matmul, transpose_pattern
from h2hgcn.layers import prepare_adjacency


@pytest.fixture
def matrix():
    return prepare_adjacency(*random_graph(8, 25), 8).matrix("symmetric", torch.float64)


@pytest.mark.parametrize("shape", [(8,), (8, 3), (8, 0)])
def test_product_and_its_gradients(matrix, shape):
    dense = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    expected = torch.sparse_csr_tensor(*matrix[:3], (8, 8), check_invariants=True).to_dense() @ dense
    torch.testing.assert_close(sparse_matmul(matrix, dense), expected)
    if dense.numel():
        assert gradcheck(lambda x: sparse_matmul(matrix, x), dense)
        assert gradgradcheck(lambda x: sparse_matmul(matrix, x), dense)


def test_gradients_of_the_values(matrix):
    order = torch.argsort(matrix.col, stable=True)
    dense = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)

    def product(values, dense):
        return sparse_matmul(matrix._replace(values=values, transpose_values=values[order]), dense)

    assert gradcheck(product, (matrix.values.clone().requires_grad_(), dense))
    assert gradgradcheck(product, (matrix.values.clone().requires_grad_(), dense))


@pytest.mark.parametrize("width", [1, 2, 7, 16, 33, 64, 100, 257])
def test_float32_kernel_against_float64(width):
    matrix = prepare_adjacency(*random_graph(50, 300), 50).matrix("uniform", torch.float32)
    dense = torch.randn(50, width + 3)[:, 3:]  # not contiguous
    expected = csr_matmul(matrix.crow, matrix.col, matrix.values.double(), dense.double())
    torch.testing.assert_close(csr_matmul(*matrix[:3], dense).double(), expected, rtol=1e-5, atol=1e-6)


def test_operator_is_registered_well(matrix):
    dense = torch.randn(8, 3, dtype=torch.float64)
    torch.library.opcheck(csr_matmul, (*matrix[:3], dense), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("threads", [1, 3])
def test_transposes_are_scipys(threads):
    matrix = scipy.sparse.random(4000, 4000, density=0.005, format="csr", random_state=0)
    matrix.data[:] = np.arange(matrix.nnz)  # numbers of entries
    torch.set_num_threads(threads)
    found = transpose_pattern(torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices))
    expected = matrix.tocsc()
    for part, numbers in zip(found, (expected.indptr, expected.indices, expected.data), strict=True):
        assert np.array_equal(part.numpy(), numbers)


def test_a_graph_without_nodes_has_a_transpose():
    nothing = torch.zeros(0, dtype=torch.int32)
    assert [len(part) for part in transpose_pattern(torch.zeros(1, dtype=torch.int32), nothing)] == [1, 0, 0]


@pytest.mark.parametrize("by_degrees", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_shares_of_rows(by_degrees, threads):
    matrix = scipy.sparse.random(4000, 4000, density=0.005, format="csr", random_state=0)
    matrix.setdiag(1)
    matrix.sort_indices()
    torch.set_num_threads(threads)
    found = row_shares(*map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data)), by_degrees)
    sums = np.asarray(matrix.sum(1)).ravel()
    expected = matrix @ scipy.sparse.diags(sums**-0.5) if by_degrees else matrix
    expected = (scipy.sparse.diags(1 / np.asarray(expected.sum(1)).ravel()) @ expected).tocsr()
    expected.sort_indices()
    np.testing.assert_allclose(found.numpy(), expected.data, rtol=1e-14)
