"""The multi-layer perceptron, which does not use the graph."""

from collections.abc import Iterable
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.resolver import activation_resolver

from h2hgcn.layers.inputs import FeatureLinear, feature_dropout
from h2hgcn.layers.spaces import Space, check_shares
from h2hgcn.models.encoder import Encoder, widths


class Stack(nn.Module):
    """Layers from features, dense or sparse, to vectors; the last one has no activation.

    Args:
        layers: Each is called with vectors and with whatever else the stack is called with; of a list, with its own
            item, such as the graph that a layer works on.
        activation: Between layers, any that PyG knows by name; None leaves it out.
        dropout: Dropout of what enters a layer, but for the first.
        feature_dropout: Dropout of the features.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        activation: str | None = "relu",
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_shares(dropout=dropout, feature_dropout=feature_dropout)
        self.layers = nn.ModuleList(layers)
        self.activation = activation_of(activation)
        self.dropout = dropout
        self.feature_dropout = feature_dropout

    def forward(self, x: Any, *rest: Any) -> Tensor:
        hidden = feature_dropout(x, self.feature_dropout, self.training)
        for k, layer in enumerate(self.layers):
            if k > 0:
                hidden = F.dropout(self.activation(hidden), self.dropout, self.training)
            hidden = layer(hidden, *(part[k] if isinstance(part, list) else part for part in rest))
        assert isinstance(hidden, Tensor)
        return hidden

    def reset_parameters(self) -> None:
        """Draws all weights again."""
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]


def activation_of(name: str | None) -> nn.Module:
    """Any activation that PyG knows by name; the identity for None."""
    activation: nn.Module = activation_resolver(name) if name else nn.Identity()
    return activation


class MLP(Encoder):
    """Linear layers with activations between them: features to Euclidean points (MLP of Chami et al. 2019).

    Args:
        in_features: Number of features of a node.
        dim: Width of all layers and of the result.
        num_layers: Number of linear layers.
        activation, dropout, feature_dropout: See ``Stack``.
    """

    name = "mlp"
    uses_graph = False
    summary = "linear layers on the features alone"
    paper = "Chami et al. 2019, Hyperbolic Graph Convolutional Neural Networks (MLP)"
    space: Space = "euclidean"
    layer: ClassVar[type[nn.Module]] = FeatureLinear

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
        self.dim = dim
        layers = [self.layer(*width) for width in widths(in_features, dim, num_layers)]
        self.stack = Stack(layers, activation, dropout, feature_dropout)

    def forward(self, x: Any, edge_index: Any = None, edge_weight: Tensor | None = None) -> Tensor:
        """Points ``(n, dim)``; the graph is not used."""
        points: Tensor = self.stack(x)
        return points
