"""Aggregation in the tangent space of the receiving point."""

import torch
from torch import Tensor

from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import layer_radius
from h2hgcn.layers.sparse import SparseMatrix


def aggregate_locally(tangent: Tensor, matrix: SparseMatrix) -> Tensor:
    """``exp_{x_i}(Σ_j w_ij log_{x_i}(x_j))`` (Chami et al. 2019, section 4.3).

    Points are held as tangent vectors at the origin, and a vector is taken for each edge. Vectors longer than
    ``layer_radius`` are shortened to it.
    """
    points = lorentz.exp_origin(tangent, layer_radius(tangent.dtype))
    receivers = torch.repeat_interleave(matrix.crow.diff())
    towards = lorentz.log(points[receivers], points[matrix.col]) * matrix.values.unsqueeze(1)
    mean = torch.zeros_like(points).index_add(0, receivers, towards)
    return lorentz.log_origin(lorentz.exp(points, mean))
