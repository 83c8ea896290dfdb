"""The hyperbolic-to-hyperbolic graph convolution."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.geometry.numerics import full_precision, layer_radius
from h2hgcn.layers.activation import ActivationFunction, BallActivation, resolve_activation
from h2hgcn.layers.adjacency import Adjacency, check_neighbor_weights
from h2hgcn.layers.kernels import convolve, convolve_to_points
from h2hgcn.layers.linear import LorentzLinear, check_width
from h2hgcn.layers.remembered import adjacency_of
from h2hgcn.layers.sparse import SparseMatrix


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
