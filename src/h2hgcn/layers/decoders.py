"""Decoders: Fermi-Dirac probabilities of links, distances to learned centroids."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_mean_pool

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import MAX_LOG_TEMPERATURE
from h2hgcn.graph.adjacency import holds_integers
from h2hgcn.kernels.convolution import exp_origin
from h2hgcn.kernels.distances import pairwise_distance
from h2hgcn.layers.h2h_conv import check_width
from h2hgcn.layers.spaces import check_sizes


class FermiDiracDecoder(nn.Module):
    """Probability of a link, ``1/(exp((d² - r)/t) + 1)`` (Dai et al. 2021, Eq. 14), given as its logit ``(r - d²)/t``.

    Args:
        r: The squared distance at which a link is as likely as not.
        t: The temperature, positive: how sharply the probability falls off there.
        learnable: Whether ``r`` and ``log t`` are learned. Beyond ``numerics.MAX_LOG_TEMPERATURE``, ``log t`` stays at
            the bound, with gradient 0.
        squared_distance: Of two sets of rows; that of another space makes this the decoder of that space.
    """

    def __init__(
        self,
        r: float = 2.0,
        t: float = 1.0,
        learnable: bool = False,
        squared_distance: Callable[[Tensor, Tensor], Tensor] = lorentz.squared_distance,
    ) -> None:
        super().__init__()
        if not (math.isfinite(r) and math.isfinite(t) and t > 0):
            raise ValueError(f"r={r}, t={t}: the decoder needs finite numbers and a positive temperature t")
        if abs(math.log(t)) > MAX_LOG_TEMPERATURE:
            raise ValueError(
                f"t={t:g} has the logarithm {math.log(t):.1f}; logits and their gradients stay finite between "
                f"{-MAX_LOG_TEMPERATURE:g} and {MAX_LOG_TEMPERATURE:g}: take a t from there"
            )
        self.learnable = learnable
        self.squared_distance = squared_distance
        radius, log_temperature = torch.tensor(float(r)), torch.tensor(math.log(t))
        if learnable:
            self.radius, self.log_temperature = nn.Parameter(radius), nn.Parameter(log_temperature)
        else:
            self.register_buffer("radius", radius)
            self.register_buffer("log_temperature", log_temperature)

    @property
    def r(self) -> Tensor:
        return self.radius

    @property
    def t(self) -> Tensor:
        return self.log_temperature.clamp(-MAX_LOG_TEMPERATURE, MAX_LOG_TEMPERATURE).exp()

    def forward(self, source: Tensor, target: Tensor, *, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of links between rows of points; for the loss with logits. ``distance_scale`` is the encoder's."""
        if source.shape[-1:] != target.shape[-1:]:
            raise ValueError(
                f"source points have shape {tuple(source.shape)} and target points {tuple(target.shape)}, but their "
                "last axes must be of one width; take both from one encoder"
            )
        return self.logits(self.squared_distance(source, target), distance_scale)

    def logits(self, square: Tensor, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Logits of links at these squared distances."""
        scaled = square if _is_one(distance_scale) else square * distance_scale**2
        return (self.radius - scaled) / self.t

    def probability(self, source: Tensor, target: Tensor, *, distance_scale: Tensor | float = 1.0) -> Tensor:
        """Probabilities of links."""
        return torch.sigmoid(self(source, target, distance_scale=distance_scale))

    def extra_repr(self) -> str:
        return f"r={self.r.item():g}, t={self.t.item():g}, learnable={self.learnable}"


def _is_one(scale: Tensor | float) -> bool:
    return not isinstance(scale, Tensor) and scale == 1


class CentroidDistance(nn.Module):
    """Distances of points to ``num_centroids`` learned points (Liu et al. 2019; Dai et al. 2021, section 4.4).

    For nodes the result is ``(n, num_centroids)``; with ``batch``, the graph of each node, it is the mean over each
    graph's nodes, ``(graphs, num_centroids)``. A centroid is learned as the tangent vector at the origin that leads to
    it, so that any optimizer can train it.
    """

    def __init__(
        self,
        dim: int,
        num_centroids: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(dim=dim, num_centroids=num_centroids)
        self.dim = dim
        self.num_centroids = num_centroids
        self.tangents = nn.Parameter(torch.empty(num_centroids, dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scatters the centroids in all directions, at a radius of about one."""
        nn.init.normal_(self.tangents, std=self.dim**-0.5)

    @property
    def centroids(self) -> Tensor:
        """The centroids as points ``(num_centroids, dim + 1)``."""
        return exp_origin(self.tangents)

    def forward(
        self,
        points: Tensor,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        *,
        distance_scale: Tensor | float = 1.0,
    ) -> Tensor:
        """``distance_scale`` is the encoder's, if its curvature is not -1."""
        check_width(points, self.dim)
        distances = pairwise_distance(points, self.centroids.to(points.dtype))
        if not _is_one(distance_scale):
            distances = distances * distance_scale
        return distances if batch is None else _mean_over_graphs(distances, batch, num_graphs)

    def extra_repr(self) -> str:
        return f"{self.dim}, num_centroids={self.num_centroids}"


def _mean_over_graphs(distances: Tensor, batch: Tensor, num_graphs: int | None) -> Tensor:
    if not isinstance(batch, Tensor):
        raise ValueError(f"batch is a {type(batch).__name__}; pass a tensor with the graph of each node")
    if batch.shape != distances.shape[-2:-1] or not holds_integers(batch):
        raise ValueError(
            f"batch has shape {tuple(batch.shape)} and dtype {batch.dtype}, but there are {distances.shape[-2]} nodes; "
            "pass one integer for each, the graph it belongs to"
        )
    batch = batch.long()
    # compiled code cannot branch on values, and another device than the CPU would have to be waited for
    if not torch.compiler.is_compiling() and (batch.is_cpu or num_graphs is None):
        lowest, highest = (int(bound) for bound in batch.aminmax()) if len(batch) else (0, -1)
        if lowest < 0:
            raise ValueError(f"batch names graph {lowest}; graphs are counted from 0")
        num_graphs = highest + 1 if num_graphs is None else num_graphs
        if highest >= num_graphs:
            raise ValueError(
                f"batch names graph {highest}, but there are {num_graphs} graphs; fix num_graphs or the batch"
            )
    return global_mean_pool(distances, batch, num_graphs)


class EuclideanCentroids(nn.Module):
    """Distances of Euclidean points to ``num_centroids`` learned ones, of nodes or averaged over graphs (Liu et al.
    2019, the Euclidean model).
    """

    def __init__(self, dim: int, num_centroids: int) -> None:
        super().__init__()
        self.centroids = nn.Parameter(torch.empty(num_centroids, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scatters the centroids in all directions, at a radius of about one."""
        nn.init.normal_(self.centroids, std=self.centroids.shape[1] ** -0.5)

    def forward(
        self, points: Tensor, batch: Tensor | None = None, num_graphs: int | None = None, *,
        distance_scale: Tensor | float = 1.0,
    ) -> Tensor:  # fmt: skip
        distances = torch.cdist(points, self.centroids) * distance_scale
        return distances if batch is None else global_mean_pool(distances, batch, num_graphs)

    def extra_repr(self) -> str:
        num_centroids, dim = self.centroids.shape
        return f"{dim}, num_centroids={num_centroids}"
