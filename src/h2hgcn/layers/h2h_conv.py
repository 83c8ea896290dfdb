"""The hyperbolic-to-hyperbolic graph convolution (Dai et al. 2021, Eq. 10-13)."""

import math
from typing import Any

import geoopt
import torch
from torch import Tensor, nn

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.geometry.numerics import full_precision, layer_radius
from h2hgcn.graph.adjacency import Adjacency, adjacency_of, check_neighbor_weights
from h2hgcn.kernels.activation import ActivationFunction, BallActivation, resolve_activation
from h2hgcn.kernels.convolution import convolve, convolve_to_points, exp_origin_parts, midpoint
from h2hgcn.kernels.csr import SparseMatrix, sparse_matmul


class _Stiefel(geoopt.EuclideanStiefel):  # type: ignore[misc]
    """geoopt's Stiefel manifold with the projection and retraction of ``geometry.stiefel``, which work in float64."""

    def proju(self, x: Tensor, u: Tensor) -> Tensor:
        return stiefel.project_tangent(x, u)

    egrad2rgrad = proju

    def retr(self, x: Tensor, u: Tensor) -> Tensor:
        return stiefel.retract(x, u)

    def projx(self, x: Tensor) -> Tensor:
        return stiefel.orthonormal_factor(x.to(torch.float64)).to(x.dtype)


def stiefel_parameter(rows: int, columns: int, **factory: Any) -> geoopt.ManifoldParameter:
    """A matrix with orthonormal columns, drawn at random."""
    return geoopt.ManifoldParameter(stiefel.random_orthonormal(rows, columns, **factory), manifold=_Stiefel())


