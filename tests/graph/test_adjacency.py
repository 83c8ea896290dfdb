import gc

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from samples import random_graph
from torch.autograd import forward_ad
from torch_geometric import EdgeIndex
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from h2hgcn.graph import adjacency as module
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers import Adjacency, H2HConv, prepare_adjacency

NO_EDGES = torch.empty(2, 0, dtype=torch.long)
EDGES = torch.tensor([[0, 1], [1, 2]])


def dense(matrix):
    crow, col, values = matrix[:3]
    found = sp.csr_array((values.detach().numpy(), col.numpy(), crow.numpy()), shape=(len(crow) - 1,) * 2)
    found.check_format()
    assert found.has_canonical_format
    return torch.from_numpy(found.toarray())


def dense_transpose(matrix):
    return dense((matrix.transpose_crow, matrix.transpose_col, matrix.transpose_values))


def test_symmetric_weights_are_gcn_norm_up_to_row_sums():
    edge_index, edge_weight = random_graph(12, 40)
    index, weight = gcn_norm(edge_index, edge_weight, 12)
    expected = torch.zeros(12, 12, dtype=torch.float64).index_put((index[1], index[0]), weight, accumulate=True)
    matrix = dense(prepare_adjacency(edge_index, edge_weight, 12).matrix("symmetric", torch.float64))
    torch.testing.assert_close(matrix, expected / expected.sum(1, keepdim=True))


def test_edges_for_convolutions_of_pytorch_geometric():
    edge_index, edge_weight = random_graph(12, 40)
    adjacency = prepare_adjacency(edge_index, edge_weight, 12)
    expected = torch.zeros(12, 12, dtype=torch.float64).index_put(tuple(edge_index), edge_weight, accumulate=True)
    index, weight = adjacency.edges(self_loops=False)
    found = torch.zeros(12, 12, dtype=torch.float64).index_put(tuple(index), weight)
    torch.testing.assert_close(found, expected.fill_diagonal_(0))
    assert (index[0] != index[1]).all()
    assert adjacency.edges()[0].shape[1] == index.shape[1] + 12
    assert adjacency.edges()[0] is adjacency.edges()[0]


def test_weights_of_graph_convolutions_are_those_of_pytorch_geometric():
    edge_index, edge_weight = random_graph(12, 40)
    index, weight = gcn_norm(edge_index, edge_weight, 12)
    expected = torch.zeros(12, 12, dtype=torch.float64).index_put(tuple(index), weight, accumulate=True)
    matrix = prepare_adjacency(edge_index, edge_weight, 12).matrix("gcn", torch.float64)
    torch.testing.assert_close(dense(matrix), expected.T)


def test_edges_whose_weights_are_learnt():
    edge_index, edge_weight = random_graph(12, 40)
    edge_weight.requires_grad_()
    adjacency = prepare_adjacency(edge_index, edge_weight, 12)
    matrices = [adjacency.matrix(kind, torch.float64).values for kind in ("gcn", "mean", "sum", "symmetric", "uniform")]
    for weights in (adjacency.edges()[1], adjacency.edges(False)[1], *matrices):
        (grad,) = torch.autograd.grad(weights.square().sum(), edge_weight, retain_graph=True)
        assert grad.abs().sum() > 0


def test_uniform_weights_are_the_edge_weights_up_to_row_sums():
    edge_index, edge_weight = random_graph(12, 40)
    expected = torch.zeros(12, 12, dtype=torch.float64)
    expected.index_put_((edge_index[1], edge_index[0]), edge_weight, accumulate=True)
    expected.diagonal()[expected.diagonal() == 0] = 1
    matrix = prepare_adjacency(edge_index, edge_weight, 12).matrix("uniform", torch.float64)
    torch.testing.assert_close(dense(matrix), expected / expected.sum(1, keepdim=True))
    assert torch.equal(dense_transpose(matrix), dense(matrix).T)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # PyG builds its sparse tensors without saying
def test_every_kind_of_graph_means_the_same():
    edge_index, edge_weight = random_graph(9, 30)
    edge_weight = edge_weight.float()
    expected = dense(prepare_adjacency(edge_index, edge_weight, 9).matrix("symmetric", torch.float64))
    adj_t = to_torch_csr_tensor(edge_index.flip(0), edge_weight, size=(9, 9))

    class SparseTensorLike:  # what torch_sparse.SparseTensor offers
        def coo(self):
            return edge_index[1], edge_index[0], edge_weight

        def sparse_sizes(self):
            return 9, 9

    graphs = [adj_t, adj_t.to_sparse_coo(), adj_t.to_sparse_csc(), SparseTensorLike()]
    for graph in graphs:
        matrix = prepare_adjacency(graph).matrix("symmetric", torch.float64)
        torch.testing.assert_close(dense(matrix), expected, rtol=1e-6, atol=1e-7)
    wrapped = prepare_adjacency(EdgeIndex(edge_index, sparse_size=(9, 9)), edge_weight, 9)
    torch.testing.assert_close(dense(wrapped.matrix("symmetric", torch.float64)), expected)


