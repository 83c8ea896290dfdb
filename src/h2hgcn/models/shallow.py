"""Shallow embeddings: a learnt vector for each node, whatever its features."""

from typing import Any, ClassVar, Literal

from torch import Tensor

from h2hgcn.layers.node_vectors import NodePoints, NodeTangents, NodeVectors, check_rows
from h2hgcn.layers.spaces import Space
from h2hgcn.models.pretrained import Pretrained


class ShallowEncoder(Pretrained):
    """A learnt vector or point for each node, whatever its features."""

    tasks = ("lp", "nc", "embed")
    inductive = False
    nodes_of: ClassVar[type[NodeVectors | NodePoints]]
    nodes: NodeVectors | NodePoints

    def __init__(self, in_features: int, dim: int, *, num_nodes: int) -> None:
        super().__init__()
        self.config = {"in_features": in_features, "dim": dim, "num_nodes": num_nodes}
        self.dim = dim
        self.num_nodes = num_nodes
        self.nodes = self.nodes_of(num_nodes, dim)

    def reset_parameters(self) -> None:
        self.nodes.reset_parameters()

    def forward(self, x: Any = None, edge_index: Any = None, edge_weight: Tensor | None = None) -> Tensor:
        """Points ``(num_nodes, dim)``; features and graph do not matter."""
        check_rows(x, self.num_nodes)
        points: Tensor = self.nodes()
        return points


class ShallowEuclidean(ShallowEncoder):
    """A learnt Euclidean vector for each node (EUC of Chami et al. 2019).

    Args:
        in_features: Number of features of a node, which do not matter.
        dim: Length of the vectors.
        num_nodes: Number of nodes of the graph.
    """

    name = "euc"
    summary = "a learnt vector for each node"
    paper = "Chami et al. 2019, Hyperbolic Graph Convolutional Neural Networks (EUC)"
    space: Space = "euclidean"
    nodes_of = NodeVectors


class ShallowHyperbolic(ShallowEncoder):
    """A learnt point of the Poincaré ball for each node (Nickel and Kiela 2017; HYP of Chami et al. 2019).

    The task's loss takes the place of the paper's, and there is no burn-in.

    Args:
        in_features: Number of features of a node, which do not matter.
        dim: Dimension of the ball.
        points: What is learned: ``"ball"``, points of the ball, by a Riemannian optimizer; or ``"tangent"``, tangent
            vectors at the origin of the hyperboloid, by Adam, whose points are not kept within a radius.
        num_nodes: Number of nodes of the graph.
    """

    name = "hyp"
    summary = "a learnt point of the Poincaré ball for each node"
    paper = "Nickel and Kiela 2017, Poincaré Embeddings for Learning Hierarchical Representations"
    space: Space = "ball"
    nodes_of = NodePoints

    def __init__(
        self, in_features: int, dim: int, points: Literal["ball", "tangent"] = "ball", *, num_nodes: int
    ) -> None:
        if points not in ("ball", "tangent"):
            raise ValueError(f"points={points!r} is not known; use 'ball' or 'tangent'")
        super().__init__(in_features, dim, num_nodes=num_nodes)
        self.config["points"] = points
        if points == "tangent":
            self.space = "lorentz"
            self.nodes = NodeTangents(num_nodes, dim)
