import geoopt
import pytest
import torch

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.models import HNN


def features():
    torch.manual_seed(1)
    return torch.randn(20, 6, dtype=torch.float64)


def with_biases(model):
    for layer in model.stack.layers:
        torch.nn.init.normal_(layer.bias, std=0.5)
    return model


@pytest.mark.parametrize("curvature", [1.0, 0.3, 2.5])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_it_is_the_papers_network_in_the_ball(curvature, activation):
    """Ganea et al. 2018, Eq. 26-28, by geoopt's Poincaré ball of that curvature."""
    model = with_biases(HNN(6, 4, 3, curvature=curvature, activation=activation).double())
    ball, act = geoopt.PoincareBall(c=torch.tensor(curvature, dtype=torch.float64)), getattr(torch, activation)

    def exp(vector):  # geoopt's are half as long as ours, whose length is the distance
        return ball.expmap0(vector / 2, project=False)

    def log(point):
        return 2 * ball.logmap0(point)

    points = exp(features())
    for k, layer in enumerate(model.stack.layers):
        if k > 0:
            points = exp(act(log(points)))
        points = ball.mobius_matvec(layer.linear.weight, points, project=False)
        points = ball.mobius_add(points, exp(layer.bias), project=False)
    found = poincare.from_lorentz(model(features())) / curvature**0.5
    torch.testing.assert_close(found, points, rtol=1e-8, atol=1e-8)
    others = points.roll(1, 0)
    scaled = lorentz.distance(model(features()), model(features()).roll(1, 0)) * model.distance_scale
    torch.testing.assert_close(scaled, ball.dist(points, others), rtol=1e-6, atol=1e-6)


def test_the_curvature_is_learnt_if_asked_for():
    fixed, learnt = HNN(6, 4, curvature=2.0), HNN(6, 4, learn_curvature=True)
    assert not fixed.log_curvature.requires_grad
    assert float(fixed.distance_scale) == pytest.approx(2**-0.5)
    (learnt(features())[:, 0].sum() * learnt.distance_scale).backward()
    assert learnt.log_curvature.grad.abs() > 0


def test_points_do_not_see_the_graph_and_are_capped():
    model = HNN(6, 4).double()
    assert torch.equal(model(features(), torch.tensor([[0], [1]])), model(features()))
    far = model(1e6 * features())
    assert far.isfinite().all()
    assert lorentz.violation(far).max() < 1e-12


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"curvature=0\.0: give c > 0"):
        HNN(6, 4, curvature=0.0)
    with pytest.raises(ValueError, match="dim=0 must be at least 1"):
        HNN(6, 0)
    with pytest.raises(ValueError, match="the encoder was made for 5 features"):
        HNN(5, 4)(features())
