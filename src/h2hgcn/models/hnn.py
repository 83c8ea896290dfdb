"""Hyperbolic neural networks, which know nothing of the graph."""

from typing import Any

from torch import Tensor

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.layers.curvature import Curvature
from h2hgcn.layers.mobius_linear import MobiusLinear
from h2hgcn.layers.spaces import Space
from h2hgcn.layers.stack import Stack, widths
from h2hgcn.models.pretrained import Pretrained


class HNN(Pretrained):
    """Hyperbolic feed-forward network (Ganea et al. 2018, section 3.2): features to Lorentz points.

    Features are taken for tangent vectors at the origin. Points are computed on the hyperboloid, which is isometric to
    the paper's Poincaré ball; activations act in the tangent space at the origin, as there.

    Args:
        in_features: Number of features of a node.
        dim: Dimension of the manifold; the points have ``dim + 1`` coordinates.
        num_layers: Number of Möbius layers.
        activation, dropout, feature_dropout: See ``Stack``; all of them act on tangent vectors.
        curvature: ``c > 0`` of a space of curvature ``-c``.
        learn_curvature: Whether ``curvature`` is only where it starts.

    Vectors that leave are shortened to ``numerics.layer_radius(dtype)`` (6.4 in float32) if they are longer.
    """

    name = "hnn"
    summary = "Möbius matrices, biases and activations on the features alone"
    paper = "Ganea et al. 2018, Hyperbolic Neural Networks"
    space: Space = "lorentz"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        activation: str | None = "relu",
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
        curvature: float = 1.0,
        learn_curvature: bool = False,
    ) -> None:
        super().__init__()
        self.config = {
            "in_features": in_features, "dim": dim, "num_layers": num_layers, "activation": activation,
            "dropout": dropout, "feature_dropout": feature_dropout, "curvature": curvature,
            "learn_curvature": learn_curvature,
        }  # fmt: skip
        self.dim = dim
        layers = [MobiusLinear(*width) for width in widths(in_features, dim, num_layers)]
        self.stack = Stack(layers, activation, dropout, feature_dropout)
        self.curvature = Curvature(curvature, learn_curvature)

    def reset_parameters(self) -> None:
        """Draws all weights anew; the curvature stays."""
        self.stack.reset_parameters()

    @property
    def distance_scale(self) -> Tensor:
        """The factor from distances between the points, which lie at curvature -1, to those at curvature ``-c``."""
        return 1 / self.curvature.root

    def forward(self, x: Any, edge_index: Any = None, edge_weight: Tensor | None = None) -> Tensor:
        """Points ``(n, dim + 1)``; the graph does not matter."""
        root = self.curvature.root
        tangent = self.stack(x, root) * root
        return lorentz.exp_origin(tangent, layer_radius(tangent.dtype))
