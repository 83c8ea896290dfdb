import torch
from samples import random_graph

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models.hgcn import TangentAttention

EDGE_INDEX, _ = random_graph(12, 30)


def dense(matrix, size):
    crow, col, values = matrix[:3]
    return torch.sparse_csr_tensor(crow, col, values, (size, size), check_invariants=True).to_dense()


def test_it_is_a_network_on_concatenated_vectors():
    attention = TangentAttention(4).double()
    tangent = torch.randn(12, 4, dtype=torch.float64)
    adjacency = prepare_adjacency(EDGE_INDEX.unique(dim=1), None, 12)
    weights = dense(attention(tangent, adjacency), 12)
    first = torch.cat([attention.receiver.weight, attention.sender.weight], dim=1)
    for i in range(12):
        neighbors = [j for j in range(12) if j == i or ((EDGE_INDEX[0] == j) & (EDGE_INDEX[1] == i)).any()]
        pairs = torch.stack([torch.cat([tangent[i], tangent[j]]) for j in neighbors])
        hidden = torch.nn.functional.leaky_relu(pairs @ first.T + attention.receiver.bias)
        expected = torch.zeros(12, dtype=torch.float64)
        expected[neighbors] = torch.softmax(hidden @ attention.score.weight[0], 0)
        torch.testing.assert_close(weights[i], expected)


def test_an_edge_of_weight_two_counts_twice():
    attention = TangentAttention(4)
    tangent = torch.randn(3, 4)
    edge_index = torch.tensor([[0, 1], [2, 2]])
    single = dense(attention(tangent, prepare_adjacency(edge_index, None, 3)), 3)[2]
    double = dense(attention(tangent, prepare_adjacency(edge_index, torch.tensor([2.0, 1.0]), 3)), 3)[2]
    expected = single * torch.tensor([2.0, 1, 1])
    torch.testing.assert_close(double, expected / expected.sum())
    none = dense(attention(tangent, prepare_adjacency(edge_index, torch.tensor([0.0, 1.0]), 3)), 3)[2]
    assert none[0] == 0


def test_gradients_flow_through_the_weights():
    attention = TangentAttention(4)
    attention.reset_parameters()
    tangent = torch.randn(12, 4, requires_grad=True)
    matrix = attention(tangent, prepare_adjacency(EDGE_INDEX, None, 12))
    (matrix.values * torch.randn(len(matrix.values))).sum().backward()
    for parameter in (tangent, *attention.parameters()):
        assert parameter.grad.abs().sum() > 0
