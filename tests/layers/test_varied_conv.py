import literal
import pytest
import torch
from samples import random_graph, random_points

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.layers import H2HConv
from h2hgcn.layers.h2h_conv import VariedConv
from h2hgcn.models import H2HGCN
from h2hgcn.training import build_optimizer

GRAPH = random_graph(12, 30, 0)
POINTS = random_points(12, 4, 2.0, 0)


def varied(**options):
    torch.manual_seed(0)
    return VariedConv(4, 4, "leaky_relu", dtype=torch.float64, **options)


@pytest.mark.parametrize("weights", ["stiefel", "fixed", "free"])
def test_all_weights_start_as_the_same_layer(weights):
    torch.manual_seed(0)
    plain = H2HConv(4, 4, "leaky_relu", dtype=torch.float64)
    torch.testing.assert_close(varied(weights=weights)(POINTS, *GRAPH), plain(POINTS, *GRAPH), rtol=1e-12, atol=1e-12)


def test_free_weights_are_no_isometry_and_stay_on_the_hyperboloid():
    conv = varied(weights="free")
    assert type(conv.linear.weight) is torch.nn.Parameter
    with torch.no_grad():
        conv.linear.weight.mul_(1.5)
    points = conv(POINTS, *GRAPH)
    assert lorentz.violation(points).max() < 1e-12
    assert points[:, 0].mean() > varied()(POINTS, *GRAPH)[:, 0].mean()


def test_the_tangent_mean_is_that_of_logarithms():
    conv = varied(aggregation="tangent", neighbor_weights="uniform", weights="fixed")
    index, weights = literal.with_self_loops(*GRAPH, 12)
    weights = literal.neighbor_weights(index, weights, 12, "uniform")
    dense = torch.zeros(12, 12, dtype=torch.float64).index_put_((index[1], index[0]), weights, accumulate=True)
    means = dense / dense.sum(1, keepdim=True) @ lorentz.log_origin(conv.linear(POINTS))
    points = lorentz.exp_origin(means)
    expected = conv.activation(points[:, 0], points[:, 1:])
    found = conv(POINTS, *GRAPH)
    torch.testing.assert_close(found[:, 0], expected[0], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found[:, 1:], expected[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weights", ["stiefel", "fixed", "free"])
@pytest.mark.parametrize("aggregation", ["midpoint", "tangent"])
def test_training_moves_what_may_move(weights, aggregation):
    torch.manual_seed(0)
    model = H2HGCN(4, 4, weights=weights, aggregation=aggregation)
    before = model.convs[0].linear.weight.detach().clone()
    optimizer = build_optimizer(model, lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        points = model(POINTS[:, 1:].float(), *GRAPH)
        points[:, 1].sum().backward()
        optimizer.step()
    after = model.convs[0].linear.weight.detach()
    assert lorentz.violation(points).max() < 1e-5
    assert torch.equal(before, after) == (weights == "fixed")
    assert (stiefel.violation(after) < 1e-5) == (weights != "free")
    assert f"weights={weights!r}" in repr(model) or (weights, aggregation) == ("stiefel", "midpoint")


@pytest.mark.parametrize(("option", "value"), [("weights", "stifel"), ("aggregation", "mean")])
def test_unknown_variants(option, value):
    with pytest.raises(ValueError, match=f"{option}='{value}' is not known"):
        H2HGCN(4, 4, **{option: value})
