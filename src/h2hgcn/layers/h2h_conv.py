"""The hyperbolic-to-hyperbolic graph convolution (Dai et al. 2021, Eq. 10-13), from top to bottom: an orthonormal map,
the Einstein midpoint of a neighborhood, an activation through the Poincaré ball, and the layer made of them.

Points are rows ``[time, space...]``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import geoopt
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import is_torch_sparse_tensor

from h2hgcn.geometry import lorentz, stiefel
from h2hgcn.geometry.numerics import ACTIVATION_TOLERANCE, full_precision, layer_radius
from h2hgcn.graph.adjacency import adjacency_of, check_neighbor_weights
from h2hgcn.kernels import convolution as kernels
from h2hgcn.kernels import is_transformed, use_kernel
from h2hgcn.kernels.csr import SparseMatrix

ActivationFunction = Callable[[Tensor], Tensor]


def rotate(points: Tensor, weight: Tensor) -> Tensor:
    """Eq. 10-11: ``[x₀, W x₁..ₙ]`` of points ``(..., in_dim + 1)`` and orthonormal ``W (out_dim, in_dim)``."""
    with full_precision(points):
        space = points[..., 1:] @ weight.to(points.dtype).mT
    rotated = torch.cat([points[..., :1], space], dim=-1)
    # columns of a float32 weight are not orthonormal enough to keep the time of far float64 points
    return rotated if weight.dtype == points.dtype else lorentz.project(rotated)


def midpoint(points: Tensor, matrix: SparseMatrix) -> Tensor:
    """Eq. 12: the Einstein midpoint of every node's neighborhood, a row of ``matrix``.

    The Lorentz factor of a Klein point is its time, and the factor times the point is its space: the midpoint is the
    weighted sum of points, brought back to the hyperboloid, ``(T, S) / sqrt(T² - |S|²)``.
    """
    sums = kernels.neighborhood_sums(points, matrix)
    return (sums / lorentz.norm_of_sum(sums)).to(points.dtype)


@dataclass(frozen=True)
class BallActivation:
    """Eq. 13: an activation in the Poincaré ball, with ``|act(b)| ≤ |b|`` in each coordinate, hence from the ball into
    the ball. ``slope`` is set for a leaky ReLU, which commutes with scaling: the slope below 0.
    """

    name: str
    function: ActivationFunction
    slope: float | None = None

    def __call__(self, points: Tensor) -> Tensor:
        """``1 - |act(b)|² = 2/(1 + time) + Σ(b² - act(b)²)``: no term is negative, so nothing cancels near the
        boundary.
        """
        lifted = 1 + points[..., :1]
        ball_point = points[..., 1:] / lifted
        activated = self.function(ball_point)
        shrinkage = (ball_point - activated) * (ball_point + activated)
        space = activated * (2 / (2 / lifted + shrinkage.sum(-1, keepdim=True)))
        return torch.cat([(1 + space.square().sum(-1, keepdim=True)).sqrt(), space], dim=-1)


def convolution(points: Tensor, weight: Tensor, matrix: SparseMatrix, activation: BallActivation) -> Tensor:
    """The layer as the paper writes it, Eq. 11-13."""
    rotated = rotate(points, weight)
    middle = midpoint(rotated, matrix)
    return activation(middle)


class LorentzLinear(nn.Module):
    """``y = [x₀, W x₁..ₙ]`` with orthonormal columns of ``W (out_dim, in_dim)`` (Dai et al. 2021, Eq. 10-11).

    An isometry from points ``(..., in_dim + 1)`` to points ``(..., out_dim + 1)``, which keeps the time of every
    point. Columns can be orthonormal only if ``out_dim ≥ in_dim``.
    """

    def __init__(
        self, in_dim: int, out_dim: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        if in_dim < 1:
            raise ValueError(f"in_dim={in_dim}: a hyperbolic space has at least one dimension")
        if out_dim < in_dim:
            raise ValueError(
                f"out_dim={out_dim} is below in_dim={in_dim}, but orthonormal columns need out_dim ≥ in_dim; reduce "
                "the dimension before the exponential map, as the Euclidean stem of H2HGCN does"
            )
        self.in_dim = in_dim
        self.out_dim = out_dim
        self.weight = stiefel_parameter(out_dim, in_dim, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws ``W`` again, uniformly over the Stiefel manifold."""
        weight = self.weight
        drawn = stiefel.random_orthonormal(self.out_dim, self.in_dim, device=weight.device, dtype=weight.dtype)
        with torch.no_grad():
            weight.copy_(drawn)

    def forward(self, points: Tensor) -> Tensor:
        check_width(points, self.in_dim)
        return rotate(points, self.weight)

    def extra_repr(self) -> str:
        return f"{self.in_dim}, {self.out_dim}"


