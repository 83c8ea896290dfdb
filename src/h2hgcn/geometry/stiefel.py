"""The Stiefel manifold: matrices ``(rows, columns)``, rows ≥ columns, whose columns are orthonormal.

Everything is computed in float64 and returned in the input's dtype: a product of float32 retractions drifts, their
rounding alone does not.
"""

import torch
from torch import Tensor

from h2hgcn.geometry.numerics import NEARLY_ORTHONORMAL, wide


def project_tangent(point: Tensor, gradient: Tensor) -> Tensor:
    """Orthogonal projection of a Euclidean gradient to the tangent space at a point (Dai et al. 2021, Eq. 17)."""
    point_wide, gradient_wide = wide(point), wide(gradient)
    mixed = point_wide.mT @ gradient_wide
    return (gradient_wide - point_wide @ (mixed + mixed.mT) / 2).to(gradient.dtype)


def retract(point: Tensor, tangent: Tensor) -> Tensor:
    """QR retraction ``qf(point + tangent)`` (Dai et al. 2021, Eq. 18), R's diagonal being positive (a zero counts as
    +1).
    """
    moved = wide(point) + wide(tangent)
    gram = moved.mT @ moved
    # after a short step, as all of training are, R is the Cholesky factor of a matrix close to 1: a third of the time
    if bool(_far_from_identity(gram) <= NEARLY_ORTHONORMAL):
        factor = torch.linalg.cholesky_ex(gram).L
        return torch.linalg.solve_triangular(factor.mT, moved, upper=True, left=False).to(point.dtype).contiguous()
    return orthonormal_factor(moved).to(point.dtype)


def orthonormal_factor(matrix: Tensor) -> Tensor:
    """Q of the QR decomposition whose R has a positive diagonal, which makes it unique and continuous."""
    q, r = torch.linalg.qr(matrix)
    signs = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q.dtype)
    return (q * signs.unsqueeze(-2)).contiguous()


def widened(point: Tensor) -> Tensor:
    """The point in float64 with its columns orthonormal to float64 (one Newton-Schulz step), differentiably."""
    point = wide(point)
    return 1.5 * point - 0.5 * point @ (point.mT @ point)


def random_orthonormal(
    rows: int,
    columns: int,
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """A matrix with orthonormal columns, uniform over all of them (Haar)."""
    if columns > rows:
        raise ValueError(f"{columns} columns of length {rows} cannot be orthonormal; pass at least as many rows")
    gaussian = torch.randn(rows, columns, generator=generator, dtype=torch.float64, device=device)
    return orthonormal_factor(gaussian).to(dtype or torch.get_default_dtype())


def violation(point: Tensor) -> Tensor:
    """How far the columns are from orthonormal: the largest entry of ``|WᵀW - I|``, computed in float64."""
    gram = wide(point).mT @ wide(point)
    return (gram - _identity_like(gram)).abs().amax((-2, -1))


def _far_from_identity(gram: Tensor) -> Tensor:
    """The largest of the column sums of ``|G - I|``, which bounds how far its eigenvalues are from 1."""
    return (gram - _identity_like(gram)).abs_().sum(-2).amax()


def _identity_like(matrix: Tensor) -> Tensor:
    return torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
