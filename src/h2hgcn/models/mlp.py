"""The multi-layer perceptron, which knows nothing of the graph."""

from typing import Any

from torch import Tensor

from h2hgcn.layers.feature_linear import FeatureLinear
from h2hgcn.layers.spaces import Space
from h2hgcn.layers.stack import Stack, widths
from h2hgcn.models.pretrained import Pretrained


class MLP(Pretrained):
    """Linear layers with activations between them: features to Euclidean points (MLP of Chami et al. 2019).

    Args:
        in_features: Number of features of a node.
        dim: Width of all layers and of the result.
        num_layers: Number of linear layers.
        activation, dropout, feature_dropout: See ``Stack``.
    """

    name = "mlp"
    summary = "linear layers on the features alone"
    paper = "Chami et al. 2019, Hyperbolic Graph Convolutional Neural Networks (MLP)"
    space: Space = "euclidean"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        activation: str | None = "relu",
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.config = {
            "in_features": in_features, "dim": dim, "num_layers": num_layers, "activation": activation,
            "dropout": dropout, "feature_dropout": feature_dropout,
        }  # fmt: skip
        self.dim = dim
        layers = [FeatureLinear(*width) for width in widths(in_features, dim, num_layers)]
        self.stack = Stack(layers, activation, dropout, feature_dropout)

    def reset_parameters(self) -> None:
        self.stack.reset_parameters()

    def forward(self, x: Any, edge_index: Any = None, edge_weight: Tensor | None = None) -> Tensor:
        """Points ``(n, dim)``; the graph does not matter."""
        points: Tensor = self.stack(x)
        return points
