"""Hyperbolic neural networks, which do not use the graph."""

from typing import Any

import torch
from torch import Tensor, nn

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.layers.inputs import FeatureLinear
from h2hgcn.layers.spaces import Space, log_curvature
from h2hgcn.models.mlp import MLP


class MobiusLinear(nn.Module):
    """``M ⊗ x ⊕ b`` (Ganea et al. 2018, Eq. 26 and 28), between tangent vectors at the origin.

    Since ``M ⊗ x = exp(M log(x))``, tangent vectors go from layer to layer: the exponential map at the end of one and
    the logarithm at the start of the next, or of an activation, undo each other. The bias is learned as the tangent
    vector that leads to it, so that any optimizer can train it.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = FeatureLinear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.empty(out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights as PyTorch does for a linear layer; the bias starts at the origin."""
        self.linear.reset_parameters()
        nn.init.zeros_(self.bias)

    def forward(self, x: Any, root_curvature: Tensor | float = 1.0) -> Tensor:
        """``root_curvature`` is ``sqrt(c)`` of a space of curvature ``-c``, in which all vectors are measured."""
        return lorentz.translated(self.linear(x) * root_curvature, self.bias * root_curvature) / root_curvature


class HNN(MLP):
    """Hyperbolic feed-forward network (Ganea et al. 2018, section 3.2): features to Lorentz points.

    Features are taken for tangent vectors at the origin. Points are computed on the hyperboloid, which is isometric to
    the paper's Poincaré ball; activations act in the tangent space at the origin, as there.

    Args:
        dim: Dimension of the manifold; the points have ``dim + 1`` coordinates.
        num_layers: Number of Möbius layers.
        curvature: ``c > 0`` of a space of curvature ``-c``.
        learn_curvature: Whether ``curvature`` is trained.
        options: See ``MLP``; dropouts and activation act on tangent vectors.

    Vectors that leave are shortened to ``numerics.layer_radius(dtype)`` (6.4 in float32) if they are longer.
    """

    name = "hnn"
    summary = "Möbius matrices, biases and activations on the features alone"
    paper = "Ganea et al. 2018, Hyperbolic Neural Networks"
    space: Space = "lorentz"
    layer = MobiusLinear

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        curvature: float = 1.0,
        learn_curvature: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(in_features, dim, num_layers, **options)
        self.log_curvature = nn.Parameter(torch.tensor(log_curvature(curvature)), requires_grad=learn_curvature)

    @property
    def root_curvature(self) -> Tensor:
        """``sqrt(c)``."""
        return (0.5 * self.log_curvature).exp()

    @property
    def distance_scale(self) -> Tensor:
        """The factor from distances between the points, which lie at curvature -1, to those at curvature ``-c``."""
        return 1 / self.root_curvature

    def forward(self, x: Any, edge_index: Any = None, edge_weight: Tensor | None = None) -> Tensor:
        """Points ``(n, dim + 1)``; the graph is not used."""
        root = self.root_curvature
        tangent = self.stack(x, root) * root
        return lorentz.exp_origin(tangent, layer_radius(tangent.dtype))
