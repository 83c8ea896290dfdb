import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import generator, seeds

from h2hgcn.kernels import convolution as origin_rows

CAP = 5.0


def mapped(function, tangent, rectified, joined):
    """The points, and what is kept of them."""
    time, out = (
        torch.empty(len(tangent), dtype=tangent.dtype),
        tangent.new_empty(len(tangent), tangent.shape[1] + joined),
    )
    rows = function(tangent, CAP, rectified, time, out)
    return time, out[:, joined:], rows


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
@given(
    seed=seeds, size=st.integers(0, 40), dim=st.integers(1, 20), exponent=st.integers(-30, 30),
    rectified=st.booleans(), joined=st.booleans(),
)  # fmt: skip
def test_compiled_loops_agree_with_tensor_operations(dtype, tolerance, seed, size, dim, exponent, rectified, joined):
    tangent = 10.0**exponent * torch.randn(size, dim, generator=generator(seed), dtype=torch.float64)
    tangent[: size // 2] *= torch.rand(size // 2, 1, generator=generator(seed)) / 10.0**exponent
    tangent = tangent.to(dtype)
    ours = mapped(origin_rows.exp_rows, tangent, rectified, joined)
    chain = mapped(origin_rows._exp_by_tensors, tangent, rectified, joined)
    for got, expected in zip((*ours[:2], *ours[2]), (*chain[:2], *chain[2]), strict=True):
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=0)
    grads = torch.randn(size, dim + 1, generator=generator(seed), dtype=dtype)
    arguments = (grads[:, 0], grads[:, 1:], ours[1], ours[2], CAP, rectified)
    got, expected = origin_rows.exp_rows_backward(*arguments), origin_rows._exp_backward_by_tensors(*arguments)
    assert got.isfinite().all()
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=100 * tolerance)


@pytest.mark.parametrize("length", [0, 1e-12, 1e-3, 0.31, 0.32, 1, 4.999, 5.001, 1e30, 1e200])
def test_against_mpmath(length):
    direction = torch.tensor([[2.0, -3.0, 6.0]], dtype=torch.float64) / 7
    time, space, _ = mapped(origin_rows.exp_rows, length * direction, False, False)
    with mpmath.workdps(40):
        radius = min(mpmath.mpf(length), mpmath.mpf(CAP))
        assert abs(time.item() - mpmath.cosh(radius)) <= 1e-14 * mpmath.cosh(radius)
        for got, share in zip(space[0].tolist(), direction[0].tolist(), strict=True):
            assert abs(got - share * mpmath.sinh(radius)) <= 2e-15 * mpmath.sinh(radius)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rectified", [False, True])
def test_bad_numbers_show_in_the_time_of_their_row(bad, rectified, dtype):
    tangent = torch.ones(3, 4, dtype=dtype)
    tangent[1, 2] = bad
    for function in (origin_rows.exp_rows, origin_rows._exp_by_tensors):
        time, space, _ = mapped(function, tangent, rectified, False)
        assert time.isnan().tolist() == [False, True, False]
        assert space[::2].isfinite().all()


def test_a_sum_that_overflows_is_not_bad(dtype):
    large = torch.finfo(dtype).max / 2
    tangent = torch.tensor([[large, large, large, 1], [-large, -large, -large, 1]], dtype=dtype)
    time, space, _ = mapped(origin_rows.exp_rows, tangent, True, False)
    assert time.tolist() == pytest.approx([math.cosh(CAP), math.cosh(1)])
    assert space[0].tolist() == pytest.approx([math.sinh(CAP) / 3**0.5] * 3 + [0])
    assert space[1].tolist() == pytest.approx([0, 0, 0, math.sinh(1)])
