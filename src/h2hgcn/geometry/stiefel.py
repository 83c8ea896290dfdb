"""The Stiefel manifold: matrices ``(rows, columns)``, rows ≥ columns, whose columns are orthonormal.

Short steps are retracted in the point's own precision: each measures how far the columns are from orthonormal and takes
it back, so that rounding does not add up. Longer ones are retracted in float64.
"""

import torch
from torch import Tensor

from h2hgcn.geometry.numerics import NEARLY_ORTHONORMAL, first_order_excess, full_precision, wide


def project_tangent(point: Tensor, gradient: Tensor) -> Tensor:
    """Orthogonal projection of a Euclidean gradient to the tangent space at a point (Dai et al. 2021, Eq. 17)."""
    with full_precision(point):
        mixed = point.mT @ gradient
        return torch.sub(gradient, point @ (mixed + mixed.mT), alpha=0.5)


def retract(point: Tensor, tangent: Tensor) -> Tensor:
    """QR retraction ``qf(point + tangent)`` (Dai et al. 2021, Eq. 18), R's diagonal being positive (a zero counts as
    +1).
    """
    with full_precision(point):
        moved = point + tangent
        excess = _excess(moved)
        if float(torch.linalg.vector_norm(excess)) <= first_order_excess(point.dtype):
            # to first order, the upper triangle with half the diagonal is R - I of RᵀR = I + excess
            excess.triu_().diagonal(dim1=-2, dim2=-1).mul_(0.5)
            return moved - moved @ excess
    moved = wide(point) + tangent
    excess = _excess(moved)
    if float(torch.linalg.vector_norm(excess)) > NEARLY_ORTHONORMAL:
        return orthonormal_factor(moved).to(point.dtype)
    excess.diagonal(dim1=-2, dim2=-1).add_(1)
    factor = torch.linalg.cholesky_ex(excess).L  # its transpose is R
    return torch.linalg.solve_triangular(factor.mT, moved, upper=True, left=False).contiguous().to(point.dtype)


def descend(point: Tensor, gradient: Tensor, rate: float) -> Tensor:
    """``retract(point, -rate·project_tangent(point, gradient))`` of one matrix, in fewer operations."""
    with full_precision(point):
        mixed = point.mT @ gradient
        step = torch.addmm(gradient, point, mixed + mixed.mT, beta=-rate, alpha=rate / 2)
    return retract(point, step)


def _excess(matrix: Tensor) -> Tensor:
    """``MᵀM - I``, whose Frobenius norm bounds how far its eigenvalues are from 0."""
    gram = matrix.mT @ matrix
    gram.diagonal(dim1=-2, dim2=-1).sub_(1)
    return gram


def orthonormal_factor(matrix: Tensor) -> Tensor:
    """Q of the QR decomposition whose R has a positive diagonal, which makes it unique and continuous."""
    q, r = torch.linalg.qr(matrix)
    signs = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q.dtype)
    return (q * signs.unsqueeze(-2)).contiguous()


def random_orthonormal(
    rows: int, columns: int, *, generator: torch.Generator | None = None, dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:  # fmt: skip
    """A matrix with orthonormal columns, uniform over all of them (Haar)."""
    if columns > rows:
        raise ValueError(f"{columns} columns of length {rows} cannot be orthonormal; pass at least as many rows")
    gaussian = torch.randn(rows, columns, generator=generator, dtype=torch.float64, device=device)
    return orthonormal_factor(gaussian).to(dtype or torch.get_default_dtype())


def violation(point: Tensor) -> Tensor:
    """How far the columns are from orthonormal: the largest entry of ``|WᵀW - I|``, computed in float64."""
    return _excess(wide(point)).abs().amax((-2, -1))
