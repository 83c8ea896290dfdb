import math

import mpmath
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from h2hgcn.geometry import numerics

ANALYTIC = {
    "sinhc": (numerics.sinhc, lambda x: mpmath.sinh(x) / x, 1.0),
    "asinhc": (numerics.asinhc, lambda x: mpmath.asinh(x) / x, 1.0),
}


@pytest.mark.parametrize("name", ANALYTIC)
@pytest.mark.parametrize("square", [1e-30, 1e-12, 1e-6, 9.9e-3, 1.01e-2, 0.0999, 0.1001, 1.0, 30.0, 300.0])
def test_analytic_functions_against_mpmath(name, square):
    function, truth, _ = ANALYTIC[name]
    with mpmath.workdps(50):
        expected = float(truth(mpmath.sqrt(mpmath.mpf(square))))
    assert function(torch.tensor(square, dtype=torch.float64)).item() == pytest.approx(expected, rel=5e-14)


@pytest.mark.parametrize("name", ANALYTIC)
def test_analytic_functions_are_smooth_at_zero(name):
    function, _, at_zero = ANALYTIC[name]
    assert function(torch.zeros(1, dtype=torch.float64)).item() == at_zero
    squares = torch.tensor([0.0, 1e-4, 0.01, 0.1, 2.0], dtype=torch.float64, requires_grad=True)
    shifted = squares + 1e-3  # finite differences need room on both sides
    assert gradcheck(function, shifted.detach().requires_grad_())
    assert gradgradcheck(function, shifted.detach().requires_grad_())
    (slope,) = torch.autograd.grad(function(squares).sum(), squares)
    assert slope.isfinite().all()


def test_bounds_follow_from_the_dtype():
    assert numerics.max_radius(torch.float32) == pytest.approx(16.6, abs=0.1)
    assert numerics.max_radius(torch.float64) == pytest.approx(36.7, abs=0.1)
    assert numerics.layer_radius(torch.float32) == pytest.approx(6.4, abs=0.1)
    assert numerics.layer_radius(torch.float64) == pytest.approx(16.4, abs=0.1)


def test_safe_norm_neither_overflows_nor_underflows(dtype):
    huge = torch.finfo(dtype).max / 4
    tiny = torch.finfo(dtype).tiny
    x = torch.tensor([[huge, huge], [tiny, tiny], [0.0, 0.0]], dtype=dtype, requires_grad=True)
    norm = numerics.safe_norm(x)
    expected = torch.tensor([[huge * math.sqrt(2)], [tiny * math.sqrt(2)], [0.0]], dtype=dtype)
    torch.testing.assert_close(norm, expected, rtol=1e-6, atol=0)
    norm.sum().backward()
    assert x.grad.isfinite().all()
    assert (x.grad[2] == 0).all()


def test_safe_sqrt_and_reciprocal_at_zero(dtype):
    x = torch.tensor([0.0, 4.0], dtype=dtype, requires_grad=True)
    (numerics.safe_sqrt(x) + numerics.safe_reciprocal(x)).sum().backward()
    assert x.grad.tolist() == [0.0, 0.25 - 1 / 16]
