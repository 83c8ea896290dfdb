import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import dtypes, random_points, seeds

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.layers import LorentzLinear


@given(seed=seeds, dtype=dtypes, in_dim=st.integers(1, 20), grow=st.integers(0, 10))
def test_isometry(seed, dtype, in_dim, grow):
    torch.manual_seed(seed)
    layer = LorentzLinear(in_dim, in_dim + grow, dtype=dtype)
    x, y = (random_points(10, in_dim, 4.0, seed + k, dtype) for k in range(2))
    image_x, image_y = layer(x), layer(y)
    assert lorentz.violation(image_x).max() <= 20 * torch.finfo(dtype).eps
    assert torch.equal(image_x[:, 0], x[:, 0])
    tolerance = 1e-3 if dtype == torch.float32 else 1e-10
    torch.testing.assert_close(
        lorentz.distance(image_x, image_y), lorentz.distance(x, y), rtol=tolerance, atol=tolerance
    )


def test_is_the_block_diagonal_matrix_of_the_paper():
    layer = LorentzLinear(3, 5, dtype=torch.float64)
    points = random_points(4, 3, 2.0)
    block_diagonal = torch.block_diag(torch.ones(1, 1, dtype=torch.float64), layer.weight)
    torch.testing.assert_close(layer(points), points @ block_diagonal.T)
    assert layer.weight.shape == (5, 3)
    assert repr(layer) == "LorentzLinear(3, 5)"


def test_reset_draws_another_orthonormal_matrix():
    layer = LorentzLinear(4, 4)
    before = layer.weight.clone()
    layer.reset_parameters()
    assert not torch.equal(before, layer.weight)
    assert stiefel.violation(layer.weight) < 1e-6


def test_bad_dimensions():
    with pytest.raises(ValueError, match=r"out_dim=3 is below in_dim=5.*stem"):
        LorentzLinear(5, 3)
    with pytest.raises(ValueError, match="at least one dimension"):
        LorentzLinear(0, 3)
    with pytest.raises(ValueError, match=r"needs a last axis of 4.*exp_origin"):
        LorentzLinear(3, 3)(torch.ones(2, 3))
    with pytest.raises(ValueError, match="float32 or float64"):
        LorentzLinear(3, 3)(torch.ones(2, 4, dtype=torch.float16))
