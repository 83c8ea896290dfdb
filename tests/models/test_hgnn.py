import geoopt
import pytest
import torch
from samples import generator, random_graph

from h2hgcn.geometry import poincare
from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import HGNN, EuclideanGNN

EDGE_INDEX, EDGE_WEIGHT = random_graph(20, 50)


def features(width=6):
    return 0.5 * torch.randn(20, width, generator=generator(1), dtype=torch.float64)


def normalized_adjacency():
    """``D^-1/2 (A + I) D^-1/2``, a self-loop that is there being kept."""
    index, weights = prepare_adjacency(EDGE_INDEX, EDGE_WEIGHT, 20).edges()
    dense = torch.zeros(20, 20, dtype=torch.float64)
    dense[index[1], index[0]] = weights
    scale = dense.sum(1).rsqrt()
    return scale[:, None] * dense * scale


@pytest.mark.parametrize("num_layers", [1, 3])
def test_it_is_the_equation_on_the_ball(num_layers):
    model = HGNN(6, 4, num_layers, manifold="ball", activation="relu", dtype=torch.float64)
    ball = geoopt.PoincareBall()
    h = ball.expmap0(features())
    for linear in model.linears:
        h = torch.relu(ball.expmap0(normalized_adjacency() @ ball.logmap0(h) @ linear.weight.T))
    torch.testing.assert_close(model(features(), EDGE_INDEX, EDGE_WEIGHT), h)


def test_it_is_the_equation_on_the_hyperboloid():
    model = HGNN(6, 4, activation="tanh", dtype=torch.float64)
    space = geoopt.Lorentz()
    zeros = torch.zeros(20, 1, dtype=torch.float64)
    h = space.expmap0(torch.cat([zeros, features()], dim=1))
    for linear in model.linears:
        mean = normalized_adjacency() @ space.logmap0(h)[:, 1:] @ linear.weight.T
        h = space.expmap0(torch.cat([zeros, mean], dim=1))
        h = poincare.to_lorentz(torch.tanh(poincare.from_lorentz(h)))
    torch.testing.assert_close(model(features(), EDGE_INDEX, EDGE_WEIGHT), h, rtol=1e-6, atol=1e-7)


def test_the_euclidean_twin_is_its_equation():
    model = EuclideanGNN(6, 4, 3, activation="relu", dtype=torch.float64)
    h = features()
    for linear in model.linears:
        h = torch.relu(normalized_adjacency() @ h @ linear.weight.T)
    torch.testing.assert_close(model(features(), EDGE_INDEX, EDGE_WEIGHT), h)


def test_twins_have_the_same_shape_and_agree_near_the_origin():
    hyperbolic = HGNN(6, 4, activation="identity", dtype=torch.float64)
    flat = EuclideanGNN(6, 4, activation=None, dtype=torch.float64)
    flat.load_state_dict(hyperbolic.state_dict())
    x = 1e-4 * features()
    torch.testing.assert_close(hyperbolic(x, EDGE_INDEX)[:, 1:], flat(x, EDGE_INDEX), rtol=1e-6, atol=0)


@pytest.mark.parametrize("make", [HGNN, EuclideanGNN])
def test_dropout_is_for_training(make):
    model = make(6, 4, dropout=0.5, feature_dropout=0.5, dtype=torch.float64)
    assert not torch.equal(model(features(), EDGE_INDEX), model(features(), EDGE_INDEX))
    model.eval()
    assert torch.equal(model(features(), EDGE_INDEX), model(features(), EDGE_INDEX))
    assert "6, 4" in repr(model)


@pytest.mark.parametrize("manifold", ["lorentz", "ball"])
def test_large_weights_do_not_turn_to_nan(manifold):
    model = HGNN(6, 4, 3, manifold=manifold)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1e4)
    points = model(features().float(), EDGE_INDEX)
    points.sum().backward()
    assert points.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("make", [HGNN, EuclideanGNN])
@pytest.mark.parametrize("options", [{"dim": 0}, {"num_layers": 0}, {"in_features": 0}, {"dropout": 1.0}])
def test_bad_arguments(make, options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}="):
        make(**{"in_features": 6, "dim": 4} | options)


def test_bad_activations_and_manifolds():
    with pytest.raises(ValueError, match="Poincaré ball"):
        HGNN(6, 4, activation="selu")
    with pytest.raises(ValueError, match="manifold='euclidean'"):
        HGNN(6, 4, manifold="euclidean")
