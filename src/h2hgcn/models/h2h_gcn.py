"""The encoder of the paper."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from h2hgcn.errors import NonFiniteError
from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.graph.adjacency import adjacency_of, first_rows
from h2hgcn.kernels import is_transformed, use_kernel
from h2hgcn.kernels.convolution import exp_origin
from h2hgcn.kernels.csr import SparseMatrix, check_features, is_sparse, prepare_features, sparse_matmul
from h2hgcn.layers.h2h_conv import ActivationFunction, H2HConv, midpoint
from h2hgcn.layers.inputs import NodeVectors, check_inputs
from h2hgcn.layers.spaces import Space, check_choice, check_shares, check_sizes, log_curvature
from h2hgcn.models.encoder import Encoder, widths
from h2hgcn.models.mlp import activation_of


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
        check_sizes(in_features=in_features, dim=dim, num_layers=num_layers)
        check_shares(dropout=dropout, feature_dropout=feature_dropout)
        check_inputs(node_vectors, use_features)
        if not stem and node_vectors:
            raise ValueError("node_vectors=True needs stem=True, which maps the features to vectors of the same width")
        if not stem and dim < in_features:
            raise ValueError(
                f"dim={dim} is below in_features={in_features}, which orthonormal columns cannot map; use stem=True, "
                "which reduces the features before the exponential map"
            )
        if not stem and tied and dim != in_features:
            raise ValueError(
                f"tied layers without a stem need dim={dim} equal to in_features={in_features}; use stem=True"
            )
        if max_tangent_norm is not None and not max_tangent_norm > 0:
            raise ValueError(f"max_tangent_norm={max_tangent_norm}: the cap must be positive, or None")
        self.in_features, self.dim, self.num_layers = in_features, dim, num_layers
        self.feature_dropout, self.dropout = feature_dropout, dropout
        self.max_tangent_norm = max_tangent_norm
        self.use_features, self.tied = use_features, tied
        factory: dict[str, Any] = {"device": device, "dtype": dtype}
        self.stem = nn.Linear(in_features, dim, **factory) if stem and use_features else None
        self.stem_activation = activation_of(stem_activation if stem else None)
        self.vectors = NodeVectors(num_nodes, dim, vector_dropout, **factory) if node_vectors else None
        kind: dict[str, Any] = {"negative_slope": negative_slope, "weights": weights, "aggregation": aggregation}
        self.convs = nn.ModuleList(
            VariedConv(*width, activation, neighbor_weights, **kind, **factory)
            for width in widths(dim if stem else in_features, dim, 1 if tied else num_layers)
        )
        start = torch.tensor(log_curvature(curvature), **factory)
        self.log_curvature = nn.Parameter(start, requires_grad=learn_curvature)

    @property
    def curvature(self) -> Tensor:
        """``c`` of a space of curvature ``-c``."""
        return self.log_curvature.exp()

    @property
    def has_unit_curvature(self) -> bool:
        """Whether the curvature is known to be -1 for good, so that nothing has to be scaled.

        Only where it saves time: another device than the CPU would have to be asked.
        """
        return (
            use_kernel(self.log_curvature) and not self.log_curvature.requires_grad and float(self.log_curvature) == 0
        )

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
        edge_weight = self.all_convs()[0].masked_weight(edge_index, edge_weight)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        points = self.origin_map(x, None if self.vectors is None else self.vectors(nodes, adjacency))
        for conv, graph in zip(self.all_convs(), adjacency.layer_graphs(self.num_layers), strict=True):
            # points within layer_radius stay there, so that no layer has to check them
            points = conv.convolve(first_rows(points, graph), graph.matrix(conv.neighbor_weights, points.dtype))
        return points

    def all_convs(self) -> list[Any]:
        """The convolution of each layer; tied ones are one and the same."""
        return [self.convs[0]] * self.num_layers if self.tied else list(self.convs)

    def origin_map(self, x: Any, vectors: Tensor | None = None) -> Tensor:
        """The points of the features and node ``vectors`` (Eq. 9)."""
        drops = self.training and self.dropout > 0
        if vectors is None and not drops and self.has_unit_curvature and isinstance(self.stem_activation, nn.ReLU):
            linear = self._stem_output(x)
            self._check_finite(x, linear)
            return exp_origin(linear, self._bound(linear.dtype), rectified=True)  # with the ReLU in the same pass
        tangent = self.tangents(x, vectors)
        return exp_origin(tangent, self._bound(tangent.dtype))

    def tangents(self, x: Any, vectors: Tensor | None = None) -> Tensor:
        """The vectors ``(n, dim)`` that enter the exponential map, before they are capped: those of the features, plus
        node ``vectors``.
        """
        if self.use_features:
            linear = self._stem_output(x)
            hidden = F.dropout(self.stem_activation(linear), self.dropout, self.training)
            tangent = hidden if vectors is None else hidden + vectors
        else:
            assert vectors is not None
            linear = tangent = vectors
        tangent = tangent * (0.5 * self.log_curvature).exp()
        self._check_finite(x, linear, tangent)  # an activation may hide what is not finite
        return tangent

    def _stem_output(self, x: Any) -> Tensor:
        """The linear part of the stem."""
        dtype = self.log_curvature.dtype
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"the encoder is {dtype}; hyperbolic geometry needs float32 or float64")
        if is_sparse(x):
            features = prepare_features(x).to(dtype).dropout(self.feature_dropout, self.training)
            return features.to_dense() if self.stem is None else features.linear(self.stem.weight, self.stem.bias)
        hidden = F.dropout(x.to(dtype), self.feature_dropout, self.training)
        return hidden if self.stem is None else self.stem(hidden).to(dtype)

    def _check_finite(self, x: Any, *vectors: Tensor) -> None:
        # one look at sums holds up a device once; they may overflow, so it is not the last one
        if torch.compiler.is_compiling() or is_transformed() or bool(sum(v.detach().sum() for v in vectors).isfinite()):  # type: ignore[union-attr]
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

    def _bound(self, dtype: torch.dtype) -> float:
        safe = layer_radius(dtype)
        return safe if self.max_tangent_norm is None else min(self.max_tangent_norm, safe)

    @torch.no_grad()
    def share_at_bound(self, x: Any, nodes: Tensor | None = None) -> float:
        """The share of nodes whose vector is as long as the cap or longer: they lose their length, and much of their
        meaning.
        """
        tangent = self.tangents(x, None if self.vectors is None else self.vectors(nodes))
        return float((tangent.norm(dim=1) >= self._bound(tangent.dtype)).double().mean())

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.dim}, num_layers={self.num_layers}, curvature={-self.curvature.item():g}"


class VariedConv(H2HConv):
    """``H2HConv``, if asked for with other weights, or another mean of neighbors.

    Args:
        weights: ``"stiefel"``, as in the paper; ``"fixed"``, an orthonormal matrix that stays as it was drawn; or
            ``"free"``, any matrix, which starts orthonormal: time follows from space, and the map is no isometry.
        aggregation: ``"midpoint"``, as in the paper, or ``"tangent"``: the mean in the tangent space at the origin,
            as HGCN takes it by default.
    """

    def __init__(self, *args: Any, weights: str = "stiefel", aggregation: str = "midpoint", **options: Any) -> None:
        super().__init__(*args, **options)
        self.weights = check_choice("weights", weights, ("stiefel", "fixed", "free"))
        self.aggregation = check_choice("aggregation", aggregation, ("midpoint", "tangent"))
        weight = self.linear.weight.detach()
        if weights == "fixed":
            self.linear.weight.requires_grad_(False)
        elif weights == "free":
            self.linear.weight = nn.Parameter(weight.as_subclass(Tensor).clone())

    def convolve(self, points: Tensor, matrix: SparseMatrix) -> Tensor:
        if self.weights != "free" and self.aggregation == "midpoint":
            return super().convolve(points, matrix)
        rotated = self.linear(points)
        if self.weights == "free":
            rotated = lorentz.project(rotated)
        if self.aggregation == "midpoint":
            return self.activation(midpoint(rotated, matrix))
        vectors = sparse_matmul(matrix, lorentz.log_origin(rotated))
        return self.activation(exp_origin(vectors, layer_radius(points.dtype)))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, weights={self.weights!r}, aggregation={self.aggregation!r}"