class LorentzLinear(nn.Module):
    """``y = [x₀, W x₁..ₙ]`` with orthonormal columns of ``W (out_dim, in_dim)`` (Dai et al. 2021, Eq. 10-11).

    An isometry from points ``(..., in_dim + 1)`` to points ``(..., out_dim + 1)``, which keeps the time of every
    point. Columns can be orthonormal only if ``out_dim ≥ in_dim``.
    """

    def __init__(
        self, in_dim: int, out_dim: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        check_dimensions(in_dim, out_dim)
        self.in_dim = in_dim
        self.out_dim = out_dim
        self.weight = stiefel_parameter(out_dim, in_dim, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws ``W`` anew, uniformly over the Stiefel manifold."""
        like: dict[str, Any] = {"device": self.weight.device, "dtype": self.weight.dtype}
        with torch.no_grad():
            self.weight.copy_(stiefel.random_orthonormal(self.out_dim, self.in_dim, **like))

    def forward(self, points: Tensor) -> Tensor:
        check_width(points, self.in_dim)
        with full_precision(points):
            return torch.cat([points[..., :1], points[..., 1:] @ self.weight.mT], dim=-1)

    def extra_repr(self) -> str:
        return f"{self.in_dim}, {self.out_dim}"


def check_dimensions(in_dim: int, out_dim: int) -> None:
    """Raises unless an orthonormal map from ``in_dim`` to ``out_dim`` exists."""
    if in_dim < 1:
        raise ValueError(f"in_dim={in_dim}: a hyperbolic space has at least one dimension")
    if out_dim < in_dim:
        raise ValueError(
            f"out_dim={out_dim} is below in_dim={in_dim}, but orthonormal columns need out_dim ≥ in_dim; reduce the "
            "dimension before the exponential map, as the Euclidean stem of H2HGCN does"
        )


def check_width(points: Tensor, dim: int) -> None:
    """Raises unless the last axis holds ``[time, space...]`` of ``dim`` dimensions."""
    if not isinstance(points, Tensor):
        raise ValueError(f"points are a {type(points).__name__}; pass a tensor")
    if points.dim() == 0 or points.shape[-1] != dim + 1:
        raise ValueError(
            f"points have shape {tuple(points.shape)}, but dimension {dim} needs a last axis of {dim + 1}: "
            "[time, space...]; map Euclidean features with lorentz.exp_origin first"
        )
    if not points.is_floating_point() or points.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"points are {points.dtype}; hyperbolic geometry needs float32 or float64")


class H2HConv(nn.Module):
    """Graph convolution on the hyperboloid (Dai et al. 2021, Eq. 11-13), to be called like a PyG convolution.

    Every node's point is rotated by an orthonormal matrix, replaced by the Einstein midpoint of its neighbourhood
    (itself included), and activated through the Poincaré ball.

    Args:
        in_dim, out_dim: Dimensions of the manifold; points have one coordinate more. ``out_dim ≥ in_dim``.
        activation: ``"relu"``, ``"leaky_relu"``, ``"elu"``, ``"tanh"``, ``"softsign"``, ``"identity"`` (or None), or
            a function with ``|act(b)| ≤ |b|``. The first two and the identity have a fast kernel.
        neighbor_weights: ``"symmetric"``, ``1/sqrt(d_i d_j)`` as in the authors' code, or ``"uniform"`` as the paper
            writes it. Edge weights multiply either.
        negative_slope: The slope of ``"leaky_relu"`` below 0.
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        activation: str | ActivationFunction | None = "relu",
        neighbor_weights: str = "symmetric",
        *,
        negative_slope: float = 0.01,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_dim = in_dim
        self.out_dim = out_dim
        self.activation = resolve_activation(activation, negative_slope)
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.linear = LorentzLinear(in_dim, out_dim, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the transformation anew."""
        self.linear.reset_parameters()

    def forward(self, points: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        """Maps points ``(n, in_dim + 1)`` to points ``(n, out_dim + 1)``.

        ``edge_index`` is a ``(2, edges)`` tensor, prepared when it is first seen, a sparse ``adj_t``, prepared at
        every call, or what ``prepare_adjacency`` returned. Float32 points beyond ``layer_radius`` are summed in
        float64.
        """
        check_width(points, self.in_dim)
        if points.dim() != 2:
            raise ValueError(f"points must be one row for each node, but have shape {tuple(points.shape)}")
        largest = _largest_time(points)
        adjacency = adjacency_of(edge_index, edge_weight, len(points))
        if points.dtype == torch.float32 and largest > math.cosh(layer_radius(torch.float32)):
            wide = lorentz.project(points.double())
            return lorentz.project(self._convolve(wide, adjacency).to(points.dtype))
        return self._convolve(points, adjacency)

    def step(self, time: Tensor, space: Tensor, adjacency: Adjacency) -> tuple[Tensor, Tensor]:
        """The layer on points held as time ``(n)`` and space ``(n, in_dim)``, without checks: for stacks of layers."""
        with full_precision(space):
            return convolve(time, space, *self._constants(space.dtype, adjacency))

    def last_step(self, time: Tensor, space: Tensor, adjacency: Adjacency) -> Tensor:
        """``step`` to whole points ``(n, out_dim + 1)``, for the end of a stack."""
        with full_precision(space):
            return convolve_to_points(time, space, *self._constants(space.dtype, adjacency))

    @torch.no_grad()
    def rows_step(self, time: Tensor, space: Tensor, rows: SparseMatrix) -> tuple[Tensor, Tensor]:
        """``step`` for some rows of an adjacency's matrix, without gradients: for graphs that are too large at once."""
        with full_precision(space):
            return convolve(time, space, self._weight(space.dtype), rows, self.activation)

    def _convolve(self, points: Tensor, adjacency: Adjacency) -> Tensor:
        time, space = points.split([1, self.in_dim], dim=1)
        return self.last_step(time.squeeze(1), space, adjacency)

    def _constants(self, dtype: torch.dtype, adjacency: Adjacency) -> tuple[Tensor, SparseMatrix, BallActivation]:
        return self._weight(dtype), adjacency.matrix(self.neighbor_weights, dtype), self.activation

    def _weight(self, dtype: torch.dtype) -> Tensor:
        weight = self.linear.weight
        return weight if weight.dtype == dtype else stiefel.widened(weight).to(dtype)

    def extra_repr(self) -> str:
        kinds = f"activation={self.activation.name!r}, neighbor_weights={self.neighbor_weights!r}"
        return f"{self.in_dim}, {self.out_dim}, {kinds}"


@torch.compiler.disable  # type: ignore[untyped-decorator]  # it asks for values
def _largest_time(points: Tensor) -> float:
    """The largest time of the points, once they are known to be points: finite, and with a time of at least 1."""
    if not len(points):
        return 1.0
    if not bool(points.detach().sum().isfinite()) and not bool(points.isfinite().all()):
        row = int((~points.isfinite()).any(1).nonzero()[0])
        raise ValueError(f"points hold NaN or infinity, first in row {row}; mend the features or what made the points")
    smallest, largest = points[:, 0].detach().aminmax()
    if smallest < 1 - torch.finfo(points.dtype).eps:
        raise ValueError(
            f"points have a time coordinate of {smallest.item():g}, but on the hyperboloid it is at least 1; "
            "map Euclidean features with lorentz.exp_origin first"
        )
    return float(largest)


WEIGHTS = ("stiefel", "fixed", "free")
AGGREGATIONS = ("midpoint", "tangent")


class VariedConv(H2HConv):
    """``H2HConv`` with other weights, or another mean of neighbours.

    Args:
        weights: ``"stiefel"``, as in the paper; ``"fixed"``, an orthonormal matrix that stays as it was drawn; or
            ``"free"``, any matrix, which starts orthonormal: time follows from space, and the map is no isometry.
        aggregation: ``"midpoint"``, as in the paper, or ``"tangent"``: the mean in the tangent space at the origin,
            as HGCN takes it by default.
    """

    def __init__(self, *args: Any, weights: str = "stiefel", aggregation: str = "midpoint", **options: Any) -> None:
        super().__init__(*args, **options)
        check_variant(weights, aggregation)
        self.weights = weights
        self.aggregation = aggregation
        weight = self.linear.weight.detach()
        if weights == "fixed":
            self.linear.weight.requires_grad_(False)
        elif weights == "free":
            self.linear.weight = nn.Parameter(weight.as_subclass(Tensor).clone())

    def step(self, time: Tensor, space: Tensor, adjacency: Adjacency) -> tuple[Tensor, Tensor]:
        with full_precision(space):
            weight, matrix, activation = self._constants(space.dtype, adjacency)
            space = space @ weight.mT
            if self.weights == "free":
                time = (1 + space.square().sum(-1)).sqrt()
            if self.aggregation == "midpoint":
                return activation(*midpoint(time, space, matrix))
            vectors = sparse_matmul(matrix, lorentz.log_origin(_joined(time, space)))
            return activation(*exp_origin_parts(vectors, layer_radius(space.dtype)))

    def last_step(self, time: Tensor, space: Tensor, adjacency: Adjacency) -> Tensor:
        return _joined(*self.step(time, space, adjacency))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, weights={self.weights!r}, aggregation={self.aggregation!r}"


def check_variant(weights: str, aggregation: str) -> None:
    if weights not in WEIGHTS:
        raise ValueError(f"weights={weights!r} is not known; use one of {WEIGHTS}")
    if aggregation not in AGGREGATIONS:
        raise ValueError(f"aggregation={aggregation!r} is not known; use one of {AGGREGATIONS}")


def _joined(time: Tensor, space: Tensor) -> Tensor:
    return torch.cat([time.unsqueeze(1), space], dim=1)
