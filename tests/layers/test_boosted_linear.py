import math

import pytest
import torch
from samples import random_points
from torch import nn

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.models.hybonet import BoostedLinear


def random_layer(*arguments, **options):
    layer = BoostedLinear(*arguments, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in (layer.weight, layer.bias):
            parameter.normal_()
    return layer


def literal(layer, x, activation):
    hidden = activation(x)
    logit = hidden @ layer.weight[0] + layer.bias[0]
    time = layer.log_scale.exp() * torch.sigmoid(logit) + layer.min_time
    z = hidden @ layer.weight[1:].T + layer.bias[1:]
    space = (time.square() - 1).sqrt().unsqueeze(1) * z / z.norm(dim=1, keepdim=True)
    return torch.cat([time.unsqueeze(1), space], dim=1)


@pytest.mark.parametrize("activation", [None, nn.ReLU(), nn.Tanh()])
def test_it_is_the_equation(activation):
    layer = random_layer(4, 3, activation, scale=4.0, min_time=1.2)
    points = random_points(10, 4, 2.0)
    expected = literal(layer, points, activation or nn.Identity())
    found = layer(points)
    torch.testing.assert_close(found, expected)
    assert lorentz.violation(found).max() < 1e-12


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo])
def test_features_go_through_the_exponential_map(layout):
    layer = random_layer(6, 3)
    x = torch.randn(10, 6, dtype=torch.float64).relu()
    x[0] = 0
    given = x if layout == torch.strided else x.to_sparse_coo()
    expected = literal(layer, lorentz.exp_origin(x), nn.Identity())
    torch.testing.assert_close(layer.of_features(given), expected)


def test_long_features_are_shortened(dtype):
    layer = BoostedLinear(6, 3, dtype=dtype)
    x = 1e4 * torch.eye(6, dtype=dtype)
    expected = layer.of_features(layer_radius(dtype) * torch.eye(6, dtype=dtype))
    for given in (x, x.to_sparse_coo()):
        torch.testing.assert_close(layer.of_features(given), expected)


def test_no_direction_leads_to_the_origin():
    layer = BoostedLinear(4, 3)
    with torch.no_grad():
        layer.weight.zero_()
    points = layer(lorentz.exp_origin(torch.zeros(2, 4)))
    points.sum().backward()
    assert torch.equal(points, lorentz.exp_origin(torch.zeros(2, 3)))
    assert all(p.grad.isfinite().all() for p in layer.parameters())


def test_times_stay_where_layers_compute_well(dtype):
    layer = BoostedLinear(4, 3, scale=1e30, dtype=dtype)
    points = layer(torch.tensor([[1.0, 3.0, 3.0, 3.0, 3.0]], dtype=dtype))
    assert (points[:, 0] <= math.cosh(layer_radius(dtype)) * (1 + 1e-5)).all()


def test_dropout_is_for_training():
    layer = BoostedLinear(4, 3, dropout=0.5)
    points = random_points(10, 4, 1.0, dtype=torch.float32)
    assert not torch.equal(layer(points), layer(points))
    layer.eval()
    assert torch.equal(layer(points), layer(points))


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"scale": math.inf}, {"min_time": 1.0}])
def test_bad_arguments(options):
    with pytest.raises(ValueError, match="must be positive"):
        BoostedLinear(4, 3, **options)
