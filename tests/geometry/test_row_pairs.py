import pytest
import torch
from samples import generator

from h2hgcn.geometry import lorentz
from h2hgcn.kernels.distances import squared_distances_of_rows

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
