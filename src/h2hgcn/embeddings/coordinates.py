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

_GAP, _MOST_RADIUS = ball_gap(torch.float64), max_radius(torch.float64)
_TO_LORENTZ = {
    "lorentz": lorentz.project, "poincare": poincare.to_lorentz, "klein": klein.to_lorentz,
    "tangent": lorentz.exp_origin,
}  # fmt: skip
# With the time of the farthest point that float64 coordinates can hold.
_FROM_LORENTZ = {
    "poincare": (poincare.from_lorentz, 2 / _GAP),
    "klein": (klein.from_lorentz, _GAP**-0.5),
    "tangent": (lorentz.log_origin, math.cosh(_MOST_RADIUS)),
}


def check_coordinates(name: str) -> Coordinates:
    """The argument itself, if coordinates are called so; ``"ball"``, as encoders say, is ``"poincare"``."""
    name = "poincare" if name == "ball" else name
    if name not in get_args(Coordinates):
        raise DataError(f"the coordinates {name!r} are not known; take one of {', '.join(get_args(Coordinates))}")
    return name  # type: ignore[return-value]


def check_points(points: Any, space: Coordinates, what: str = "the points") -> Points:
    """The points as an array of float32 or float64, if all of them are points of the space."""
    try:
        array = np.asarray(points)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"they are of type {array.dtype}")
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{what} are not an array of numbers ({error}); pass a NumPy array of floats") from error
    array = array.astype(np.float32 if array.dtype in (np.float16, np.float32) else np.float64, copy=False)
    width = 2 if space == "lorentz" else 1
    if array.ndim != 2 or len(array) == 0 or array.shape[1] < width:
        raise DataError(
            f"{what} have the shape {array.shape}; pass one row for each point, with its {space} coordinates "
            f"({width} at least)"
        )
    _refuse_rows(~np.isfinite(array).all(1), what, "holds a number that is not finite; leave the row out")
    if space == "euclidean":
        return array
    norms = np.linalg.norm(array.astype(np.float64), axis=1)
    if space == "lorentz":
        outside = ~((lorentz.violation(_tensor(array)).numpy() <= HYPERBOLOID_TOLERANCE) & (array[:, 0] > 0))
        why = "is not on the hyperboloid -x0² + x1² + ... = -1"
    elif space == "tangent":
        outside, why = norms > _MOST_RADIUS, "is too far from the origin for float64"
    else:
        outside, why = norms >= 1, "is not inside the unit ball"
    _refuse_rows(outside, what, f"{why}; name the space the points are of")
    return array


def convert(points: Any, coordinates: str, space: str = "lorentz") -> Points:
    """Points of a space in other coordinates of the same space.

    ``"tangent"`` gives vectors of the tangent space at the origin, as long as the points are far from it. Coordinates
    that do not change keep their dtype; new ones are float64, since float32 ball coordinates end at a radius of 8.7.
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
    from_lorentz, largest_time = _FROM_LORENTZ[wanted]
    why = f"is too far from the origin for {wanted} coordinates; use Lorentz coordinates"
    _refuse_rows((lifted[:, 0] > largest_time).numpy(), "the points", why)
    return from_lorentz(lifted).numpy()


def lorentz_tensor(points: Any, space: str = "lorentz") -> Tensor:
    """Points of a hyperbolic space as a float64 tensor on the hyperboloid, their time derived from space."""
    return lorentz.project(_tensor(convert(points, "lorentz", space)))


def _tensor(array: Points) -> Tensor:
    """A float64 copy, which PyTorch may have to itself whatever the array's order and flags."""
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def _refuse_rows(bad: NDArray[np.bool_], what: str, why: str) -> None:
    if bad.any():
        more = f" (and {bad.sum() - 1} more)" if bad.sum() > 1 else ""
        raise DataError(f"row {bad.argmax()}{more} of {what} {why}")
