"""A parameter that Riemannian optimisers keep on the Stiefel manifold."""

from typing import Any

import geoopt
import torch
from torch import Tensor

from h2hgcn.geometry import stiefel


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
