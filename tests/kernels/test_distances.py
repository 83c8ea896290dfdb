import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import dtypes, generator, random_points, seeds
from torch.autograd import gradcheck, gradgradcheck

from h2hgcn.geometry import lorentz
from h2hgcn.kernels.distances import distance_of_pairs, pairwise_distance, squared_distances_of_rows

# A node with itself, two equal points, the origin, both directions, and a pair twice.
PAIRS = torch.tensor([[0, 0], [0, 1], [2, 3], [3, 2], [4, 5], [4, 5], [5, 6], [6, 7]])


def points_at(radius, dtype):
    directions = torch.nn.functional.normalize(torch.randn(8, 5, generator=generator(1), dtype=torch.float64))
    directions[1], directions[3] = directions[0], 0
    return lorentz.exp_origin(directions * radius).to(dtype).requires_grad_()


def gathered(points, pairs):
    return lorentz.squared_distance(points[pairs[:, 0]], points[pairs[:, 1]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("radius", [0.0, 1e-4, 1.0, 6.0, 12.0])
def test_values_and_gradients_are_those_of_gathered_rows(radius, dtype):
    points = points_at(radius, dtype)
    found, expected = squared_distances_of_rows(points, PAIRS), gathered(points, PAIRS)
    torch.testing.assert_close(found, expected, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert found[0] == found[1] == 0
    grad = torch.linspace(-1, 2, len(PAIRS), dtype=dtype)
    (found,), (expected,) = (torch.autograd.grad(y, points, grad) for y in (found, expected))
    largest = float(expected.abs().max())
    torch.testing.assert_close(found, expected, rtol=0, atol=8 * torch.finfo(dtype).eps * largest)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_more_points_than_a_cache_holds_and_more_pairs_than_a_block(dtype):
    points = lorentz.exp_origin(torch.randn(9000, 64, generator=generator(4), dtype=dtype) / 8).requires_grad_()
    pairs = torch.randint(9000, (70_000, 2), generator=generator(5))
    found, expected = squared_distances_of_rows(points, pairs), gathered(points, pairs)
    torch.testing.assert_close(found, expected, rtol=8 * torch.finfo(dtype).eps, atol=0)
    (found,), (expected,) = (torch.autograd.grad(y.sum(), points) for y in (found, expected))
    torch.testing.assert_close(found, expected, rtol=0, atol=float(64 * torch.finfo(dtype).eps * expected.abs().max()))


def test_second_derivatives():
    points = points_at(1.0, torch.float64)[4:].detach().requires_grad_()
    pairs = torch.tensor([[0, 1], [1, 2], [3, 1]])
    assert torch.autograd.gradgradcheck(lambda x: squared_distances_of_rows(lorentz.project(x), pairs), points)


def test_layout_and_threads_make_no_difference():
    points = lorentz.exp_origin(torch.randn(3000, 40, generator=generator(2)))
    pairs = torch.randint(3000, (5000, 2), generator=generator(3))
    expected = squared_distances_of_rows(points, pairs)
    strided = points.T.contiguous().T
    assert torch.equal(squared_distances_of_rows(strided, pairs.T.contiguous().T), expected)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(squared_distances_of_rows(points, pairs), expected)
    finally:
        torch.set_num_threads(before)


def test_no_pairs_and_pairs_that_are_not_there():
    points = points_at(1.0, torch.float32)
    none = squared_distances_of_rows(points, PAIRS[:0])
    assert none.shape == (0,)
    assert not torch.autograd.grad(none.sum(), points)[0].any()
    for pair in ([0, 8], [-1, 0]):
        with pytest.raises(IndexError, match="there are 8 points"):
            squared_distances_of_rows(points, torch.tensor([pair]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_number_of_threads_changes_nothing(dtype):
    points = lorentz.exp_origin(torch.randn(9000, 64, generator=generator(4), dtype=dtype) / 8).requires_grad_()
    pairs = torch.randint(9000, (70_000, 2), generator=generator(5))
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(torch.autograd.grad(squared_distances_of_rows(points, pairs).sum(), points)[0])
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_two_sets_of_points(dtype):
    x, y = (random_points(9, 4, 3.0, seed, dtype).requires_grad_() for seed in (1, 2))
    found, expected = distance_of_pairs(x, y, squared=True), lorentz.composed_distance(x, y, squared=True)
    torch.testing.assert_close(found, expected)
    for ours, theirs in zip(*(torch.autograd.grad(square.sum(), (x, y)) for square in (found, expected)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    all_pairs = x[:, None], y[None]
    torch.testing.assert_close(
        distance_of_pairs(*all_pairs, squared=True), lorentz.composed_distance(*all_pairs, squared=True)
    )


def from_space(*space):
    """Distances as a function of the space coordinates alone, on which time depends."""
    return pairwise_distance(*(lorentz.project(torch.cat([torch.ones_like(s[:, :1]), s], 1)) for s in space))


@given(n=st.integers(0, 9), m=st.integers(0, 9), dim=st.integers(1, 5), seed=seeds, dtype=dtypes)
def test_against_single_distances(n, m, dim, seed, dtype):
    points, others = random_points(n, dim, 3, seed, dtype), random_points(m, dim, 3, seed + 1, dtype)
    distances = pairwise_distance(points, others)
    assert distances.shape == (n, m)
    assert distances.dtype == dtype
    expected = lorentz.distance(points[:, None], others[None])
    torch.testing.assert_close(distances, expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(distances, lorentz.pairwise_distance(points, others), atol=1e-7, rtol=1e-6)


def test_against_mpmath():
    points, others = random_points(4, 3, 8, 0), random_points(5, 3, 8, 1)
    with mpmath.workdps(60):
        for i, row in enumerate(pairwise_distance(points, others).tolist()):
            for j, distance in enumerate(row):
                a, b = ([mpmath.mpf(value) for value in p[k, 1:].tolist()] for p, k in ((points, i), (others, j)))
                times = [mpmath.sqrt(1 + sum(value**2 for value in s)) for s in (a, b)]
                exact = mpmath.acosh(times[0] * times[1] - sum(x * y for x, y in zip(a, b, strict=True)))
                assert abs(distance - exact) <= 1e-9 * exact


@pytest.mark.parametrize(("n", "m"), [(3, 4), (1, 1), (0, 3), (3, 0)])
def test_derivatives_of_all_pairs(n, m):
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

    monkeypatch.setattr("h2hgcn.kernels.distances._BLOCK_ELEMENTS", blocks * 6)
    for ours, composed in zip(gradients(pairwise_distance), gradients(lorentz.pairwise_distance), strict=True):
        torch.testing.assert_close(ours, composed, atol=2e-5 if dtype == torch.float32 else 1e-10, rtol=1e-5)


def test_equal_points_have_no_distance_and_no_gradient(dtype):
    for radius in (0, 0.1, 3, 10):
        points = random_points(5, 3, radius, 0, dtype).requires_grad_()
        distances = pairwise_distance(points, points.detach())
        assert distances.diagonal().abs().max() == 0
        distances.diagonal().sum().backward()
        assert points.grad.abs().max() == 0


def test_more_axes(dtype):
    points, others = random_points(12, 2, 2, 0, dtype).view(3, 4, 3), random_points(15, 2, 2, 1, dtype).view(3, 5, 3)
    expected = torch.stack([pairwise_distance(a, b) for a, b in zip(points, others, strict=True)])
    torch.testing.assert_close(pairwise_distance(points, others), expected)


def test_float32_is_as_good_as_its_coordinates():
    points, others = random_points(30, 4, 6, 0), random_points(30, 4, 6, 1)
    exact = pairwise_distance(points, others)
    torch.testing.assert_close(pairwise_distance(points.float(), others.float()).double(), exact, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("dim", [2, 64, 300])
@pytest.mark.parametrize("radius", [0.1, 1, 3, 6, 9])
@pytest.mark.parametrize("close", [0, 2, 20])
def test_float32_products_are_taken_only_where_they_know_the_chord(dim, radius, close):
    """Pairs that are close for their radius are few or many, so that all three ways are gone."""
    points, others = random_points(40, dim, radius, 0, torch.float32), random_points(30, dim, radius, 1, torch.float32)
    near = lorentz.exp_origin(lorentz.log_origin(points[:close]) * 1.01)
    others = torch.cat([others, near])
    exact = pairwise_distance(points.double(), others.double())
    assert (pairwise_distance(points, others) - exact).abs().le(5e-6 * exact).all()


def test_not_a_number_stays_one():
    points, others = random_points(40, 8, 3, 0, torch.float32), random_points(30, 8, 3, 1, torch.float32)
    points[3, 2] = math.nan
    distances = pairwise_distance(points, others)
    assert distances[3].isnan().all()
    assert distances.isnan().sum() == len(others)
