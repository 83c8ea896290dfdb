import pytest
import torch
from samples import generator, random_graph

from h2hgcn.geometry import lorentz
from h2hgcn.layers import prepare_adjacency
from h2hgcn.models import HyboNet

EDGE_INDEX, EDGE_WEIGHT = random_graph(20, 50)


def features(dtype=torch.float64):
    return torch.randn(20, 6, generator=generator(1), dtype=dtype)


def centroid(points, weights):
    """``Σ w x / ‖Σ w x‖`` of Lorentz points."""
    sums = weights @ points
    return sums / (-lorentz.inner(sums, sums)).sqrt().unsqueeze(-1)


@pytest.mark.parametrize("kind", ["uniform", "symmetric"])
def test_layers_and_centroids_alternate(kind):
    model = HyboNet(6, 4, 3, activation="tanh", neighbor_weights=kind, dtype=torch.float64)
    crow, col, values = prepare_adjacency(EDGE_INDEX, EDGE_WEIGHT, 20).matrix(kind, torch.float64)[:3]
    weights = torch.sparse_csr_tensor(crow, col, values, (20, 20), check_invariants=True).to_dense()
    points = lorentz.exp_origin(features())
    for k, linear in enumerate(model.linears):
        assert isinstance(linear.activation, torch.nn.Tanh) == (k > 0)
        points = centroid(linear(points), weights)
    torch.testing.assert_close(model(features(), EDGE_INDEX, EDGE_WEIGHT), points)


def test_large_weights_do_not_turn_to_nan():
    model = HyboNet(6, 4, 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1e3)
    points = model(features(torch.float32), EDGE_INDEX)
    points.sum().backward()
    assert lorentz.violation(points).max() < 1e-5
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_dropout_is_for_training():
    model = HyboNet(6, 4, dropout=0.5, feature_dropout=0.5)
    x = features(torch.float32)
    assert not torch.equal(model(x, EDGE_INDEX), model(x, EDGE_INDEX))
    model.eval()
    assert torch.equal(model(x, EDGE_INDEX), model(x, EDGE_INDEX))
    model.reset_parameters()
    assert "6, 4" in repr(model)


@pytest.mark.parametrize(
    "options", [{"dim": 0}, {"num_layers": 0}, {"dropout": 1.0}, {"scale": -1.0}, {"neighbor_weights": "x"}]
)
def test_bad_arguments(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}="):
        HyboNet(**{"in_features": 6, "dim": 4} | options)
