import geoopt
import torch
from hypothesis import given
from samples import dtypes, random_points, seeds

from h2hgcn.geometry import lorentz, poincare


@given(seed=seeds, dtype=dtypes)
def test_there_and_back(seed, dtype):
    points = random_points(20, 4, 5.0, seed, dtype)
    back = poincare.to_lorentz(poincare.from_lorentz(points))
    assert lorentz.distance(back, points).max() < (1e-3 if dtype == torch.float32 else 1e-12)
    assert lorentz.violation(back).max() <= 4 * torch.finfo(dtype).eps


def test_distances_agree_with_geoopt():
    x, y = random_points(20, 4, 4.0, 1), random_points(20, 4, 4.0, 2)
    ball = geoopt.PoincareBall()
    expected = ball.dist(poincare.from_lorentz(x), poincare.from_lorentz(y))
    torch.testing.assert_close(lorentz.distance(x, y), expected, rtol=1e-8, atol=1e-8)


def test_mobius_addition_agrees_with_geoopt_and_translates():
    x, y, z = (poincare.from_lorentz(random_points(20, 3, 2.0, k)) for k in range(3))
    ball = geoopt.PoincareBall()
    torch.testing.assert_close(poincare.mobius_add(x, y), ball.mobius_add(x, y), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(poincare.mobius_add(x, torch.zeros_like(x)), x)
    moved = lorentz.distance(
        poincare.to_lorentz(poincare.mobius_add(x, y)), poincare.to_lorentz(poincare.mobius_add(x, z))
    )
    torch.testing.assert_close(moved, lorentz.distance(poincare.to_lorentz(y), poincare.to_lorentz(z)))


def test_geodesic_runs_at_constant_speed_between_its_ends():
    start, end = (poincare.from_lorentz(random_points(5, 2, 3.0, k)) for k in range(2))
    fractions = torch.linspace(0, 1, 5, dtype=torch.float64)
    path = poincare.geodesic(start, end, fractions)
    assert path.shape == (5, 5, 2)
    torch.testing.assert_close(path[:, 0], start, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(path[:, -1], end, rtol=1e-9, atol=1e-12)
    lifted = poincare.to_lorentz(path)
    steps = lorentz.distance(lifted[:, 1:], lifted[:, :-1])
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), rtol=1e-6, atol=1e-9)


def test_at_and_beyond_the_boundary(dtype):
    outside = torch.tensor([[1.0, 0.0], [2.0, 2.0], [0.0, 0.0]], dtype=dtype, requires_grad=True)
    lifted = poincare.to_lorentz(outside)
    lifted.sum().backward()
    assert lifted.isfinite().all()
    assert outside.grad.isfinite().all()
    assert lorentz.violation(lifted).max() < 1e-6
