import geoopt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import dtypes, generator, seeds

from h2hgcn.geometry import stiefel


@given(seed=seeds, dtype=dtypes, columns=st.integers(1, 12), extra=st.integers(0, 5), size=st.floats(0, 1e3))
def test_projection_and_retraction(seed, dtype, columns, extra, size):
    random = generator(seed)
    point = stiefel.random_orthonormal(columns + extra, columns, generator=random, dtype=dtype)
    gradient = size * torch.randn(columns + extra, columns, generator=random, dtype=dtype)
    tangent = stiefel.project_tangent(point, gradient)
    eps = torch.finfo(dtype).eps
    skew = point.mT @ tangent
    assert (skew + skew.mT).abs().max() <= 100 * eps * max(1.0, size)
    torch.testing.assert_close(stiefel.project_tangent(point, tangent), tangent, rtol=0, atol=100 * eps * (1 + size))
    moved = stiefel.retract(point, tangent)
    assert stiefel.violation(moved) <= 10 * eps
    torch.testing.assert_close(stiefel.retract(point, 0 * tangent), point, rtol=0, atol=10 * eps)


def test_projection_and_retraction_agree_with_geoopt():
    manifold = geoopt.EuclideanStiefel()
    point = stiefel.random_orthonormal(7, 4, dtype=torch.float64)
    gradient = torch.randn(7, 4, dtype=torch.float64)
    tangent = stiefel.project_tangent(point, gradient)
    torch.testing.assert_close(tangent, manifold.proju(point, gradient))
    torch.testing.assert_close(stiefel.retract(point, tangent), manifold.retr(point, tangent))


def test_retraction_of_a_rank_deficient_sum_is_still_orthonormal():
    point = stiefel.random_orthonormal(4, 4, dtype=torch.float64)
    assert stiefel.violation(stiefel.retract(point, -point)) < 1e-12


@pytest.mark.parametrize("length", [1e-6, 1e-2, 0.3, 3.0, 1e4])
def test_short_and_long_steps_are_the_same_retraction(length):
    point = stiefel.random_orthonormal(9, 5, generator=generator(0), dtype=torch.float64)
    tangent = stiefel.project_tangent(point, torch.randn(9, 5, generator=generator(1), dtype=torch.float64))
    tangent *= length / torch.linalg.matrix_norm(tangent)
    points, tangents = point.expand(3, 9, 5), tangent.expand(3, 9, 5)
    for moved in (stiefel.retract(point, tangent), stiefel.retract(points, tangents)[2]):
        torch.testing.assert_close(moved, stiefel.orthonormal_factor(point + tangent), rtol=0, atol=1e-13)


@pytest.mark.parametrize("rate", [1e-3, 0.1, 3.0])
def test_descent_is_a_retracted_projection(rate, dtype):
    point = stiefel.random_orthonormal(9, 5, generator=generator(0), dtype=dtype)
    gradient = torch.randn(9, 5, generator=generator(1), dtype=dtype)
    expected = stiefel.retract(point, -rate * stiefel.project_tangent(point, gradient))
    descended = stiefel.descend(point, gradient, rate)
    torch.testing.assert_close(descended, expected, rtol=0, atol=20 * torch.finfo(dtype).eps)
    assert stiefel.violation(descended) <= 10 * torch.finfo(dtype).eps


def test_bad_numbers_stay_bad():
    point = stiefel.random_orthonormal(4, 3)
    assert stiefel.retract(point, torch.full_like(point, torch.nan)).isnan().all()


def test_random_matrices_are_haar():
    draws = torch.stack([stiefel.random_orthonormal(3, 3, generator=generator(k)) for k in range(2000)])
    assert draws.mean(0).abs().max() < 0.06
    assert (draws.square().mean(0) - 1 / 3).abs().max() < 0.03


def test_too_many_columns():
    with pytest.raises(ValueError, match="cannot be orthonormal"):
        stiefel.random_orthonormal(3, 4)
