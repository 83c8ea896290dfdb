import numpy as np
import pytest
import scipy.sparse
import torch
from samples import generator, random_graph
from torch.autograd import gradcheck, gradgradcheck

from h2hgcn.kernels import csr
from h2hgcn.kernels.csr import (
    _by_sorting,
    csr_matmul,
    divided_by_row_sums,
    row_sums,
    scaled_columns,
    sorted_entries,
    sparse_matmul,
    transpose_pattern,
)
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


def test_without_the_private_call_the_product_is_the_same(monkeypatch):
    """A PyTorch that has changed it fails the first line; the second is what its users get."""
    matrix, dense = prepare_adjacency(*random_graph(50, 300), 50).matrix("uniform", torch.float32), torch.randn(50, 16)
    by_bags = torch._embedding_bag_forward_only(dense, matrix.col, matrix.crow, False, 0, False, matrix.values, True)[0]
    monkeypatch.setattr(csr, "_HAS_FBGEMM", False)
    torch.testing.assert_close(csr_matmul(*matrix[:3], dense), by_bags, rtol=1e-5, atol=1e-6)


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
    crow, col, values = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
    if by_degrees:
        values = scaled_columns(col, row_sums(crow, values).rsqrt(), values)
    found = divided_by_row_sums(crow, values)
    sums = np.asarray(matrix.sum(1)).ravel()
    expected = matrix @ scipy.sparse.diags(sums**-0.5) if by_degrees else matrix
    expected = (scipy.sparse.diags(1 / np.asarray(expected.sum(1)).ravel()) @ expected).tocsr()
    expected.sort_indices()
    np.testing.assert_allclose(found.numpy(), expected.data, rtol=1e-14)


@pytest.mark.parametrize(("size", "count"), [(1, 0), (1, 5), (7, 0), (7, 3), (7, 200), (300, 2000), (5000, 60_000)])
def test_counting_gives_what_sorting_gives(size, count):
    index = torch.randint(size, (2, count), generator=generator(1))
    weights = torch.randint(1, 9, (count,), generator=generator(2)).double()  # sums are exact
    for found, expected in zip(sorted_entries(*index, weights, size), _by_sorting(*index, weights, size), strict=True):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


@pytest.mark.parametrize("order", ["by rows", "by columns"])
@pytest.mark.parametrize("loops", ["none", "some", "all"])
@pytest.mark.parametrize(("size", "count"), [(1, 1), (7, 3), (7, 49), (300, 2000)])
def test_entries_that_come_sorted(size, count, loops, order):
    pairs = torch.randperm(size**2, generator=generator(4))[:count].sort().values
    index = torch.stack([pairs // size, pairs % size])
    is_loop = index[0] == index[1]
    if loops == "none":
        index = index[:, ~is_loop]
    elif loops == "all":
        index = torch.cat([index[:, ~is_loop], torch.arange(size).expand(2, -1)], 1)
        index = index[:, (index[0] * size + index[1]).argsort()]
    if order == "by columns":
        index = index.flip(0)
    weights = 1 + torch.arange(index.shape[1]).double()
    for found, expected in zip(sorted_entries(*index, weights, size), _by_sorting(*index, weights, size), strict=True):
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


def test_no_nodes():
    crow, col, weights = sorted_entries(*torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, dtype=torch.float64), 0)
    assert (crow.tolist(), len(col), len(weights)) == ([0], 0, 0)


def test_rows_and_columns_that_are_not_contiguous():
    index = torch.randint(9, (40, 2), generator=generator(3)).T
    weights = torch.ones(80, dtype=torch.float64)[::2]
    for found, expected in zip(sorted_entries(*index, weights, 9), _by_sorting(*index, weights, 9), strict=True):
        assert torch.equal(found, expected)


def test_gradients_flow_to_weights():
    index, weights = torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.ones(3, dtype=torch.float64, requires_grad=True)
    sums = sorted_entries(*index, weights, 2)[2]
    assert sums.tolist() == [1, 2, 1, 1]
    sums[1].backward()
    assert weights.grad.tolist() == [1, 1, 0]
