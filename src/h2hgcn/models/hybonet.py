"""Fully hyperbolic neural networks."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.resolver import activation_resolver

from h2hgcn.geometry import lorentz
from h2hgcn.layers.adjacency import check_neighbor_weights, first_rows
from h2hgcn.layers.arguments import check_features, check_shares, check_sizes
from h2hgcn.layers.boosted_linear import BoostedLinear
from h2hgcn.layers.feature_linear import feature_dropout as dropped_features
from h2hgcn.layers.midpoint import midpoint
from h2hgcn.layers.node_vectors import vector_stem
from h2hgcn.layers.remembered import adjacency_of
from h2hgcn.layers.spaces import Space
from h2hgcn.layers.tangent import in_coordinates
from h2hgcn.models.pretrained import Pretrained


class HyboNet(Pretrained):
    """Fully hyperbolic graph network (Chen et al. 2022): Lorentz linear layers with boosts, Lorentz centroids of
    neighbours.

    The centroid ``Σ w_j x_j / ‖Σ w_j x_j‖`` is the Einstein midpoint of ``H2HGCN``. The activation comes before
    the linear map of every layer but the first.

    Args:
        in_features: Number of features of a node.
        dim: Dimension of the manifold; the points have ``dim + 1`` coordinates.
        num_layers: Number of layers.
        activation: Any activation that PyG knows by name, or None.
        neighbor_weights: ``"uniform"`` or ``"symmetric"``, see ``H2HConv``.
        feature_dropout, dropout: Of the input features, and of the coordinates that enter a layer.
        scale, min_time: Of the linear layers, see ``BoostedLinear``.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learnt vector, added to a
            linear map of its features before the first layer; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
    """

    name = "hybonet"
    summary = "linear maps with boosts and centroids, all on the hyperboloid"
    paper = "Chen et al. 2022, Fully Hyperbolic Neural Networks"
    space: Space = "lorentz"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        activation: str | None = "relu",
        neighbor_weights: str = "uniform",
        feature_dropout: float = 0.0,
        dropout: float = 0.0,
        scale: float = 10.0,
        min_time: float = 1.1,
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = {
            "in_features": in_features, "dim": dim, "num_layers": num_layers, "activation": activation,
            "neighbor_weights": neighbor_weights, "feature_dropout": feature_dropout, "dropout": dropout,
            "scale": scale, "min_time": min_time,
            "node_vectors": node_vectors, "vector_dropout": vector_dropout, "use_features": use_features,
            "num_nodes": num_nodes if node_vectors else None,
        }  # fmt: skip
        check_sizes(in_features=in_features, dim=dim, num_layers=num_layers)
        check_shares(feature_dropout=feature_dropout, dropout=dropout)
        self.in_features = in_features
        self.dim = dim
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.feature_dropout = 0.0 if node_vectors else feature_dropout
        self.stem = vector_stem(
            node_vectors, in_features, dim, num_nodes, vector_dropout, feature_dropout, use_features,
            device=device, dtype=dtype,
        )  # fmt: skip
        activate = activation_resolver(activation) if activation else None
        shared: dict[str, Any] = {"scale": scale, "min_time": min_time, "device": device, "dtype": dtype}
        self.linears = nn.ModuleList(
            BoostedLinear(
                dim if k or node_vectors else in_features, dim, activate if k else None, dropout=dropout, **shared
            )
            for k in range(num_layers)
        )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        if self.stem is not None:
            self.stem.reset_parameters()
        for linear in self.linears:
            linear.reset_parameters()  # type: ignore[operator]

    def forward(
        self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Points ``(n, dim + 1)`` of nodes with features ``x (n, in_features)``, dense or sparse."""
        check_features(x, self.in_features)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        x = x if self.stem is None else self.stem(x, adjacency, nodes)
        first, *others = self.linears
        time, space = first.of_features(dropped_features(x, self.feature_dropout, self.training))  # type: ignore[operator]
        start, *graphs = adjacency.steps(len(self.linears))
        time, space = midpoint(time, space, start.matrix(self.neighbor_weights, space.dtype))
        for linear, graph in zip(others, graphs, strict=True):
            time, space = linear(first_rows(time, graph), first_rows(space, graph))
            time, space = midpoint(time, space, graph.matrix(self.neighbor_weights, space.dtype))
        return lorentz.project(in_coordinates(time, space, self.space))

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.dim}, neighbor_weights={self.neighbor_weights!r}"
