import pytest
import scipy.sparse as sp
import torch
from samples import generator

from h2hgcn.kernels.csr import prepare_features


def sparse(rows=9, columns=5):
    x = torch.rand(rows, columns, generator=generator(0), dtype=torch.float64)
    return x * (x > 0.6)


@pytest.mark.parametrize(
    "make", [torch.Tensor.to_sparse_coo, lambda x: sp.csr_array(x.numpy())], ids=["torch", "scipy"]
)
def test_products_and_their_gradients(make):
    x = sparse()
    weight, bias = torch.randn(3, 5, dtype=torch.float64, requires_grad=True), torch.randn(3, dtype=torch.float64)
    features = prepare_features(make(x))
    assert torch.equal(features.to_dense(), x)
    found, expected = features.linear(weight, bias), torch.nn.functional.linear(x, weight, bias)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), weight) for y in (found, expected)))


@pytest.mark.parametrize("nodes", [slice(2, 7), slice(0, 0), torch.tensor([4, 0, 8, 4]), torch.tensor([3])])
def test_rows_of_some_nodes(nodes):
    x = sparse()
    x[3] = 0
    rows = prepare_features(x.to_sparse_coo()).rows(nodes)
    assert rows.shape == x[nodes].shape
    assert torch.equal(rows.to_dense(), x[nodes])
    weight = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    gradients = (
        torch.autograd.grad(y.square().sum(), weight) for y in (rows.linear(weight, None), x[nodes] @ weight.T)
    )
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(("part", "value"), [("indptr", 10**6), ("indptr", -3), ("indices", 10**6), ("indices", -1)])
def test_indices_that_lead_out_of_a_matrix(form, part, value):
    matrix = sp.coo_array(sparse().numpy()).asformat(form)
    getattr(matrix, part)[1] = value
    with pytest.raises(ValueError, match="x is not a valid sparse matrix"):
        prepare_features(matrix)


def test_a_matrix_of_arrays_that_do_not_fit():
    matrix = sp.csr_array(sparse().numpy())
    matrix.indices = matrix.indices[:5]
    with pytest.raises(ValueError, match="x is not a valid sparse matrix"):
        prepare_features(matrix)
