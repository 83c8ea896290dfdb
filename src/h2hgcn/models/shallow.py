"""Shallow embeddings: a learned vector for each node, alone or mixed with its features."""

from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.layers.inputs import FeatureLinear, NodePoints, NodeTangents, NodeVectors, feature_dropout
from h2hgcn.layers.spaces import Space, check_choice, check_shares
from h2hgcn.models.encoder import Encoder, widths
from h2hgcn.models.mlp import Stack


class NodeEncoder(Encoder):
    """An encoder with a learned vector or point for each node of one graph."""

    inductive = False
    nodes_of: ClassVar[type[NodeVectors | NodePoints]] = NodeVectors
    nodes: NodeVectors | NodePoints

    def check_rows(self, x: Any) -> None:
        """Raises unless there is one row of features for each node."""
        num_nodes = len(self.nodes.weight)
        if x is not None and x.shape[0] != num_nodes:
            raise ValueError(
                f"x has {x.shape[0]} rows, but the encoder has a learned vector for each of {num_nodes} nodes and no "
                "others; pass the graph that it was made for"
            )


class ShallowEuclidean(NodeEncoder):
    """A learned Euclidean vector for each node (EUC of Chami et al. 2019).

    Args:
        in_features: Number of features of a node, which are not used.
        dim: Length of the vectors.
        num_nodes: Number of nodes of the graph.
    """

    name = "euc"
    summary = "a learned vector for each node"
    paper = "Chami et al. 2019, Hyperbolic Graph Convolutional Neural Networks (EUC)"
    tasks = ("lp", "nc", "embed")
    space: Space = "euclidean"

    def __init__(self, in_features: int, dim: int, *, num_nodes: int) -> None:
        super().__init__()
        self.dim = dim
        self.nodes = self.nodes_of(num_nodes, dim)

    def forward(self, x: Any = None, edge_index: Any = None, edge_weight: Tensor | None = None) -> Tensor:
        """Points of all nodes; features and graph are not used."""
        self.check_rows(x)
        points: Tensor = self.nodes()
        return points


class ShallowHyperbolic(ShallowEuclidean):
    """A learned point of the Poincaré ball for each node (Nickel and Kiela 2017; HYP of Chami et al. 2019).

    The task's loss takes the place of the paper's, and there is no burn-in.

    Args:
        in_features: Number of features of a node, which are not used.
        dim: Dimension of the ball.
        points: What is learned: ``"ball"``, points of the ball, by a Riemannian optimizer; or ``"tangent"``, tangent
            vectors at the origin of the hyperboloid, by Adam, whose points are not kept within a radius.
        num_nodes: Number of nodes of the graph.
    """

    name = "hyp"
    summary = "a learned point of the Poincaré ball for each node"
    paper = "Nickel and Kiela 2017, Poincaré Embeddings for Learning Hierarchical Representations"
    space: Space = "ball"
    nodes_of = NodePoints

    def __init__(
        self, in_features: int, dim: int, points: Literal["ball", "tangent"] = "ball", *, num_nodes: int
    ) -> None:
        super().__init__(in_features, dim, num_nodes=num_nodes)
        if check_choice("points", points, ("ball", "tangent")) == "tangent":
            self.space = "lorentz"
            self.nodes = NodeTangents(num_nodes, dim)


class MixedEuclidean(NodeEncoder):
    """A learned Euclidean vector for each node beside its features, into an MLP (EUC-MIXED of Chami et al. 2019).

    The vectors are learned together with the MLP.

    Args:
        in_features: Number of features of a node.
        dim: Length of the learned vectors, and width of all layers and of the result.
        num_layers: Number of linear layers.
        activation, dropout, feature_dropout: See ``Stack``.
        num_nodes: Number of nodes of the graph.
    """

    name = "euc-mixed"
    summary = "a learned vector for each node beside its features, into an MLP"
    paper = "Chami et al. 2019, Hyperbolic Graph Convolutional Neural Networks (EUC-MIXED)"
    tasks = ("lp", "nc")
    space: Space = "euclidean"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        num_nodes: int,
        activation: str | None = "relu",
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.nodes = self.nodes_of(num_nodes, dim)
        self.network = _MixingMLP(in_features, dim, num_layers, activation, dropout, feature_dropout)

    def forward(self, x: Any, edge_index: Any = None, edge_weight: Tensor | None = None) -> Tensor:
        """Points of all nodes; the graph is not used."""
        self.check_rows(x)
        points: Tensor = self.network(x, self.nodes())
        return points


class MixedHyperbolic(MixedEuclidean):
    """A learned point of the Poincaré ball for each node beside its features, into an MLP (HYP-MIXED of Chami et al.
    2019).

    The points enter as their tangent vectors at the origin, and are learned together with the MLP. Its result is taken
    for a tangent vector there, too, and mapped to the hyperboloid, so that distances are hyperbolic as in HYP.

    Args:
        dim: Dimension of the ball, of the hyperboloid, and width of all layers.
    """

    name = "hyp-mixed"
    summary = "a learned point of the ball for each node beside its features, into an MLP"
    paper = "Chami et al. 2019, Hyperbolic Graph Convolutional Neural Networks (HYP-MIXED)"
    space: Space = "lorentz"
    nodes_of = NodePoints
    nodes: NodePoints

    def forward(self, x: Any, edge_index: Any = None, edge_weight: Tensor | None = None) -> Tensor:
        self.check_rows(x)
        tangent = self.network(x, self.nodes.tangents()).to(self.nodes.weight.dtype)  # autocast may have lowered it
        return lorentz.exp_origin(tangent, layer_radius(tangent.dtype))


class _MixingMLP(nn.Module):
    """An MLP on features beside learned vectors. The first layer maps the two apart and adds, which is the same as to
    map both side by side, and leaves sparse features sparse.
    """

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int,
        activation: str | None,
        dropout: float,
        feature_dropout: float,
    ) -> None:
        super().__init__()
        check_shares(feature_dropout=feature_dropout)
        _, *others = widths(in_features, dim, num_layers)
        self.of_features = FeatureLinear(in_features, dim)
        self.of_vectors = nn.Linear(dim, dim, bias=False)
        self.stack = Stack([nn.Identity(), *(nn.Linear(*width) for width in others)], activation, dropout)
        self.feature_dropout = feature_dropout

    def reset_parameters(self) -> None:
        for layer in (self.of_features, self.of_vectors, *self.stack.layers[1:]):
            layer.reset_parameters()

    def forward(self, x: Any, vectors: Tensor) -> Tensor:
        features = feature_dropout(x, self.feature_dropout, self.training)
        hidden: Tensor = self.stack(self.of_features(features) + self.of_vectors(vectors))
        return hidden
