import geoopt
import pytest
import torch

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.geometry.lorentz import translated
from h2hgcn.geometry.numerics import layer_radius


def rows(length, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return length * torch.nn.functional.normalize(torch.randn(40, 5, dtype=dtype), dim=1)


@pytest.mark.parametrize("length", [0.0, 1e-8, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("shift_length", [0.0, 1e-8, 0.3, 3.0])
def test_it_is_mobius_addition_in_the_ball(length, shift_length):
    tangents, shift = rows(length), rows(shift_length, 1)[0]
    ball = geoopt.PoincareBall()
    # geoopt's tangent vectors are half as long as ours, whose length is the distance
    points, other = (ball.expmap0(vector / 2, project=False) for vector in (tangents, shift))
    expected = 2 * ball.logmap0(ball.mobius_add(points, other, project=False))
    torch.testing.assert_close(translated(tangents, shift), expected, rtol=1e-9, atol=1e-9)


def test_it_is_ours_too():
    tangents, shift = rows(2.0), rows(0.7, 1)[0]
    points, other = (poincare.from_lorentz(lorentz.exp_origin(vector)) for vector in (tangents, shift))
    expected = lorentz.log_origin(poincare.to_lorentz(poincare.mobius_add(points, other)))
    torch.testing.assert_close(translated(tangents, shift), expected)


def test_the_shift_is_undone_by_its_opposite_from_the_left():
    tangents, shift = rows(3.0), rows(2.0, 1)[0]
    moved = torch.stack([translated(-row.unsqueeze(0), found).squeeze(0) for row, found in zip(
        tangents, translated(tangents, shift), strict=True)])  # fmt: skip
    torch.testing.assert_close(moved, shift.expand_as(moved))


@pytest.mark.parametrize("length", [0.0, 1e-20, 1.0, 16.0, 1e3, 1e12])
def test_finite_in_both_precisions(length, dtype):
    tangents, shift = rows(length, dtype=dtype).requires_grad_(), rows(0.5, 1, dtype)[0].requires_grad_()
    moved = translated(tangents, shift)
    assert moved.dtype == dtype
    assert (moved.norm(dim=1) < layer_radius(torch.float64) + 1).all()
    for gradient in torch.autograd.grad(moved.sum(), [tangents, shift]):
        assert gradient.isfinite().all()


def test_single_precision_is_as_good_as_its_numbers():
    tangents, shift = rows(6.0, dtype=torch.float32), rows(1.0, 1, torch.float32)[0]
    torch.testing.assert_close(
        translated(tangents, shift).double(), translated(tangents.double(), shift.double()), rtol=1e-5, atol=1e-5
    )


def test_gradients():
    tangents, shift = rows(1.5)[:4].requires_grad_(), rows(0.5, 1)[0].requires_grad_()
    assert torch.autograd.gradcheck(translated, (tangents, shift))
    assert torch.autograd.gradgradcheck(translated, (tangents, shift))
