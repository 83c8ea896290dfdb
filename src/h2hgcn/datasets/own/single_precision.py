"""Features and weights end as 32-bit floating-point numbers, which hold less than the 64 bits they came in."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

RANGE = "what single precision holds (1.4e-45 to 3.4e38)"


def single(values: Any) -> Any:
    """An array or SciPy matrix in single precision; what is too large becomes infinite, to be found by its checker."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32, copy=False)


def lost_in_single(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers become infinite, or zero without being so."""
    kept = single(values)
    return ~np.isfinite(kept) | ((kept == 0) & (values != 0))
