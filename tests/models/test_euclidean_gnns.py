import pytest
import torch
from samples import random_graph
from torch_geometric.nn import models as pyg

from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import GAT, GCN, MLP, SAGE, SGC

EDGE_INDEX, EDGE_WEIGHT = random_graph(20, 50)


def features():
    torch.manual_seed(1)
    return torch.randn(20, 6)


def test_a_gcn_is_pygs():
    ours, theirs = GCN(6, 4, 3), pyg.GCN(6, 4, 3, 4)
    for layer, conv in zip(ours.stack.layers, theirs.convs, strict=True):
        conv.load_state_dict({"bias": layer.bias, "lin.weight": layer.linear.weight})
    plain = EDGE_INDEX[:, EDGE_INDEX[0] != EDGE_INDEX[1]]
    torch.testing.assert_close(ours(features(), plain), theirs(features(), plain), rtol=1e-5, atol=1e-5)


def test_heads_of_attention():
    layers = GAT(6, 8, 3, heads=4, out_heads=2).stack.layers
    assert [(conv.attention.heads, conv.attention.out_channels) for conv in layers] == [(4, 2), (4, 2), (2, 8)]
    assert GAT(6, 7, 1, heads=4)(features(), EDGE_INDEX).shape == (20, 7)
    with pytest.raises(ValueError, match="dim=7 cannot be shared out among heads=4"):
        GAT(6, 7, 2, heads=4)
    with pytest.raises(ValueError, match="heads=0 must be at least 1"):
        GAT(6, 8, heads=0)


def test_sgc_has_one_map_for_all_hops():
    model, longer = SGC(6, 4, 2), SGC(6, 4, 5)
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in longer.parameters()) == 6 * 4 + 4


@pytest.mark.parametrize("kind", [GCN, GAT, SAGE, SGC])
def test_any_form_of_graph(kind):
    model = kind(6, 4).eval()
    expected = model(features(), EDGE_INDEX, EDGE_WEIGHT)
    adj_t = torch.sparse_coo_tensor(EDGE_INDEX.flip(0), EDGE_WEIGHT, (20, 20), check_invariants=True)
    torch.testing.assert_close(model(features(), adj_t), expected)
    torch.testing.assert_close(model(features(), prepare_adjacency(EDGE_INDEX, EDGE_WEIGHT, 20)), expected)


@pytest.mark.parametrize("kind", [GCN, GAT, SAGE, SGC, MLP])
def test_weights_are_drawn_anew_and_bad_arguments_named(kind):
    model = kind(6, 4).eval()
    before = model(features(), EDGE_INDEX)
    model.reset_parameters()
    assert not torch.equal(model(features(), EDGE_INDEX), before)
    with pytest.raises(ValueError, match=r"x has shape \(20, 6\), but the encoder was made for 5 features"):
        kind(5, 4)(features(), EDGE_INDEX)
    with pytest.raises(ValueError, match="num_layers=0 must be at least 1"):
        kind(6, 4, 0)
    with pytest.raises(ValueError, match=r"feature_dropout=1\.0 must be 0 or more, and below 1"):
        kind(6, 4, feature_dropout=1.0)


@pytest.mark.parametrize("kind", [GCN, GAT, SAGE, SGC, MLP])
@pytest.mark.parametrize("num_nodes", [1, 3])
def test_graphs_without_edges(kind, num_nodes):
    points = kind(6, 4)(torch.zeros(num_nodes, 6), torch.empty(2, 0, dtype=torch.long))
    points.sum().backward()
    assert points.shape == (num_nodes, 4)


def test_an_mlp_does_not_see_the_graph():
    model = MLP(6, 4)
    assert torch.equal(model(features(), EDGE_INDEX), model(features()))
    first, second = model.stack.layers
    torch.testing.assert_close(model(features()), second(first(features()).relu()))
