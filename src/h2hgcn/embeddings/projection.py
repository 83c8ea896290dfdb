"""Points of any dimension in the Poincaré disk, each at its true distance from the middle.

H2H-GCN ends with a ReLU in the Poincaré ball, which sets negative coordinates to 0: all points lie in one orthant, and
seen from the origin their directions crowd a narrow cone. So the disk is drawn from where the points are: a Lorentz
boost takes their Einstein midpoint to the middle, which changes no distance between points. There a point is a
direction and a length (the logarithmic map). The angle drawn is that of the direction within the plane of the two
leading principal directions of these vectors (their second moments about the middle, as in tangent PCA); the length is
the point's whole distance to the midpoint, not only its share in the plane, so that the radius ``tanh(length/2)`` is
exact. Points of dimension 2 are not turned: their picture is a boost of what was learnt (with ``center=False`` that
itself), and all of its distances are true. Of higher dimensions, distances to the middle are true and others are not.

A principal component analysis of Euclidean points has nothing to do with a disk and is not squeezed into one.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.embeddings.coordinates import check_coordinates, check_points, lorentz_tensor
from h2hgcn.geometry import klein, lorentz
from h2hgcn.geometry.numerics import ball_gap, safe_norm, safe_reciprocal

Plane = NDArray[np.float64]


@dataclass(frozen=True)
class DiskProjection:
    """Points ``(n, 2)`` in the unit disk (``space="poincare"``) or in the unit square from 0 to 1 (``"euclidean"``).

    ``center`` is what lies in the middle, in Lorentz coordinates or Euclidean ones; ``keeps`` says in a sentence what
    is true of the picture.
    """

    points: Plane
    space: Literal["poincare", "euclidean"]
    center: NDArray[np.float64]
    keeps: str


def project_to_disk(points: Any, space: str = "lorentz", *, center: bool = True) -> DiskProjection:
    """Points in the plane; what is kept of them is in the result's ``keeps``, and why in this module's beginning.

    With ``center`` the middle of the disk is the points' Einstein midpoint, without it the origin of the space.
    Euclidean points are centred and turned to their two principal components, with one scale for both.
    """
    kind = check_coordinates(space)
    if kind == "euclidean":
        return _principal_components(check_points(points, "euclidean").astype(np.float64))
    with torch.no_grad():
        return _hyperbolic(lorentz_tensor(points, kind), center)


def _hyperbolic(points: Tensor, center: bool) -> DiskProjection:
    origin = torch.zeros_like(points[0])
    origin[0] = 1.0
    middle = klein.einstein_midpoint(points) if center else origin
    vectors = _vectors_from(middle, points)
    plane = vectors @ _principal_axes(vectors)
    # beyond a distance of about 36 the disk has no float64 numbers left: points stop short of the boundary
    radii = torch.tanh(lorentz.distance(middle, points) / 2).clamp_max(1 - 2 * ball_gap(points.dtype))
    disk = _unit(plane) * radii[:, None]
    return DiskProjection(disk.numpy(), "poincare", middle.numpy(), _what_is_kept(vectors.shape[1], center))


def _vectors_from(middle: Tensor, points: Tensor) -> Tensor:
    """Directions and distances as seen from a point: the logarithm there, transported to the origin."""
    tangents = lorentz.log(middle, points)
    return tangents[:, 1:] - tangents[:, :1] / (1 + middle[0]) * middle[1:]


def _principal_axes(vectors: Tensor) -> Tensor:
    """The two leading principal directions as columns, each with its largest entry positive."""
    dim = vectors.shape[1]
    if dim <= 2:
        return torch.eye(dim, 2, dtype=vectors.dtype)
    axes = torch.linalg.eigh(vectors.mT @ vectors).eigenvectors[:, [-1, -2]]
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    return axes * torch.where(largest < 0, -1.0, 1.0)


def _unit(plane: Tensor) -> Tensor:
    """Directions of length 1; a vector that the plane does not show points to the right."""
    norm = safe_norm(plane)
    right = torch.tensor([1.0, 0.0], dtype=plane.dtype)
    return torch.where(norm > 0, plane * safe_reciprocal(norm), right)


def _what_is_kept(dim: int, center: bool) -> str:
    middle = f"The middle of the disk is {'the midpoint of all points' if center else 'the origin of the space'}."
    if dim <= 2:
        return f"{middle} All hyperbolic distances are true."
    return (
        f"{middle} The hyperbolic distance of each point to it is true; distances between points are not: the angle "
        f"shows where a point's direction lies in the plane of the two leading principal directions (of {dim})."
    )


def _principal_components(points: Plane) -> DiskProjection:
    mean = points.mean(0)
    vectors = torch.from_numpy(points - mean)
    plane = (vectors @ _principal_axes(vectors)).numpy()
    low, high = plane.min(0), plane.max(0)
    size = (high - low).max()
    scaled = (plane - (low + high) / 2) / (size if size > 0 else 1.0) + 0.5
    keeps = f"The two leading principal components of {points.shape[1]} Euclidean dimensions, at one scale."
    return DiskProjection(scaled, "euclidean", mean, keeps)
