"""The convolution against PyG's, which makes a matrix for every edge."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import NNConv

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models.ecc import EdgeConditionedConv

N = 12


def sample(kind):
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(0, N - 1, (2, 40), generator=generator).unique(dim=1)  # the last node is alone
    index = index[:, index[0] != index[1]]
    edges = index.shape[1]
    weights = {
        "one": torch.full((edges,), 0.7),
        "few": torch.randint(1, 4, (edges,), generator=generator) / 3,
        "many": torch.rand(edges, generator=generator) + 0.1,
    }[kind].double()
    return torch.randn(N, 3, generator=generator).double(), index, weights


def reference(conv, x, index, weights, root_weight):
    if not root_weight:
        index = torch.cat([index, torch.arange(N).expand(2, -1)], 1)
        weights = torch.cat([weights, torch.ones(N)])
    filters = nn.Sequential(conv.hidden, nn.ReLU(), conv.last)
    whole = NNConv(3, 5, filters, aggr="mean", root_weight=root_weight, bias=False).double()
    if root_weight:
        whole.lin.weight = conv.root.weight
    return whole(x, index, weights[:, None])


@pytest.mark.parametrize("root_weight", [True, False])
@pytest.mark.parametrize("kind", ["one", "few", "many"])
def test_as_with_a_matrix_for_every_edge(kind, root_weight):
    x, index, weights = sample(kind)
    torch.manual_seed(0)
    conv = EdgeConditionedConv(3, 5, 8, root_weight).double()
    parameters = list(conv.parameters())
    expected = reference(conv, x, index, weights, root_weight)
    expected_gradients = torch.autograd.grad(expected.square().sum(), parameters)
    found = conv(x, prepare_adjacency(index, weights, N))
    torch.testing.assert_close(found, expected)
    for one, other in zip(torch.autograd.grad(found.square().sum(), parameters), expected_gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_few_distinct_weights_need_few_matrices():
    conv = EdgeConditionedConv(3, 5, 8)
    terms = {}
    for kind in ("one", "few", "many"):
        _, index, weights = sample(kind)
        adjacency = prepare_adjacency(index, weights, N)
        used = adjacency.edges()[0][0] != adjacency.edges()[0][1]
        terms[kind] = conv._terms(adjacency.weights.float(), used)[1].shape[0]
    assert terms == {"one": 1, "few": 3, "many": 9}


def test_gradients_reach_the_weights_of_edges():
    x, index, weights = sample("one")
    conv = EdgeConditionedConv(3, 5, 8).double()

    def of_weights(weights):
        return conv(x, prepare_adjacency(index, weights, N))

    assert torch.autograd.gradcheck(of_weights, weights.requires_grad_())


def test_a_graph_without_edges():
    x = torch.randn(4, 3)
    adjacency = prepare_adjacency(torch.empty(2, 0, dtype=torch.long), None, 4)
    conv = EdgeConditionedConv(3, 5)
    torch.testing.assert_close(conv(x, adjacency), conv.root(x))
    assert EdgeConditionedConv(3, 5, root_weight=False)(x, adjacency).shape == (4, 5)
