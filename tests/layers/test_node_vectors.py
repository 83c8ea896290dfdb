import pytest
import torch

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.layers.inputs import NodePoints, NodeVectors
from h2hgcn.training import build_optimizer


def test_points_start_near_the_origin_and_stay_in_the_ball():
    torch.manual_seed(0)
    for method in ("rsgd", "radam"):
        points = NodePoints(30, 4)
        assert points().abs().max() <= 1e-3
        optimizer = build_optimizer(points, lr=1.0, stiefel_method=method)
        for _ in range(60):
            optimizer.zero_grad()
            points().square().sum().neg().backward()
            optimizer.step()
        norms = points().norm(dim=1)
        assert (norms < 1).all()
        assert norms.max() > 0.9


def test_a_step_of_riemannian_sgd():
    """Nickel and Kiela 2017, Eq. 4 and 5: the gradient is scaled by (1 - |x|²)² / 4."""
    points = NodePoints(1, 2).double()
    points.weight.data = torch.tensor([[0.3, 0.4]], dtype=torch.float64)
    optimizer = build_optimizer(points, lr=1e-6, stiefel_method="rsgd")
    before = points().detach()
    (points() @ torch.tensor([1.0, 2.0], dtype=torch.float64)).sum().backward()
    optimizer.step()
    expected = -1e-6 * (1 - 0.25) ** 2 / 4 * torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    torch.testing.assert_close(points() - before, expected, rtol=1e-4, atol=0)


def test_tangents_lead_to_the_points():
    points = NodePoints(30, 4).double()
    points.weight.data *= 300
    back = poincare.from_lorentz(lorentz.exp_origin(points.tangents()))
    torch.testing.assert_close(back, points())


@pytest.mark.parametrize("kind", [NodeVectors, NodePoints])
def test_what_is_given_is_no_longer_the_weight(kind):
    vectors = kind(5, 3)
    with torch.no_grad():
        given = vectors()
        before = given.clone()
        vectors.weight += 0.1
    assert torch.equal(given, before)
    assert not given.requires_grad
    with pytest.raises(ValueError, match="num_nodes=None: pass the number of nodes of the graph"):
        kind(None, 3)
    with pytest.raises(ValueError, match="dim=0 must be at least 1"):
        kind(5, 0)