@pytest.mark.parametrize("width", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"])
def test_integers_of_any_width_are_edges(width):
    adjacency = prepare_adjacency(EDGES.to(getattr(torch, width)))
    assert adjacency.num_nodes == 3
    assert torch.equal(adjacency.col, prepare_adjacency(EDGES).col)


def test_float32_weights_add_up_beyond_float32():
    weights, index = torch.full((2,), 3e38), torch.tensor([[0, 0], [1, 1]])
    sparse = torch.sparse_coo_tensor(index, weights, (2, 2), check_invariants=True)
    for adjacency in (prepare_adjacency(index.flip(0), weights), prepare_adjacency(sparse)):
        matrix = dense(adjacency.matrix("uniform", torch.float32))
        torch.testing.assert_close(matrix, torch.tensor([[0.0, 1.0], [0.0, 1.0]]))


def test_extreme_weights_stay_finite(dtype):
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    for scale in (1e-30, 1e30):
        matrix = prepare_adjacency(edge_index, scale * torch.ones(4, dtype=torch.float64)).matrix("symmetric", dtype)
        torch.testing.assert_close(dense(matrix).sum(1), torch.ones(4, dtype=dtype))


@pytest.mark.parametrize("num_nodes", [0, 1, 5])
def test_without_edges_every_node_is_its_own_neighbour(num_nodes):
    adjacency = prepare_adjacency(NO_EDGES, num_nodes=num_nodes)
    assert torch.equal(dense(adjacency.matrix("symmetric", torch.float32)), torch.eye(num_nodes))
    assert repr(adjacency) == f"Adjacency(num_nodes={num_nodes}, num_edges={num_nodes} with self-loops)"


def test_weights_get_gradients():
    edge_index, edge_weight = random_graph(6, 12)
    points = torch.cat([torch.ones(6, 1), torch.zeros(6, 3)], 1).double()
    points[:, 1:] = torch.randn(6, 3)
    points[:, 0] = (1 + points[:, 1:].square().sum(1)).sqrt()
    conv = H2HConv(3, 3, activation="tanh", dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda w: conv(points, edge_index, w), edge_weight.requires_grad_())
    for _ in range(2):  # nothing of a spent graph is kept
        H2HConv(3, 3, dtype=torch.float64)(points, edge_index, edge_weight).sum().backward()


def test_an_edge_index_is_prepared_once_until_it_changes(monkeypatch):
    calls = []
    original = module.prepare_adjacency
    monkeypatch.setattr(module, "prepare_adjacency", lambda *args: calls.append(args) or original(*args))
    edge_index, edge_weight = random_graph(5, 10)
    for _ in range(3):
        adjacency = module.adjacency_of(edge_index, edge_weight, 5)
    assert len(calls) == 1
    assert module.adjacency_of(adjacency, None, 5) is adjacency
    edge_weight.mul_(2)
    module.adjacency_of(edge_index, edge_weight, 5)
    edge_index[0, 0] = 3
    module.adjacency_of(edge_index, edge_weight, 5)
    module.adjacency_of(edge_index, edge_weight, 6)
    module.adjacency_of(edge_index, None, 6)
    assert len(calls) == 5
    calls.clear()
    cached = len(module._cache)
    del edge_index
    gc.collect()
    assert len(module._cache) < cached


def test_inference_tensors_work():
    with torch.inference_mode():
        edge_index = torch.tensor([[0], [1]])
        assert module.adjacency_of(edge_index, None, 2).num_nodes == 2


def test_moves_between_devices():
    adjacency = prepare_adjacency(torch.tensor([[0], [1]]))
    assert adjacency.to("cpu") is adjacency
    assert adjacency.to("cpu:0") is adjacency
    known = adjacency.matrix("symmetric", torch.float32)
    moved = adjacency.to("meta")
    assert moved.device.type == "meta"
    assert moved is adjacency.to("meta")  # at every step, so that what it computes there is kept, too
    assert moved.to("meta") is moved
    assert moved._cache["symmetric", torch.float32].values.shape == known.values.shape
    assert moved.matrix("symmetric", torch.float32) is moved.matrix("symmetric", torch.float32)


HUGE = torch.full((2,), 1e308, dtype=torch.float64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((EDGES, None, 2), "names node 2, but there are 2 nodes; pass num_nodes or fix"),
        ((torch.tensor([[0, -1], [1, 2]]), None, 3), "names node -1"),
        ((EDGES, torch.tensor([1.0, -0.5])), "-0.5.*not negative"),
        ((EDGES, torch.tensor([1.0, float("nan")])), "NaN or infinity"),
        ((EDGES, torch.zeros(2)), "all edge weights are zero"),
        ((torch.tensor([[0], [0]]), torch.zeros(1)), "all edge weights are zero"),
        ((torch.tensor([[0, 1], [0, 0]]), torch.tensor([0.0, 0.0])), "all edge weights are zero"),
        ((torch.tensor([[0, 1, 0], [0, 1, 1]]), torch.tensor([0.0, 1.0, 1.0])), "weights of node 0 are zero"),
        ((EDGES, torch.ones(3)), r"shape \(3,\), but there are 2 edges"),
        ((EDGES.float(),), "must hold integers.*float32"),
        ((EDGES.bool(),), "must hold integers.*bool"),
        ((EDGES.to(torch.complex64),), "must hold integers.*complex64"),
        ((torch.tensor([[0, 1], [2, 2]]), HUGE), "weights of node 2's neighborhood add up to infinity; divide"),
        ((torch.tensor([[0, 0], [1, 1]]), HUGE), "weights of node 1's neighborhood add up to infinity; divide"),
        ((torch.ones(3, 2, dtype=torch.long),), r"shape \(2, edges\)"),
        ((torch.eye(3).to_sparse(), torch.ones(3)), "put the weights into its values"),
        ((torch.eye(3).to_sparse(), None, 4), "3 x 3, but there are 4 nodes"),
        ((torch.ones(3, 2).to_sparse(),), "must be square"),
        (("edges.csv",), "is a str"),
    ],
)
def test_bad_graphs(arguments, message):
    with pytest.raises(ValueError, match=message):
        prepare_adjacency(*arguments)


