import torch
from samples import random_graph

from h2hgcn.geometry import lorentz
from h2hgcn.layers import prepare_adjacency
from h2hgcn.models.hgcn import aggregate_locally

EDGE_INDEX, EDGE_WEIGHT = random_graph(10, 25)


def matrix(dtype=torch.float64):
    return prepare_adjacency(EDGE_INDEX, EDGE_WEIGHT, 10).matrix("uniform", dtype)


def test_neighbors_are_averaged_where_the_receiver_is():
    tangent = torch.randn(10, 3, dtype=torch.float64)
    points = lorentz.exp_origin(tangent)
    crow, col, values = matrix()[:3]
    dense = torch.sparse_csr_tensor(crow, col, values, (10, 10), check_invariants=True).to_dense()
    for i in range(10):
        mean = sum(dense[i, j] * lorentz.log(points[i], points[j]) for j in range(10))
        expected = lorentz.log_origin(lorentz.exp(points[i], mean))
        torch.testing.assert_close(aggregate_locally(tangent, matrix())[i], expected)


def test_equal_points_stay(dtype):
    tangent = torch.randn(1, 3, dtype=dtype).expand(10, -1)
    torch.testing.assert_close(aggregate_locally(tangent, matrix(dtype)), tangent, rtol=1e-4, atol=1e-5)


def test_gradients():
    tangent = torch.randn(10, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: aggregate_locally(x, matrix()), tangent)
