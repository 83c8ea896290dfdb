"""The Fermi-Dirac decoder of links."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import MAX_LOG_TEMPERATURE


class FermiDiracDecoder(nn.Module):
    """Probability of a link, ``1/(exp((d² - r)/t) + 1)`` (Dai et al. 2021, Eq. 14), given as its logit ``(r - d²)/t``.

    Args:
        r: The squared distance at which a link is as likely as not.
        t: The temperature, positive: how sharply the probability falls off there.
        learnable: Whether ``r`` and ``t`` are learnt; ``t`` is learnt as its logarithm and stays positive. Beyond
            ``numerics.MAX_LOG_TEMPERATURE`` it stays at the bound, with gradient 0.
        squared_distance: Of two sets of rows; that of another space makes this the decoder of that space.
    """

    def __init__(
        self,
        r: float = 2.0,
        t: float = 1.0,
        learnable: bool = False,
        squared_distance: Callable[[Tensor, Tensor], Tensor] = lorentz.squared_distance,
    ) -> None:
        super().__init__()
        if not (math.isfinite(r) and math.isfinite(t) and t > 0):
            raise ValueError(f"r={r}, t={t}: the decoder needs finite numbers and a positive temperature t")
        if abs(math.log(t)) > MAX_LOG_TEMPERATURE:
            raise ValueError(
                f"t={t:g} has the logarithm {math.log(t):.1f}; logits and their gradients stay finite between "
                f"{-MAX_LOG_TEMPERATURE:g} and {MAX_LOG_TEMPERATURE:g}: take a t from there"
            )
        self.learnable = learnable
        self.squared_distance = squared_distance
        radius, log_temperature = torch.tensor(float(r)), torch.tensor(math.log(t))
        if learnable:
            self.radius, self.log_temperature = nn.Parameter(radius), nn.Parameter(log_temperature)
        else:
            self.register_buffer("radius", radius)
            self.register_buffer("log_temperature", log_temperature)

    @property
    def r(self) -> Tensor:
        return self.radius

    @property
    def t(self) -> Tensor:
        return self.log_temperature.clamp(-MAX_LOG_TEMPERATURE, MAX_LOG_TEMPERATURE).exp()

    def forward(self, source: Tensor, target: Tensor, *, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of links between rows of points; for the loss with logits. ``distance_scale`` is the encoder's."""
        if source.shape[-1:] != target.shape[-1:]:
            raise ValueError(
                f"source points have shape {tuple(source.shape)} and target points {tuple(target.shape)}, but their "
                "last axes must be of one width; take both from one encoder"
            )
        return self.logits(self.squared_distance(source, target), distance_scale)

    def logits(self, square: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of links at these squared distances."""
        if isinstance(distance_scale, Tensor) or distance_scale != 1:
            square = square * distance_scale**2
        return (self.radius - square) / self.t

    def probability(self, source: Tensor, target: Tensor, *, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Probabilities of links."""
        return torch.sigmoid(self(source, target, distance_scale=distance_scale))

    def extra_repr(self) -> str:
        return f"r={self.r.item():g}, t={self.t.item():g}, learnable={self.learnable}"