def test_bad_reuse():
    adjacency = prepare_adjacency(EDGES)
    assert isinstance(prepare_adjacency(adjacency), Adjacency)
    with pytest.raises(ValueError, match="prepared for 3 nodes, but there are 4"):
        prepare_adjacency(adjacency, None, 4)
    with pytest.raises(ValueError, match="already prepared"):
        prepare_adjacency(adjacency, torch.ones(2))


def test_the_matrix_of_a_graph_convolution():
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weights = torch.tensor([2.0, 2.0, 3.0, 3.0])
    adjacency = prepare_adjacency(edge_index, weights, 4)
    dense = torch.tensor([[1.0, 2, 0, 0], [2, 1, 3, 0], [0, 3, 1, 0], [0, 0, 0, 1]], dtype=torch.float64)
    expected = dense / (dense.sum(1)[:, None] * dense.sum(1)).sqrt()
    matrix = adjacency.matrix("gcn", torch.float64)
    for crow, col, values in (matrix[:3], matrix[3:]):
        found = torch.sparse_csr_tensor(crow, col, values, (4, 4), check_invariants=True).to_dense()
        torch.testing.assert_close(found, expected)
    assert adjacency.matrix("gcn", torch.float64) is matrix
    learnt = prepare_adjacency(edge_index, weights.requires_grad_(), 4)
    learnt.matrix("gcn", torch.float32).values.sum().backward()
    assert weights.grad.abs().sum() > 0


def test_numbers_of_nodes_of_any_kind():
    edges = torch.tensor([[0, 1], [1, 0]])
    for size in (3, np.int32(3), torch.tensor(3)):
        assert prepare_adjacency(edges, None, size).num_nodes == 3
    with pytest.raises(TypeError, match="float"):
        prepare_adjacency(edges, None, 3.0)


def test_forward_derivatives_of_weights():
    edges, weights = torch.tensor([[0, 1, 1], [1, 0, 2]]), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)

    def values(weights):
        return prepare_adjacency(edges, weights, 3).matrix("symmetric", torch.float64).values

    direction = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    with forward_ad.dual_level(), torch.no_grad():
        found = forward_ad.unpack_dual(values(forward_ad.make_dual(weights, direction))).tangent
    expected = (values(weights + 1e-6 * direction) - values(weights - 1e-6 * direction)) / 2e-6
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)


def graph(weighted=True):
    """With a self-loop, an edge of one direction, and the node 5 alone."""
    index = torch.tensor([[0, 1, 1, 2, 3, 3, 4], [1, 0, 2, 1, 3, 4, 0]])
    weights = torch.tensor([0.5, 2.0, 1.0, 3.0, 7.0, 1.5, 0.25], dtype=torch.float64)
    dense = torch.zeros(6, 6, dtype=torch.float64)
    dense[index[1], index[0]] = weights if weighted else 1.0
    return prepare_adjacency(index, weights, 6), dense.fill_diagonal_(0)


X = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_sums_leave_the_node_itself_out():
    for weighted in (False, True):
        adjacency, dense = graph(weighted)
        sums = adjacency.matrix("sum" if weighted else "count", torch.float64)
        torch.testing.assert_close(sparse_matmul(sums, X), dense @ X)


def test_means_are_weighted_and_zero_without_neighbors():
    adjacency, dense = graph()
    means = sparse_matmul(adjacency.matrix("mean", torch.float64), X)
    totals = dense.sum(1, keepdim=True)
    torch.testing.assert_close(means, torch.where(totals > 0, dense @ X / totals, 0.0))
    assert (means[5] == 0).all()


def test_gradients_of_sums_and_means():
    adjacency, _ = graph()
    for matrix in (adjacency.matrix("count", torch.float64), adjacency.matrix("mean", torch.float64)):
        assert torch.autograd.gradcheck(lambda x, matrix=matrix: sparse_matmul(matrix, x), X.clone().requires_grad_())


def test_counts_of_any_graph():
    index, _ = random_graph(30, 80)
    adjacency = prepare_adjacency(index, None, 30)
    assert adjacency.matrix("count", torch.float32).values.sum() == (adjacency.edges(False)[0]).shape[1]
