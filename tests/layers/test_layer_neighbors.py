import torch
from samples import random_graph

from h2hgcn.graph.adjacency import neighbor_means, neighbor_sums
from h2hgcn.kernels.csr import sparse_matmul
from h2hgcn.layers import prepare_adjacency


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
        sums = neighbor_sums(adjacency, torch.float64, weighted)
        torch.testing.assert_close(sparse_matmul(sums, X), dense @ X)


def test_means_are_weighted_and_zero_without_neighbors():
    adjacency, dense = graph()
    means = sparse_matmul(neighbor_means(adjacency, torch.float64), X)
    totals = dense.sum(1, keepdim=True)
    torch.testing.assert_close(means, torch.where(totals > 0, dense @ X / totals, 0.0))
    assert (means[5] == 0).all()


def test_gradients():
    adjacency, _ = graph()
    for matrix in (neighbor_sums(adjacency, torch.float64), neighbor_means(adjacency, torch.float64)):
        assert torch.autograd.gradcheck(lambda x, matrix=matrix: sparse_matmul(matrix, x), X.clone().requires_grad_())


def test_any_graph():
    index, _ = random_graph(30, 80)
    adjacency = prepare_adjacency(index, None, 30)
    assert neighbor_sums(adjacency, torch.float32).values.sum() == (adjacency.edges(False)[0]).shape[1]
