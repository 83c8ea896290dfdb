"""A learnt vector or point for each node of one graph."""

from typing import Any

import geoopt
import torch
from torch import Tensor, nn

from h2hgcn.geometry import lorentz, poincare
from h2hgcn.layers.arguments import check_sizes

# Nickel and Kiela (2017, section 3.1) begin this close to the origin, in each coordinate.
_START = 1e-3


class NodeVectors(nn.Module):
    """Euclidean vectors ``(num_nodes, dim)``, of length about 1 at first."""

    def __init__(self, num_nodes: int, dim: int) -> None:
        super().__init__()
        check_sizes(dim=dim)
        check_num_nodes(num_nodes)
        self.weight = nn.Parameter(torch.empty(num_nodes, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)

    def forward(self) -> Tensor:
        return self.weight.clone()  # so that what becomes of the weight does not become of the result


class NodePoints(nn.Module):
    """Points ``(num_nodes, dim)`` of the Poincaré ball, near the origin at first (Nickel and Kiela 2017).

    They are learnt by a Riemannian optimiser. geoopt keeps them from the boundary: in float32 within a radius of 6.2,
    in float64 of 12.2.
    """

    weight: geoopt.ManifoldParameter

    def __init__(self, num_nodes: int, dim: int) -> None:
        super().__init__()
        check_sizes(dim=dim)
        check_num_nodes(num_nodes)
        self.weight = geoopt.ManifoldParameter(torch.empty(num_nodes, dim), manifold=geoopt.PoincareBall())
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.weight, -_START, _START)

    def forward(self) -> Tensor:
        return self.weight.clone()  # so that what becomes of the weight does not become of the result

    def tangents(self) -> Tensor:
        """The vectors at the origin that lead to the points."""
        return lorentz.log_origin(poincare.to_lorentz(self.weight))


def check_num_nodes(num_nodes: Any) -> None:
    if not isinstance(num_nodes, int) or num_nodes < 1:
        raise ValueError(f"num_nodes={num_nodes}: say how many nodes the graph has, each of which gets a vector")


def check_rows(x: Any, num_nodes: int) -> None:
    """Raises unless there is one row of features for each node that has a vector."""
    if x is not None and x.shape[0] != num_nodes:
        raise ValueError(
            f"x has {x.shape[0]} rows, but the encoder has learnt a vector for each of {num_nodes} nodes and knows no "
            "others; pass the graph that it was made for"
        )
