"""The convolution with one of its parts exchanged, to measure what that part is worth."""

from typing import Any

import torch
from torch import Tensor, nn

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import full_precision, layer_radius
from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.h2h_conv import H2HConv
from h2hgcn.layers.kernels import exp_origin_parts
from h2hgcn.layers.midpoint import midpoint
from h2hgcn.layers.sparse import sparse_matmul

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