class H2HConv(MessagePassing):  # type: ignore[misc]  # PyG is not annotated
    """Graph convolution on the hyperboloid (Dai et al. 2021, Eq. 11-13), to be called like a PyG convolution.

    Every node's point is rotated by an orthonormal matrix, replaced by the Einstein midpoint of its neighborhood
    (itself included), and activated through the Poincaré ball. To PyG it is a ``MessagePassing``, so that explainers
    mask its edges and ``to_hetero`` copies it for each type of edge; the messages are one sparse product.

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
        super().__init__(aggr=None)
        self.in_dim = in_dim
        self.out_dim = out_dim
        self.activation = resolve_activation(activation, negative_slope)
        self.neighbor_weights = check_neighbor_weights(neighbor_weights)
        self.linear = LorentzLinear(in_dim, out_dim, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the transformation again."""
        self.linear.reset_parameters()

    def forward(
        self, points: Tensor | tuple[Tensor, Tensor], edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Maps points ``(n, in_dim + 1)`` to points ``(n, out_dim + 1)``.

        ``edge_index`` is a ``(2, edges)`` tensor, prepared when it is first seen, a sparse ``adj_t``, prepared at
        every call, or what ``prepare_adjacency`` returned. Float32 points beyond ``layer_radius`` are summed in
        float64. With a pair of points, of sources and of targets, an ``edge_index`` leads from the first to the second,
        and the targets' points are returned.
        """
        if isinstance(points, tuple):
            return self._bipartite(*points, edge_index, edge_weight)
        edge_weight = self.masked_weight(edge_index, edge_weight)
        check_width(points, self.in_dim)
        if points.dim() != 2:
            raise ValueError(f"points must be one row for each node, but have shape {tuple(points.shape)}")
        largest = _largest_time(points)
        adjacency = adjacency_of(edge_index, edge_weight, len(points))
        if points.dtype == torch.float32 and largest > math.cosh(layer_radius(torch.float32)):
            points = lorentz.project(points.double())
            moved = self.convolve(points, adjacency.matrix(self.neighbor_weights, torch.float64))
            return lorentz.project(moved.to(torch.float32))
        return self.convolve(points, adjacency.matrix(self.neighbor_weights, points.dtype))

    def _bipartite(self, sources: Tensor, targets: Tensor, edge_index: Any, edge_weight: Tensor | None) -> Tensor:
        """The points of targets, whose neighborhoods are sources and themselves."""
        if sources is targets:
            return self(sources, edge_index, edge_weight)
        if not isinstance(edge_index, Tensor) or is_torch_sparse_tensor(edge_index):
            raise ValueError("a pair of points needs edge_index as a (2, edges) tensor")
        edge_index = edge_index + edge_index.new_tensor([[0], [len(sources)]])
        return self(torch.cat([sources, targets]), edge_index, edge_weight)[len(sources) :]

    def propagate(self, *_: Any, **__: Any) -> Tensor:
        """Not used. If it were inherited, PyG would write source code for it to the temporary folder."""
        raise NotImplementedError("H2HConv has no messages of single edges; call the layer itself")

    def masked_weight(self, edge_index: Any, edge_weight: Tensor | None) -> Tensor | None:
        """The edge weights, times the mask that ``torch_geometric.explain`` has set, if any; loops are not masked."""
        mask = self._edge_mask if self.explain else None
        if mask is None:
            return edge_weight
        if not isinstance(edge_index, Tensor) or is_torch_sparse_tensor(edge_index):
            raise ValueError("an explanation masks edges; pass edge_index as a (2, edges) tensor")
        mask = mask.sigmoid() if self._apply_sigmoid else mask
        mask = mask.clamp_min(torch.finfo(mask.dtype).tiny)  # a graph has some positive weight
        mask = torch.where(edge_index[0] == edge_index[1], torch.ones_like(mask), mask)
        return mask if edge_weight is None else edge_weight.reshape(-1) * mask

    def convolve(self, points: Tensor, matrix: SparseMatrix) -> Tensor:
        """The convolution of points that are known to be good, for the rows of a matrix of neighbor weights."""
        weight, slope = self.linear.weight, self.activation.slope
        reference = partial(convolution, matrix=matrix, activation=self.activation)
        with full_precision(points):
            if (
                slope is not None
                and use_kernel(points, weight, matrix.values)
                and weight.dtype == points.dtype
                and not matrix.values.requires_grad
            ):
                return kernels.convolve(points, weight, matrix, slope, reference)  # the same in one go, for speed
            return reference(points, weight)

    def __repr__(self) -> str:
        return nn.Module.__repr__(self)

    def extra_repr(self) -> str:
        kinds = f"activation={self.activation.name!r}, neighbor_weights={self.neighbor_weights!r}"
        return f"{self.in_dim}, {self.out_dim}, {kinds}"


@torch.compiler.disable  # type: ignore[untyped-decorator]  # it asks for values
def _largest_time(points: Tensor) -> float:
    """The largest time of the points, once they are known to be points: finite, and with a time of at least 1."""
    if not len(points) or is_transformed():
        return 1.0
    detached = points.detach()
    smallest, largest, total = torch.stack([*detached[:, 0].aminmax(), detached.sum()]).tolist()
    if not math.isfinite(total) and not bool(points.isfinite().all()):
        row = int((~points.isfinite()).any(1).nonzero()[0])
        raise ValueError(f"points hold NaN or infinity, first in row {row}; fix the features or what made the points")
    if smallest < 1 - torch.finfo(points.dtype).eps:
        raise ValueError(
            f"points have a time coordinate of {smallest:g}, but on the hyperboloid it is at least 1; "
            "map Euclidean features with lorentz.exp_origin first"
        )
    return float(largest)


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


_KEEP_THE_BALL: dict[str, ActivationFunction] = {"elu": F.elu, "softsign": F.softsign, "tanh": torch.tanh}
_SLOPES = {"identity": 1.0, "leaky_relu": 0.01, "relu": 0.0}
_SELF_GATED = ("gelu", "hardswish", "mish", "silu", "swish")
_ADVICE = f"these keep it well: {', '.join(sorted((*_SLOPES, *_KEEP_THE_BALL)))}"

# PyTorch's own modules and functions with a special case.
_PYTORCHS: dict[Any, str] = {
    None: "identity", nn.Identity: "identity", nn.LeakyReLU: "leaky_relu", F.leaky_relu: "leaky_relu",
    nn.ReLU: "relu", F.relu: "relu", torch.relu: "relu", nn.GELU: "gelu", F.gelu: "gelu", nn.Mish: "mish",
    F.mish: "mish", nn.SiLU: "silu", F.silu: "silu", nn.Hardswish: "hardswish", F.hardswish: "hardswish",
}  # fmt: skip

# How many points of [-1, 1] a user-defined function is tried at: a multiple of 3, and odd, so that 0 is among them.
_PROBES = 2001


def resolve_activation(activation: str | ActivationFunction | None, negative_slope: float = 0.01) -> BallActivation:
    """The activation of that name, or a function checked to keep the ball. None is the identity."""
    if not isinstance(activation, str | None) and not callable(activation):
        raise ValueError(f"activation is a {type(activation).__name__}; pass a name or a function; {_ADVICE}")
    name = activation if isinstance(activation, str) else _PYTORCHS.get(_kind(activation))
    if name is None and callable(activation):
        name = str(getattr(activation, "__name__", type(activation).__name__)).lower()
        return BallActivation(name, _checked(name, activation))
    if name in _SELF_GATED:
        raise ValueError(
            f"activation {name!r} is self-gated: inside the unit ball it halves every coordinate, and points collapse "
            f"to the origin layer by layer; {_ADVICE}"
        )
    if name in _SLOPES:
        given = getattr(activation, "negative_slope", negative_slope)
        slope = float(given) if name == "leaky_relu" else _SLOPES[name]
        if not -1 <= slope <= 1:
            raise ValueError(f"negative_slope={slope:g} leaves the Poincaré ball; take one between -1 and 1")
        return BallActivation(name, partial(F.leaky_relu, negative_slope=slope), slope)
    if name in _KEEP_THE_BALL:
        return BallActivation(name, _KEEP_THE_BALL[name])
    if name == "selu":
        raise ValueError(f"activation 'selu' leaves the Poincaré ball (it expands by 5 % and more); {_ADVICE}")
    raise ValueError(f"activation {name!r} is not known to keep the Poincaré ball; {_ADVICE}")


def _kind(activation: Any) -> Any:
    """The class of a module, and a function itself."""
    return type(activation) if isinstance(activation, nn.Module) else activation


def _checked(name: str, function: ActivationFunction) -> ActivationFunction:
    """A function that was seen to act on single coordinates and to keep the ball."""
    if isinstance(function, nn.Module) and next(function.parameters(), None) is not None:
        raise ValueError(
            f"activation {name!r} has learnable parameters, so it cannot be known to stay in the Poincaré ball; "
            f"{_ADVICE}"
        )
    probe = torch.linspace(-1, 1, _PROBES, dtype=torch.float64)
    with torch.no_grad():
        value = function(probe)
        as_rows = function(probe.reshape(-1, 3))
    if value.shape != probe.shape or not torch.equal(as_rows, value.reshape(-1, 3)):
        raise ValueError(f"activation {name!r} mixes coordinates; it must act on each of them alone; {_ADVICE}")
    leaves = ~(value.abs() <= probe.abs() * (1 + ACTIVATION_TOLERANCE))
    if bool(leaves.any()):
        raise ValueError(
            f"activation {name!r} leaves the Poincaré ball: it takes {probe[leaves][0].item():g} to "
            f"{value[leaves][0].item():g}, and |act(b)| ≤ |b| must hold; {_ADVICE}"
        )
    return function
