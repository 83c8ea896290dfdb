"""Against PyG's convolutions, which gather and scatter."""

import pytest
import torch
from samples import random_graph
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, SGConv

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models.gcn import GATLayer, GCNLayer, SAGELayer, SGCLayer

EDGE_INDEX = random_graph(20, 50)[0]
PLAIN = EDGE_INDEX[:, EDGE_INDEX[0] != EDGE_INDEX[1]].unique(dim=1)  # repeated edges would count twice in PyG's GAT
ADJACENCY = prepare_adjacency(PLAIN, None, 20)


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def features(request):
    """As they are given, and dense."""
    torch.manual_seed(0)
    x = torch.randn(20, 6).relu()
    return (x.to_sparse_coo() if request.param else x), x


def agree(layer, x, adjacency, expected):
    torch.testing.assert_close(layer(x, adjacency), expected, rtol=1e-5, atol=1e-5)


def test_gcn_is_pygs(features):
    x, dense = features
    layer, conv = GCNLayer(6, 4), GCNConv(6, 4)
    torch.nn.init.normal_(layer.bias)
    conv.load_state_dict({"bias": layer.bias, "lin.weight": layer.linear.weight})
    agree(layer, x, ADJACENCY, conv(dense, PLAIN))
    weights = torch.rand(PLAIN.shape[1]) + 0.5
    agree(layer, x, prepare_adjacency(PLAIN, weights, 20), conv(dense, PLAIN, weights))


def test_sgc_is_pygs(features):
    x, dense = features
    layer, conv = SGCLayer(6, 4, hops=3), SGConv(6, 4, K=3)
    torch.nn.init.normal_(layer.bias)
    conv.load_state_dict({"lin.bias": layer.bias, "lin.weight": layer.linear.weight})
    agree(layer, x, ADJACENCY, conv(dense, PLAIN))


def test_uniform_weights_are_a_mean_with_the_node_itself():
    x = torch.randn(20, 6)
    matrix = torch.eye(20)
    matrix[PLAIN[1], PLAIN[0]] = 1
    matrix /= matrix.sum(1, keepdim=True)
    for layer, power in ((GCNLayer(6, 4, "uniform"), matrix), (SGCLayer(6, 4, 2, "uniform"), matrix @ matrix)):
        agree(layer, x, ADJACENCY, power @ x @ layer.linear.weight.T + layer.bias)
    with pytest.raises(ValueError, match="neighbor_weights='mean' is not known"):
        GCNLayer(6, 4, "mean")


def test_sage_is_pygs(features):
    x, dense = features
    layer, conv = SAGELayer(6, 4), SAGEConv(6, 4)
    torch.nn.init.normal_(layer.bias)
    own, sent = layer.linear.weight.chunk(2)
    conv.load_state_dict({"lin_l.weight": sent, "lin_l.bias": layer.bias, "lin_r.weight": own})
    agree(layer, x, ADJACENCY, conv(dense, PLAIN))


@pytest.mark.parametrize(("heads", "concat"), [(1, True), (3, True), (3, False)])
def test_gat_is_pygs(features, heads, concat):
    x, dense = features
    layer, conv = GATLayer(6, 4, heads, concat, 0.0), GATConv(6, 4, heads=heads, concat=concat)
    torch.nn.init.normal_(layer.attention.bias)
    conv.load_state_dict({**layer.attention.state_dict(), "lin.weight": layer.linear.weight})
    agree(layer, x, ADJACENCY, conv(dense, PLAIN))


def test_the_mean_of_weighted_neighbours():
    layer = SAGELayer(6, 4).double()
    x = torch.randn(4, 6, dtype=torch.float64)
    index, weights = torch.tensor([[0, 1, 3, 2], [2, 2, 3, 0]]), torch.tensor([1.0, 3.0, 5.0, 0.0])
    own, sent = (x @ weight.T for weight in layer.linear.weight.chunk(2))
    mean = torch.zeros(4, 4, dtype=torch.float64)
    mean[2] = (sent[0] + 3 * sent[1]) / 4  # others have no neighbours, none that count, or only themselves
    found = layer(x, prepare_adjacency(index, weights, 4))
    torch.testing.assert_close(found, own + mean + layer.bias)


@pytest.mark.parametrize("layer", [GCNLayer(6, 4), SAGELayer(6, 4)])
def test_weights_of_edges_can_be_learnt(layer):
    weights = (torch.rand(PLAIN.shape[1]) + 0.5).requires_grad_()
    torch.autograd.grad(layer(torch.randn(20, 6), prepare_adjacency(PLAIN, weights, 20)).sum(), weights)
