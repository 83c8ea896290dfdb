import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import generator, random_graph, random_points, seeds
from torch.autograd import gradcheck, gradgradcheck

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.kernels.convolution import convolve, exp_origin
from h2hgcn.layers import prepare_adjacency
from h2hgcn.layers.h2h_conv import convolution, resolve_activation

SLOPES = [0.0, 0.2, -0.5, 1.0]
CAP = 5.0


def inputs(in_dim, out_dim, seed=0, num_nodes=7, radius=2.0, dtype=torch.float64):
    points = random_points(num_nodes, in_dim, radius, seed, dtype)
    weight = stiefel.random_orthonormal(out_dim, in_dim, generator=generator(seed), dtype=dtype)
    return points.requires_grad_(), weight.requires_grad_()


def both(matrix, slope):
    """The kernel and its reference."""
    activation = resolve_activation("leaky_relu", slope)

    def reference(points, weight):
        return convolution(points, weight, matrix, activation)

    return lambda points, weight: convolve(points, weight, matrix, slope, reference), reference


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize(("in_dim", "out_dim"), [(3, 3), (2, 4)])
def test_convolution_has_exact_gradients(slope, in_dim, out_dim):
    kernel, _ = both(prepare_adjacency(*random_graph(7, 15), 7).matrix("symmetric", torch.float64), slope)
    arguments = inputs(in_dim, out_dim)
    assert gradcheck(kernel, arguments)
    assert gradgradcheck(kernel, arguments)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float64, 1e-10)])
@given(
    seed=seeds, slope=st.sampled_from(SLOPES), size=st.integers(1, 70), dim=st.integers(1, 20), grow=st.integers(0, 3),
    radius=st.floats(0, 3),
)  # fmt: skip
def test_convolution_agrees_with_its_reference(dtype, tolerance, seed, slope, size, dim, grow, radius):
    matrix = prepare_adjacency(*random_graph(size, 3 * size, seed), size).matrix("uniform", dtype)
    kernel, reference = both(matrix, slope)
    arguments = inputs(dim, dim + grow, seed, size, radius, dtype)
    ours, expected = kernel(*arguments), reference(*arguments)
    torch.testing.assert_close(ours, expected, rtol=tolerance, atol=tolerance)
    grad = torch.randn(expected.shape, generator=generator(seed), dtype=dtype)
    gradients = (torch.autograd.grad(output, arguments, grad) for output in (ours, expected))
    for got, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=10 * tolerance * max(1, wanted.abs().max().item()))


def test_only_needed_gradients_are_computed():
    kernel, _ = both(prepare_adjacency(*random_graph(7, 15), 7).matrix("symmetric", torch.float64), 0.0)
    for in_dim in (3, 2):
        points, weight = (x.detach() for x in inputs(in_dim, 3))
        kernel(points, weight.requires_grad_()).sum().backward()
        assert weight.grad is not None
        kernel(points.requires_grad_(), weight.detach()).sum().backward()
        assert points.grad is not None


def test_second_derivatives_when_time_follows_from_space():
    kernel, _ = both(prepare_adjacency(torch.tensor([[0, 1], [1, 0]])).matrix("symmetric", torch.float64), 1.0)
    points, weight = inputs(2, 2, num_nodes=2)
    space = points.detach()[:, 1:].clone().requires_grad_()

    def gradient(create_graph):
        output = kernel(lorentz.project(torch.cat([space[:, :1], space], 1)), weight)[:, 0].sum()
        return torch.autograd.grad(output, space, create_graph=create_graph)[0]

    torch.testing.assert_close(gradient(True), gradient(False))


def test_exponential_map_has_exact_gradients():
    tangent = torch.randn(6, 3, dtype=torch.float64)
    tangent[0] = 0
    tangent[1] *= 1e-4
    tangent[2] *= 8 / tangent[2].norm()  # beyond the cap
    tangent.requires_grad_()
    assert gradcheck(lambda v: exp_origin(v, 4.0), tangent)
    assert gradcheck(exp_origin, tangent)
    smooth = tangent.detach()[1:].requires_grad_()
    for rectified in (False, True):
        assert gradcheck(lambda v, rectified=rectified: exp_origin(v, 4.0, rectified), smooth)
        assert gradgradcheck(lambda v, rectified=rectified: exp_origin(v, 4.0, rectified), smooth)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(seed=seeds, exponent=st.integers(-30, 30), rectified=st.booleans())
def test_exponential_map_agrees_with_its_reference(dtype, seed, exponent, rectified):
    tangent = (10.0**exponent * torch.randn(4, 3, generator=generator(seed), dtype=dtype)).requires_grad_()
    ours = exp_origin(tangent, 6.0, rectified)
    reference = lorentz.exp_origin(tangent.relu() if rectified else tangent, 6.0)
    torch.testing.assert_close(ours, reference, rtol=1e-5, atol=0)
    (found,), (expected,) = (torch.autograd.grad(points.sum(), tangent) for points in (ours, reference))
    assert found.isfinite().all()
    # the gradient of a shortened row is a difference of terms as large as the factor, and 0 if one number is positive
    factor = 202 / tangent.detach().double().norm(dim=1).clamp_min(6).min().item()
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4 * max(expected.abs().max().item(), factor))


@pytest.mark.parametrize("length", [0, 1e-12, 1e-3, 0.31, 0.32, 1, 4.999, 5.001, 1e30, 1e200])
def test_against_mpmath(length):
    direction = torch.tensor([[2.0, -3.0, 6.0]], dtype=torch.float64) / 7
    points = exp_origin(length * direction, CAP)[0]
    with mpmath.workdps(40):
        radius = min(mpmath.mpf(length), mpmath.mpf(CAP))
        assert abs(points[0].item() - mpmath.cosh(radius)) <= 1e-14 * mpmath.cosh(radius)
        for got, share in zip(points[1:].tolist(), direction[0].tolist(), strict=True):
            assert abs(got - share * mpmath.sinh(radius)) <= 2e-15 * mpmath.sinh(radius)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rectified", [False, True])
def test_bad_numbers_show_in_the_time_of_their_row(bad, rectified, dtype):
    tangent = torch.ones(3, 4, dtype=dtype)
    tangent[1, 2] = bad
    points = exp_origin(tangent, CAP, rectified)
    assert points[:, 0].isnan().tolist() == [False, True, False]
    assert points[::2].isfinite().all()


def test_a_sum_that_overflows_is_not_bad(dtype):
    large = torch.finfo(dtype).max / 2
    tangent = torch.tensor([[large, large, large, 1], [-large, -large, -large, 1]], dtype=dtype)
    points = exp_origin(tangent, CAP, True)
    time, space = points[:, 0], points[:, 1:]
    assert time.tolist() == pytest.approx([math.cosh(CAP), math.cosh(1)])
    assert space[0].tolist() == pytest.approx([math.sinh(CAP) / 3**0.5] * 3 + [0])
    assert space[1].tolist() == pytest.approx([0, 0, 0, math.sinh(1)])
