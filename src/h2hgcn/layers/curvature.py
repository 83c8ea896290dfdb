"""The curvature of an encoder, fixed or learnt."""

import math

import torch
from torch import Tensor, nn


class Curvature(nn.Module):
    """``c > 0`` of a space of curvature ``-c``, kept as its logarithm. All geometry is at curvature -1: vectors that
    enter are multiplied with ``root``, and distances that leave are divided by it.
    """

    def __init__(self, curvature: float = 1.0, learnable: bool = False) -> None:
        super().__init__()
        if not (math.isfinite(curvature) and curvature > 0):
            raise ValueError(f"curvature={curvature}: give c > 0 for a space of curvature -c")
        self.log = nn.Parameter(torch.tensor(math.log(curvature)), requires_grad=learnable)

    @property
    def root(self) -> Tensor:
        """``sqrt(c)``."""
        return (0.5 * self.log).exp()

    def extra_repr(self) -> str:
        return f"{-self.log.exp().item():g}"
