"""The encoder of the paper."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.resolver import activation_resolver

from h2hgcn.errors import NonFiniteError
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.graph.adjacency import adjacency_of, first_rows
from h2hgcn.graph.features import SparseFeatures, check_features, is_sparse, prepare_features
from h2hgcn.kernels import is_transformed, use_kernel
from h2hgcn.kernels.convolution import exp_origin
from h2hgcn.layers.h2h_conv import ActivationFunction, H2HConv, VariedConv, check_variant
from h2hgcn.layers.inputs import NodeVectors, check_inputs
from h2hgcn.layers.spaces import Space, check_shares
from h2hgcn.models.encoder import Encoder


class H2HGCN(Encoder):
    """Hyperbolic-to-hyperbolic graph convolutional network (Dai et al. 2021, Algorithm 1): features to Lorentz points.

    Args:
        in_features: Number of features of a node.
        dim: Dimension of the manifold; the points have ``dim + 1`` coordinates.
        num_layers: Number of convolutions.
        activation, neighbor_weights, negative_slope: Of the convolutions, see ``H2HConv``.
        stem: Whether a Euclidean linear layer and ``stem_activation`` come before the exponential map, as in the
            authors' code. Without it the equations of the paper hold to the letter, and ``dim ≥ in_features`` must
            hold, too.
        stem_activation: Any activation that PyG knows by name, or None.
        tied: Whether all convolutions share one transformation, as in the authors' code.
        feature_dropout, dropout: Of the input features, and of the stem's output.
        max_tangent_norm: Caps the length of the vectors that enter the exponential map. They are always capped at
            ``numerics.layer_radius(dtype)`` (6.4 in float32, 16.4 in float64), up to which the layers compute well.
        curvature: ``c > 0`` of a space of curvature ``-c``. It scales the vectors that enter; ``distance_scale`` is
            the factor for the distances that leave.
        learn_curvature: Whether ``curvature`` is trained.
        weights: Of the convolutions: ``"stiefel"``, as in the paper, or, to measure what that is worth, ``"fixed"`` at
            their random start, or ``"free"``, without any constraint; see ``VariedConv``.
        aggregation: ``"midpoint"``, as in the paper, or ``"tangent"``, a mean in the tangent space at the origin.
        node_vectors: Whether each node of the training graph, which has ``num_nodes``, has a learned tangent vector,
            added to what the stem makes of its features before the exponential map; see ``NodeVectors``.
        vector_dropout: Of the node vectors.
        use_features: Whether features count; without them, the node vectors stand alone.
    """

    name = "h2h-gcn"
    summary = "orthonormal maps, Einstein midpoints and activations on the hyperboloid"
    paper = "Dai et al. 2021, A Hyperbolic-to-Hyperbolic Graph Convolutional Network"
    tasks = ("lp", "nc", "gc", "embed")
    space: Space = "lorentz"

    def __init__(
        self,
        in_features: int,
        dim: int,
        num_layers: int = 2,
        *,
        activation: str | ActivationFunction | None = "relu",
        neighbor_weights: str = "symmetric",
        negative_slope: float = 0.01,
        stem: bool = True,
        stem_activation: str | None = "relu",
        tied: bool = False,
        feature_dropout: float = 0.0,
        dropout: float = 0.0,
        max_tangent_norm: float | None = None,
        curvature: float = 1.0,
        learn_curvature: bool = False,
        weights: str = "stiefel",
        aggregation: str = "midpoint",
        node_vectors: bool = False,
        vector_dropout: float = 0.0,
        use_features: bool = True,
        num_nodes: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _check_arguments(in_features, dim, num_layers, stem, tied, max_tangent_norm, curvature)
        if node_vectors and not stem:
            raise ValueError("node_vectors=True needs stem=True, which maps the features to vectors of the same width")
        check_shares(dropout=dropout, feature_dropout=feature_dropout)
        self.in_features = in_features
        self.dim = dim
        self.num_layers = num_layers
        self.tied = tied
        self.feature_dropout = feature_dropout
        self.dropout = dropout
        self.max_tangent_norm = max_tangent_norm
        check_inputs(node_vectors, use_features)
        self.use_features = use_features
        self.stem = nn.Linear(in_features, dim, device=device, dtype=dtype) if stem and use_features else None
        self.stem_activation = activation_resolver(stem_activation) if stem and stem_activation else nn.Identity()
        self.vectors: NodeVectors | None = None
        if node_vectors:
            self.vectors = NodeVectors(num_nodes, dim, vector_dropout, device=device, dtype=dtype)
        widths = [dim if stem else in_features, *[dim] * num_layers]
        check_variant(weights, aggregation)
        options: dict[str, Any] = {"negative_slope": negative_slope, "device": device, "dtype": dtype}
        if (weights, aggregation) != ("stiefel", "midpoint"):
            options |= {"weights": weights, "aggregation": aggregation}
        conv = VariedConv if "weights" in options else H2HConv
        self.convs = nn.ModuleList(
            conv(width, dim, activation, neighbor_weights, **options) for width in widths[: 1 if tied else num_layers]
        )
        log_curvature = torch.tensor(math.log(curvature), device=device, dtype=dtype)
        self.log_curvature = nn.Parameter(log_curvature, requires_grad=learn_curvature)

    def reset_parameters(self) -> None:
        """Draws all weights again; the curvature stays."""
        for module in (self.stem, self.vectors, *self.convs):
            if module is not None:
                module.reset_parameters()

    @property
    def curvature(self) -> Tensor:
        """``c`` of a space of curvature ``-c``."""
        return self.log_curvature.exp()

    @property
    def has_unit_curvature(self) -> bool:
        """Whether the curvature is known to be -1 for good, so that nothing has to be scaled.

        Only on the CPU, where it saves time: another device would have to be asked.
        """
        fixed = self.log_curvature
        return fixed.is_cpu and not fixed.requires_grad and float(fixed) == 0

    @property
    def distance_scale(self) -> Tensor:
        """The factor from distances between the points, which lie at curvature -1, to those at curvature ``-c``."""
        return (-0.5 * self.log_curvature).exp()

    def forward(
        self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Points ``(n, dim + 1)`` of nodes with features ``x (n, in_features)``, dense or sparse (torch or SciPy).

        ``edge_index`` is a ``(2, edges)`` tensor, a sparse ``adj_t``, or what ``prepare_adjacency`` returned; for
        ``nodes`` see ``NodeVectors``.
        """
        check_features(x, self.in_features)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        points = self.origin_map(x, None if self.vectors is None else self.vectors(nodes, adjacency))
        for conv, graph in zip(self.all_convs(), adjacency.layer_graphs(self.num_layers), strict=True):
            # points within layer_radius stay there, so that no layer has to check them
            points = conv.convolve(first_rows(points, graph), graph.matrix(conv.neighbor_weights, points.dtype))
        return points

    def all_convs(self) -> list[Any]:
        """The convolution of each layer; tied ones are one and the same."""
        return list(self.convs) * self.num_layers if self.tied else list(self.convs)

    def tangents(self, x: Any, vectors: Tensor | None = None) -> Tensor:
        """The vectors ``(n, dim)`` that enter the exponential map, before they are capped: those of the features, plus
        node ``vectors``.
        """
        hidden = vectors
        if self.use_features:
            linear = self._stem_output(x)
            features = self.stem_activation(linear).to(self.log_curvature.dtype)
            hidden = F.dropout(features, self.dropout, self.training)
            hidden = hidden if vectors is None else hidden + vectors
        assert hidden is not None
        tangent = hidden * (0.5 * self.log_curvature).exp()
        # an activation may hide what is not finite; one look for both holds up a device once
        self._check_finite((tangent, linear) if self.use_features else (tangent,), x)
        return tangent

    def _stem_output(self, x: Any) -> Tensor:
        """Before its activation."""
        features = self._features(x)
        if self.stem is None:
            return features.to_dense() if isinstance(features, SparseFeatures) else features
        if isinstance(features, SparseFeatures):
            return features.linear(self.stem.weight, self.stem.bias)
        hidden: Tensor = self.stem(features)
        return hidden

    def origin_map(self, x: Any, vectors: Tensor | None = None) -> Tensor:
        """The points of the features and node ``vectors``; in the usual case with the activation in the same pass."""
        if vectors is not None or not self._goes_straight():
            tangent = self.tangents(x, vectors)
            return exp_origin(tangent, self._bound(tangent.dtype))
        hidden = self._stem_output(x).to(self.log_curvature.dtype)
        points = exp_origin(hidden, self._bound(hidden.dtype), isinstance(self.stem_activation, nn.ReLU))
        if not math.isfinite(points.detach()[:, 0].sum()):
            self._check_finite((hidden,), x)
        return points

    def _goes_straight(self) -> bool:
        """Whether at most a ReLU is between stem and exponential map: no dropout, and a curvature of -1 for good."""
        if not use_kernel(self.log_curvature) or (self.training and self.dropout):
            return False
        return isinstance(self.stem_activation, (nn.ReLU, nn.Identity)) and self.has_unit_curvature

    @torch.no_grad()
    def share_at_bound(self, x: Any, nodes: Tensor | None = None) -> float:
        """The share of nodes whose vector is as long as the cap or longer: they lose their length, and much of their
        meaning.
        """
        tangent = self.tangents(x, None if self.vectors is None else self.vectors(nodes))
        return float((tangent.norm(dim=1) >= self._bound(tangent.dtype)).double().mean())

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.dim}, num_layers={self.num_layers}, curvature={-self.curvature.item():g}"

    def _bound(self, dtype: torch.dtype) -> float:
        safe = layer_radius(dtype)
        return safe if self.max_tangent_norm is None else min(self.max_tangent_norm, safe)

    def _features(self, x: Any) -> Tensor | SparseFeatures:
        check_features(x, self.in_features)
        dtype = self.log_curvature.dtype
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"the encoder is {dtype}; hyperbolic geometry needs float32 or float64")
        if is_sparse(x):
            return prepare_features(x).to(dtype).dropout(self.feature_dropout, self.training)
        return F.dropout(x.to(dtype), self.feature_dropout, self.training)

    def _check_finite(self, vectors: tuple[Tensor, ...], x: Any) -> None:
        if torch.compiler.is_compiling() or is_transformed():
            return
        if bool(sum(hidden.detach().sum() for hidden in vectors).isfinite()):  # type: ignore[union-attr]
            return
        values = prepare_features(x).matrix.values if is_sparse(x) else x
        if not bool(values.isfinite().all()):
            where = "" if is_sparse(x) else f", first in row {int((~x.isfinite()).any(1).nonzero()[0])}"
            raise NonFiniteError(f"x holds NaN or infinity{where}; fix or drop those features")
        if not all(bool(hidden.isfinite().all()) for hidden in vectors):
            raise NonFiniteError(
                "the vectors for the exponential map hold NaN or infinity although x does not: weights diverged or "
                "features overflowed; lower the learning rate or scale the features"
            )


def _check_arguments(
    in_features: int,
    dim: int,
    num_layers: int,
    stem: bool,
    tied: bool,
    max_tangent_norm: float | None,
    curvature: float,
) -> None:
    if min(in_features, dim, num_layers) < 1:
        raise ValueError(f"in_features={in_features}, dim={dim}, num_layers={num_layers}: each must be at least 1")
    if not stem and dim < in_features:
        raise ValueError(
            f"dim={dim} is below in_features={in_features}, which orthonormal columns cannot map; use stem=True, which "
            "reduces the features before the exponential map"
        )
    if not stem and tied and dim != in_features:
        raise ValueError(f"tied layers without a stem need dim={dim} equal to in_features={in_features}; use stem=True")
    if max_tangent_norm is not None and not max_tangent_norm > 0:
        raise ValueError(f"max_tangent_norm={max_tangent_norm}: the cap must be positive, or None")
    if not (math.isfinite(curvature) and curvature > 0):
        raise ValueError(f"curvature={curvature}: give c > 0 for a space of curvature -c")
