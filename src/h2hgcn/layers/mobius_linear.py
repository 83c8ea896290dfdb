"""The linear layer of hyperbolic neural networks."""

from typing import Any

import torch
from torch import Tensor, nn

from h2hgcn.geometry.translation import translated
from h2hgcn.layers.feature_linear import FeatureLinear


class MobiusLinear(nn.Module):
    """``M ⊗ x ⊕ b`` (Ganea et al. 2018, Eq. 26 and 28), between tangent vectors at the origin.

    Since ``M ⊗ x = exp(M log(x))``, tangent vectors go from layer to layer: the exponential map at the end of one and
    the logarithm at the start of the next, or of an activation, undo each other. The bias is learnt as the tangent
    vector that leads to it, so that any optimiser serves.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = FeatureLinear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights as PyTorch does those of any linear layer; the bias begins at the origin."""
        self.linear.reset_parameters()
        nn.init.zeros_(self.bias)

    def forward(self, x: Any, root_curvature: Tensor | float = 1.0) -> Tensor:
        """``root_curvature`` is ``sqrt(c)`` of a space of curvature ``-c``, in which all vectors are measured."""
        return translated(self.linear(x) * root_curvature, self.bias * root_curvature) / root_curvature
