import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import generator, random_graph, random_points, seeds
from torch.autograd import gradcheck, gradgradcheck

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.kernels.activation import resolve_activation
from h2hgcn.kernels.convolution import (
    composed_convolve,
    composed_exp_origin_parts,
    convolve,
    convolve_to_points,
    exp_origin_parts,
    exp_origin_points,
)
from h2hgcn.layers import prepare_adjacency

ACTIVATIONS = [("relu", 0.0), ("leaky_relu", 0.2), ("leaky_relu", -0.5), ("identity", 0.0)]


def inputs(in_dim, out_dim, seed=0, num_nodes=7, radius=2.0):
    points = random_points(num_nodes, in_dim, radius, seed)
    weight = stiefel.random_orthonormal(out_dim, in_dim, generator=generator(seed), dtype=torch.float64)
    time, space = points[:, 0].clone(), points[:, 1:].clone()
    return time.requires_grad_(), space.requires_grad_(), weight.requires_grad_()


@pytest.mark.parametrize(("name", "slope"), ACTIVATIONS)
@pytest.mark.parametrize(("in_dim", "out_dim"), [(3, 3), (2, 4)])
def test_convolution_has_exact_gradients(name, slope, in_dim, out_dim):
    matrix = prepare_adjacency(*random_graph(7, 15), 7).matrix("symmetric", torch.float64)
    activation = resolve_activation(name, slope)
    arguments = inputs(in_dim, out_dim)
    assert gradcheck(lambda *x: convolve(*x, matrix, activation), arguments)
    assert gradgradcheck(lambda *x: convolve(*x, matrix, activation), arguments)
    assert gradcheck(lambda *x: convolve_to_points(*x, matrix, activation), arguments)
    assert gradgradcheck(lambda *x: convolve_to_points(*x, matrix, activation), arguments)
    time, space = convolve(*arguments, matrix, activation)
    assert torch.equal(convolve_to_points(*arguments, matrix, activation), torch.cat([time[:, None], space], 1))


@given(seed=seeds, activation=st.sampled_from(ACTIVATIONS), grow=st.integers(0, 3), radius=st.floats(0, 6))
def test_convolution_agrees_with_its_twin(seed, activation, grow, radius):
    matrix = prepare_adjacency(*random_graph(9, 30, seed), 9).matrix("uniform", torch.float64)
    resolved = resolve_activation(*activation)
    arguments = inputs(4, 4 + grow, seed, num_nodes=9, radius=radius)
    ours, twin = convolve(*arguments, matrix, resolved), composed_convolve(*arguments, matrix, resolved)
    for got, expected in zip(ours, twin, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)
    grads = [torch.randn_like(output) for output in ours]
    for got, expected in zip(
        torch.autograd.grad(ours, arguments, grads), torch.autograd.grad(twin, arguments, grads), strict=True
    ):
        torch.testing.assert_close(got, expected, rtol=1e-7, atol=1e-7 * expected.abs().max().item())


def test_only_needed_gradients_are_computed():
    matrix = prepare_adjacency(*random_graph(7, 15), 7).matrix("symmetric", torch.float64)
    for in_dim in (3, 2):
        time, space, weight = (x.detach() for x in inputs(in_dim, 3))
        convolve(time, space, weight.requires_grad_(), matrix, resolve_activation("relu"))[1].sum().backward()
        assert weight.grad is not None
        convolve(time, space.requires_grad_(), weight.detach(), matrix, resolve_activation("relu"))[1].sum().backward()
        assert space.grad is not None


def test_exponential_map_has_exact_gradients():
    tangent = torch.randn(6, 3, dtype=torch.float64)
    tangent[0] = 0
    tangent[1] *= 1e-4
    tangent[2] *= 8 / tangent[2].norm()  # beyond the cap
    tangent.requires_grad_()
    assert gradcheck(lambda v: exp_origin_parts(v, 4.0), tangent)
    assert gradcheck(exp_origin_points, tangent)
    smooth = tangent.detach()[1:].requires_grad_()
    assert gradgradcheck(lambda v: exp_origin_parts(v, 4.0), smooth)
    assert gradcheck(lambda v: exp_origin_parts(v, 4.0, True), smooth)
    assert gradgradcheck(lambda v: exp_origin_parts(v, 4.0, True), smooth)
    assert gradgradcheck(exp_origin_points, smooth)


@given(seed=seeds, exponent=st.integers(-30, 30), rectified=st.booleans())
def test_exponential_map_agrees_with_its_twin(seed, exponent, rectified):
    tangent = (10.0**exponent * torch.randn(4, 3, generator=generator(seed))).requires_grad_()
    ours, twin = (function(tangent, 6.0, rectified) for function in (exp_origin_parts, composed_exp_origin_parts))
    for got, expected in zip(ours, twin, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=0)
    ours, twin = (
        torch.autograd.grad(sum(part.sum() for part in function(tangent, 6.0, rectified)), tangent)[0]
        for function in (exp_origin_parts, composed_exp_origin_parts)
    )
    assert ours.isfinite().all()
    # the gradient of a shortened row is a difference of terms as large as the factor, and 0 if one number is positive
    factor = 202 / tangent.detach().double().norm(dim=1).clamp_min(6).min().item()
    torch.testing.assert_close(ours, twin, rtol=1e-3, atol=1e-4 * max(twin.abs().max().item(), factor))


def test_exponential_map_is_the_geometrys():
    tangent = torch.randn(5, 3)
    time, space = exp_origin_parts(tangent, 6.0)
    torch.testing.assert_close(torch.cat([time[:, None], space], 1), lorentz.exp_origin(tangent))
    torch.testing.assert_close(exp_origin_points(10 * tangent), lorentz.exp_origin(10 * tangent), rtol=1e-5, atol=0)


def test_second_derivatives_when_time_follows_from_space():
    matrix = prepare_adjacency(torch.tensor([[0, 1], [1, 0]])).matrix("symmetric", torch.float64)
    weight = stiefel.random_orthonormal(2, 2, dtype=torch.float64)
    space = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)

    def gradient(create_graph):
        time = (1 + space.square().sum(1)).sqrt()
        output = convolve(time, space, weight, matrix, resolve_activation("identity"))[0].sum()
        return torch.autograd.grad(output, space, create_graph=create_graph)[0]

    torch.testing.assert_close(gradient(True), gradient(False))
