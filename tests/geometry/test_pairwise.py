import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import dtypes, random_points, seeds
from torch.autograd import gradcheck, gradgradcheck

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.distances import all_distances, composed_all_distances


def from_space(*space):
    """Distances as a function of the space coordinates alone, on which time depends."""
    return all_distances(*(lorentz.project(torch.cat([torch.ones_like(s[:, :1]), s], 1)) for s in space))


@given(n=st.integers(0, 9), m=st.integers(0, 9), dim=st.integers(1, 5), seed=seeds, dtype=dtypes)
def test_against_single_distances(n, m, dim, seed, dtype):
    points, others = random_points(n, dim, 3, seed, dtype), random_points(m, dim, 3, seed + 1, dtype)
    distances = all_distances(points, others)
    assert distances.shape == (n, m)
    assert distances.dtype == dtype
    expected = lorentz.distance(points[:, None], others[None])
    torch.testing.assert_close(distances, expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(distances, composed_all_distances(points, others), atol=1e-7, rtol=1e-6)


def test_against_mpmath():
    points, others = random_points(4, 3, 8, 0), random_points(5, 3, 8, 1)
    with mpmath.workdps(60):
        for i, row in enumerate(all_distances(points, others).tolist()):
            for j, distance in enumerate(row):
                a, b = ([mpmath.mpf(value) for value in p[k, 1:].tolist()] for p, k in ((points, i), (others, j)))
                times = [mpmath.sqrt(1 + sum(value**2 for value in s)) for s in (a, b)]
                exact = mpmath.acosh(times[0] * times[1] - sum(x * y for x, y in zip(a, b, strict=True)))
                assert abs(distance - exact) <= 1e-9 * exact


@pytest.mark.parametrize(("n", "m"), [(3, 4), (1, 1), (0, 3), (3, 0)])
def test_derivatives(n, m):
    space = [random_points(count, 2, 2, seed)[:, 1:].requires_grad_() for seed, count in enumerate((n, m))]
    assert gradcheck(from_space, space)
    assert gradgradcheck(from_space, space)
    for fixed in range(2):
        mixed = [part.detach().requires_grad_(place == fixed) for place, part in enumerate(space)]
        assert gradcheck(from_space, mixed)
        assert gradgradcheck(from_space, mixed)


@pytest.mark.parametrize("blocks", [1, 7])
def test_blocks_do_not_show(blocks, monkeypatch, dtype):
    points, others = random_points(20, 3, 4, 0, dtype), random_points(6, 3, 4, 1, dtype)
    weights = torch.randn(20, 6, dtype=dtype)

    def gradients(function):
        inputs = [part.clone().requires_grad_() for part in (points, others)]
        distances = function(*inputs)
        return distances.detach(), *torch.autograd.grad((distances * weights).sum(), inputs)

    monkeypatch.setattr("h2hgcn.geometry.distances._BLOCK_ELEMENTS", blocks * 6)
    for ours, composed in zip(gradients(all_distances), gradients(composed_all_distances), strict=True):
        torch.testing.assert_close(ours, composed, atol=2e-5 if dtype == torch.float32 else 1e-10, rtol=1e-5)


def test_equal_points_have_no_distance_and_no_gradient(dtype):
    for radius in (0, 0.1, 3, 10):
        points = random_points(5, 3, radius, 0, dtype).requires_grad_()
        distances = all_distances(points, points.detach())
        assert distances.diagonal().abs().max() == 0
        distances.diagonal().sum().backward()
        assert points.grad.abs().max() == 0


def test_more_axes(dtype):
    points, others = random_points(12, 2, 2, 0, dtype).view(3, 4, 3), random_points(15, 2, 2, 1, dtype).view(3, 5, 3)
    expected = torch.stack([all_distances(a, b) for a, b in zip(points, others, strict=True)])
    torch.testing.assert_close(all_distances(points, others), expected)


def test_float32_is_as_good_as_its_coordinates():
    points, others = random_points(30, 4, 6, 0), random_points(30, 4, 6, 1)
    exact = all_distances(points, others)
    torch.testing.assert_close(all_distances(points.float(), others.float()).double(), exact, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("dim", [2, 64, 300])
@pytest.mark.parametrize("radius", [0.1, 1, 3, 6, 9])
@pytest.mark.parametrize("close", [0, 2, 20])
def test_float32_products_are_taken_only_where_they_know_the_chord(dim, radius, close):
    """Pairs that are close for their radius are few or many, so that all three ways are gone."""
    points, others = random_points(40, dim, radius, 0, torch.float32), random_points(30, dim, radius, 1, torch.float32)
    near = lorentz.exp_origin(lorentz.log_origin(points[:close]) * 1.01)
    others = torch.cat([others, near])
    exact = all_distances(points.double(), others.double())
    assert (all_distances(points, others) - exact).abs().le(5e-6 * exact).all()


def test_not_a_number_stays_one():
    points, others = random_points(40, 8, 3, 0, torch.float32), random_points(30, 8, 3, 1, torch.float32)
    points[3, 2] = math.nan
    distances = all_distances(points, others)
    assert distances[3].isnan().all()
    assert distances.isnan().sum() == len(others)
