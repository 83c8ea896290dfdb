import geoopt
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import generator, seeds

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.geometry.lorentz import translated
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.layers.spaces import points_of, unit_length


def vectors(count, dim, length, seed=0, dtype=torch.float64):
    return length * torch.randn(count, dim, generator=generator(seed), dtype=dtype)


@given(seeds, st.floats(0, 3))
def test_the_bias_is_carried_by_parallel_transport(seed, length):
    tangent, shift = vectors(9, 4, length, seed), vectors(1, 4, 1.0, seed + 1)[0]
    manifold = geoopt.Lorentz()
    points = lorentz.exp_origin(tangent)
    carried = manifold.transp0(points, torch.cat([torch.zeros(1), shift]).expand(9, -1))
    expected = lorentz.log_origin(lorentz.exp(points, carried))
    torch.testing.assert_close(translated(tangent, shift), expected, rtol=1e-6, atol=1e-7)


def test_the_bias_is_a_mobius_addition():
    tangent, shift = vectors(9, 4, 0.5), vectors(1, 4, 0.5, 1)[0]
    start, step = (poincare.from_lorentz(lorentz.exp_origin(x)) for x in (tangent, shift))
    expected = lorentz.log_origin(poincare.to_lorentz(poincare.mobius_add(start, step)))
    torch.testing.assert_close(translated(tangent, shift), expected)


def test_no_bias_and_no_point():
    tangent = vectors(9, 4, 1.0)
    torch.testing.assert_close(translated(tangent, torch.zeros(4, dtype=torch.float64)), tangent)
    torch.testing.assert_close(translated(torch.zeros_like(tangent), tangent[0]), tangent[:1].expand(9, -1))


def test_gradients_are_right_at_the_origin_too():
    tangent = vectors(3, 2, 1.0)
    tangent[0] = 0
    shift = vectors(1, 2, 1.0, 1)[0]
    assert torch.autograd.gradcheck(translated, (tangent.requires_grad_(), shift.requires_grad_()))


def test_long_vectors_are_shortened(dtype):
    tangent = torch.full((2, 3), 1e6, dtype=dtype, requires_grad=True)
    moved = translated(tangent, torch.full((3,), -1e6, dtype=dtype))
    moved.sum().backward()
    assert moved.isfinite().all()
    assert tangent.grad.isfinite().all()
    for manifold in ("lorentz", "ball"):
        points = points_of(tangent, manifold)
        points = points if manifold == "lorentz" else poincare.to_lorentz(points)
        radius = torch.full((2,), layer_radius(dtype), dtype=dtype)
        torch.testing.assert_close(lorentz.distance_to_origin(points), radius, rtol=1e-3, atol=0)


def test_points_and_back():
    tangent = vectors(9, 4, 1.0)
    torch.testing.assert_close(lorentz.log_origin(points_of(tangent, "lorentz")), tangent)
    ball = geoopt.PoincareBall()
    torch.testing.assert_close(points_of(unit_length("ball") * tangent, "ball"), ball.expmap0(tangent))
    assert unit_length("lorentz") == 1
