"""Arrays of points, and the coordinates they are in."""

import math
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.errors import DataError
from h2hgcn.geometry import klein, lorentz, poincare
from h2hgcn.geometry.numerics import HYPERBOLOID_TOLERANCE, ball_gap, max_radius

Points = NDArray[np.floating]
Coordinates = Literal["lorentz", "poincare", "klein", "tangent", "euclidean"]

_ALIASES = {"ball": "poincare"}  # an encoder's name for it
_FROM_LORENTZ = {"poincare": poincare.from_lorentz, "klein": klein.from_lorentz, "tangent": lorentz.log_origin}
_TO_LORENTZ = {
    "lorentz": lorentz.project, "poincare": poincare.to_lorentz, "klein": klein.to_lorentz,
    "tangent": lorentz.exp_origin,
}  # fmt: skip


def check_coordinates(name: str) -> Coordinates:
    """The argument itself, if coordinates are called so."""
    for known in get_args(Coordinates):
        if _ALIASES.get(name, name) == known:
            return known
    raise DataError(f"the coordinates {name!r} are not known; take one of {', '.join(get_args(Coordinates))}")


def check_points(points: Any, space: Coordinates, what: str = "the points") -> Points:
    """The points as an array of float32 or float64, if all of them are points of the space."""
    array = _floats(points, what)
    width = 2 if space == "lorentz" else 1
    if array.ndim != 2 or len(array) == 0 or array.shape[1] < width:
        raise DataError(
            f"{what} have the shape {array.shape}; pass one row for each point, with its {space} coordinates "
            f"({width} at least)"
        )
    _refuse_rows(np.asarray(~np.isfinite(array).all(1)), what, "holds a number that is not finite; leave the row out")
    if space == "lorentz":
        violation = lorentz.violation(_tensor(array)).numpy()
        off = ~((violation <= HYPERBOLOID_TOLERANCE) & (array[:, 0] > 0))
        _refuse_rows(off, what, "is not on the hyperboloid -x0² + x1² + ... = -1; name the space the points are of")
    elif space == "tangent":
        far = np.linalg.norm(array.astype(np.float64), axis=1) > max_radius(torch.float64)
        _refuse_rows(far, what, "is too far from the origin to be told from others; name the space the points are of")
    elif space != "euclidean":
        outside = ~(np.linalg.norm(array.astype(np.float64), axis=1) < 1)
        _refuse_rows(outside, what, "is not inside the unit ball; name the space the points are of")
    return array


def convert(points: Any, coordinates: str, space: str = "lorentz") -> Points:
    """Points of a space in other coordinates of the same space.

    ``"tangent"`` are the vectors of the tangent space at the origin that the exponential map takes to the points, with
    their distances from the origin as lengths: what methods for Euclidean data can work with.

    Coordinates that do not change keep their dtype; new ones are float64, since near the boundary of a ball float32
    tells no points apart where Lorentz coordinates still do.
    """
    wanted, given = check_coordinates(coordinates), check_coordinates(space)
    if (wanted == "euclidean") != (given == "euclidean"):
        theirs = "euclidean" if given == "euclidean" else "lorentz, poincare, klein and tangent"
        raise DataError(f"{given} points have no {wanted} coordinates; theirs are called {theirs}")
    array = check_points(points, given)
    if wanted == given:
        return array
    lifted = _TO_LORENTZ[given](_tensor(array))
    if wanted == "lorentz":
        return lifted.numpy()
    beyond = (lifted[:, 0] > _largest_time(wanted)).numpy()
    _refuse_rows(beyond, "the points", f"is too far from the origin for {wanted} coordinates; use Lorentz coordinates")
    return _FROM_LORENTZ[wanted](lifted).numpy()


def lorentz_tensor(points: Any, space: str = "lorentz") -> Tensor:
    """Points of a hyperbolic space as a float64 tensor on the hyperboloid, their time derived from space."""
    return lorentz.project(_tensor(convert(points, "lorentz", space)))


def _largest_time(coordinates: Coordinates) -> float:
    """The time of the farthest point that can still be made of float64 coordinates."""
    if coordinates == "tangent":
        return math.cosh(max_radius(torch.float64))
    gap = ball_gap(torch.float64)
    return 2 / gap if coordinates == "poincare" else gap**-0.5


def _floats(points: Any, what: str) -> Points:
    try:
        array = np.asarray(points)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"they are of type {array.dtype}")
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{what} are not an array of numbers ({error}); pass a NumPy array of floats") from error
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if narrow else np.float64, copy=False)


def _tensor(array: Points) -> Tensor:
    """A float64 copy, which PyTorch may have to itself whatever the array's order and flags."""
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def _refuse_rows(bad: NDArray[np.bool_], what: str, why: str) -> None:
    if bad.any():
        more = f" (and {bad.sum() - 1} more)" if bad.sum() > 1 else ""
        raise DataError(f"row {bad.argmax()}{more} of {what} {why}")
