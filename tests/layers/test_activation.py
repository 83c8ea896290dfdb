import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from samples import dtypes, random_points, seeds
from torch import nn
from torch.nn import functional as F

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.kernels.activation import resolve_activation

KEEPING = ["identity", "relu", "leaky_relu", "elu", "tanh", "softsign", None, torch.sin, nn.Hardtanh(), nn.Softshrink()]


@given(seed=seeds, dtype=dtypes, activation=st.sampled_from(KEEPING), radius=st.floats(0, 12))
def test_stays_on_the_hyperboloid_and_never_moves_outwards(seed, dtype, activation, radius):
    points = random_points(20, 5, radius, seed, dtype)
    time, space = resolve_activation(activation)(points[:, 0], points[:, 1:])
    activated = torch.cat([time[:, None], space], 1)
    assert activated.isfinite().all()
    assert lorentz.violation(activated).max() <= 8 * torch.finfo(dtype).eps
    outwards = lorentz.distance_to_origin(activated) - lorentz.distance_to_origin(points)
    assert outwards.max() <= 1e-4


@pytest.mark.parametrize("activation", ["relu", "tanh", "elu", "softsign"])
def test_is_eq_13(activation):
    points = random_points(20, 5, 3.0)
    resolved = resolve_activation(activation)
    expected = poincare.to_lorentz(resolved.function(poincare.from_lorentz(points)))
    time, space = resolved(points[:, 0], points[:, 1:])
    torch.testing.assert_close(torch.cat([time[:, None], space], 1), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("given_activation", "slope"),
    [
        ("relu", 0.0),
        (F.relu, 0.0),
        (torch.relu, 0.0),
        (nn.ReLU(), 0.0),
        (nn.LeakyReLU(0.3), 0.3),
        (nn.Identity(), 1.0),
        (None, 1.0),
    ],
)
def test_known_functions_get_the_fast_kernel(given_activation, slope):
    assert resolve_activation(given_activation).slope == slope


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        ("selu", "'selu' leaves the Poincaré ball.*elu, identity, leaky_relu, relu, softsign, tanh"),
        (F.selu, "leaves the Poincaré ball"),
        (nn.SELU(), "leaves the Poincaré ball"),
        ("gelu", "'gelu' is self-gated.*elu, identity, leaky_relu, relu, softsign, tanh"),
        (nn.GELU(), "self-gated"),
        (torch.sigmoid, "leaves the Poincaré ball"),
        (torch.exp, "leaves the Poincaré ball"),
        (nn.PReLU(), "learnable parameters"),
        ("swiglu", "not known to keep"),
    ],
)
def test_others_are_refused(activation, message):
    with pytest.raises(ValueError, match=message):
        resolve_activation(activation)


def test_slopes_beyond_one_are_refused():
    with pytest.raises(ValueError, match=r"negative_slope=1\.5"):
        resolve_activation("leaky_relu", 1.5)


def test_can_be_pickled():
    activation = pickle.loads(pickle.dumps(resolve_activation("leaky_relu", 0.2)))
    assert activation.slope == 0.2


def test_functions_of_the_users_own_are_theirs_whatever_their_name():
    def relu(x):
        return x.clamp(-0.1, 0.1)

    def gelu(x):
        return x / 2

    assert resolve_activation(relu).slope is None
    assert resolve_activation(relu).function is relu
    assert resolve_activation(gelu).function is gelu


@pytest.mark.parametrize(
    "function", [lambda b: F.normalize(b, dim=-1), lambda b: b / b.abs().amax(-1, keepdim=True), 5]
)
def test_functions_of_rows_are_refused(function):
    with pytest.raises(ValueError, match=r"mixes coordinates|is a int|leaves"):
        resolve_activation(function)
