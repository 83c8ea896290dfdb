"""The activation through the Poincaré ball (Dai et al. 2021, Eq. 13), for functions that stay inside it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.geometry.numerics import ACTIVATION_TOLERANCE

ActivationFunction = Callable[[Tensor], Tensor]

_KEEP_THE_BALL: dict[str, ActivationFunction] = {
    "elu": F.elu,
    "softsign": F.softsign,
    "tanh": torch.tanh,
}
_POSITIVELY_HOMOGENEOUS = ("identity", "leaky_relu", "relu")
_SELF_GATED = ("gelu", "hardswish", "mish", "silu", "swish")

# How many points of [-1, 1] a function of the user's own is tried at: a multiple of 3, and odd, so that 0 is among
# them.
_PROBES = 2001


@dataclass(frozen=True)
class BallActivation:
    """An activation with ``|act(b)| ≤ |b|`` in each coordinate, hence from the ball into the ball.

    ``slope`` is set if it is positively homogeneous: 1 above 0 and ``slope`` below; then it also acts on unscaled sums.
    """

    name: str
    function: ActivationFunction
    slope: float | None = None

    def __call__(self, time: Tensor, space: Tensor) -> tuple[Tensor, Tensor]:
        """Activates points given as time ``(n)`` and space ``(n, dim)``.

        ``1 - |act(b)|² = 2/(1 + time) + Σ(b² - act(b)²)``: no term is negative, so nothing cancels near the boundary.
        """
        ball_point = space / (1 + time).unsqueeze(-1)
        activated = self.function(ball_point)
        shrinkage = (ball_point - activated) * (ball_point + activated)
        gap = 2 / (1 + time) + shrinkage.sum(-1)
        space = activated * (2 / gap).unsqueeze(-1)
        return (1 + space.square().sum(-1)).sqrt(), space


def resolve_activation(activation: str | ActivationFunction | None, negative_slope: float = 0.01) -> BallActivation:
    """The activation of that name, or a function checked to keep the ball. None is the identity."""
    if isinstance(activation, nn.LeakyReLU):
        negative_slope = activation.negative_slope
    name = activation if isinstance(activation, str) else _known_name(activation)
    if name is None:
        if not callable(activation):
            raise ValueError(f"activation is a {type(activation).__name__}; pass a name or a function; {_advice()}")
        return BallActivation(_name(activation), _checked(_name(activation), activation))
    if name in _SELF_GATED:
        raise ValueError(
            f"activation {name!r} is self-gated: inside the unit ball it halves every coordinate, and points collapse "
            f"to the origin layer by layer; {_advice()}"
        )
    if name in _POSITIVELY_HOMOGENEOUS:
        return _homogeneous(name, negative_slope)
    if name in _KEEP_THE_BALL:
        return BallActivation(name, _KEEP_THE_BALL[name])
    if name == "selu":
        raise ValueError(f"activation 'selu' leaves the Poincaré ball (it expands by 5 % and more); {_advice()}")
    raise ValueError(f"activation {name!r} is not known to keep the Poincaré ball; {_advice()}")


def _known_name(activation: object) -> str | None:
    """The name of a function or module of PyTorch's that has a special case here."""
    if activation is None or isinstance(activation, nn.Identity):
        return "identity"
    if activation in (F.relu, torch.relu) or isinstance(activation, nn.ReLU):
        return "relu"
    if activation is F.leaky_relu or isinstance(activation, nn.LeakyReLU):
        return "leaky_relu"
    if activation in (F.gelu, F.silu, F.mish, F.hardswish):
        return _name(activation)
    if isinstance(activation, nn.GELU | nn.SiLU | nn.Mish | nn.Hardswish):
        return type(activation).__name__.lower()
    return None


def _homogeneous(name: str, negative_slope: float) -> BallActivation:
    slope = {"identity": 1.0, "relu": 0.0, "leaky_relu": float(negative_slope)}[name]
    if not -1 <= slope <= 1:
        raise ValueError(f"negative_slope={slope:g} leaves the Poincaré ball; take one between -1 and 1")
    return BallActivation(name, partial(F.leaky_relu, negative_slope=slope), slope)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__)).lower()


def _checked(name: str, function: ActivationFunction) -> ActivationFunction:
    if isinstance(function, nn.Module) and next(function.parameters(), None) is not None:
        raise ValueError(
            f"activation {name!r} has learnable parameters, so it cannot be known to stay in the Poincaré ball; "
            f"{_advice()}"
        )
    probe = torch.linspace(-1, 1, _PROBES, dtype=torch.float64)
    with torch.no_grad():
        value = function(probe)
        as_rows = function(probe.reshape(-1, 3))
    if value.shape != probe.shape or not torch.equal(as_rows, value.reshape(-1, 3)):
        raise ValueError(f"activation {name!r} mixes coordinates; it must act on each of them alone; {_advice()}")
    leaves = ~(value.abs() <= probe.abs() * (1 + ACTIVATION_TOLERANCE))
    if bool(leaves.any()):
        worst, image = probe[leaves][0].item(), value[leaves][0].item()
        raise ValueError(
            f"activation {name!r} leaves the Poincaré ball: it takes {worst:g} to {image:g}, "
            f"and |act(b)| ≤ |b| must hold; {_advice()}"
        )
    return function


def _advice() -> str:
    return f"these keep it well: {', '.join(sorted((*_POSITIVELY_HOMOGENEOUS, *_KEEP_THE_BALL)))}"
