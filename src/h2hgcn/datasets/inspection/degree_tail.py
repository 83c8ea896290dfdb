"""The tail of a degree distribution as a power law, after Clauset, Shalizi and Newman 2009."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import zeta

# Below fifty nodes the exponent's error exceeds its distance from other tails (Clauset et al. 2009, section 3).
FEWEST_NODES = 50
# A tail of fewer different degrees fits any steep curve.
FEWEST_DEGREES = 5
# Tails steeper than this fall as fast as a Poisson distribution's in reach of any data.
STEEPEST = 10.0
# Starts of the tail that are tried; more change the exponent by less than its error.
MOST_STARTS = 100


# Beyond this distance from the data, a power law is a line drawn through anything.
CLOSE_FIT = 0.1


@dataclass(frozen=True)
class PowerLaw:
    """``P(degree = x) ∝ x^-exponent`` from ``first_degree`` on, where ``nodes`` nodes lie.

    ``distance`` is the largest gap between the fitted and the observed distribution (Kolmogorov and Smirnov): above
    about 0.1 the tail is hardly a power law.
    """

    exponent: float
    first_degree: int
    nodes: int
    distance: float

    def is_convincing(self, largest_degree: int) -> bool:
        """Whether the fit is close, and holds over a tenfold range of degrees."""
        return self.distance <= CLOSE_FIT and largest_degree >= 10 * self.first_degree


def fit_power_law(degrees: NDArray[np.int64]) -> PowerLaw | None:
    """The fit of maximum likelihood whose start has the smallest distance; nothing where the tail is too short."""
    values, counts = np.unique(degrees[degrees > 0], return_counts=True)
    in_tail = counts[::-1].cumsum()[::-1]
    starts = np.flatnonzero((in_tail >= FEWEST_NODES) & (np.arange(len(values), 0, -1) >= FEWEST_DEGREES))
    if len(starts) > MOST_STARTS:
        starts = starts[np.unique(np.geomspace(1, len(starts), MOST_STARTS).astype(int) - 1)]
    fits = [_fit_from(values[start:], counts[start:]) for start in starts]
    fits = [fit for fit in fits if fit.exponent < 0.99 * STEEPEST]
    return min(fits, key=lambda fit: fit.distance, default=None)


def _fit_from(values: NDArray[np.int64], counts: NDArray[np.int64]) -> PowerLaw:
    total, first = int(counts.sum()), int(values[0])
    mean_log = float(counts @ np.log(values / first)) / total

    def loss(exponent: float) -> float:
        # degrees are taken in units of the first, whose powers would vanish otherwise
        return float(np.log(zeta(exponent, first) * float(first) ** exponent) + exponent * mean_log)

    exponent = float(minimize_scalar(loss, bounds=(1.01, STEEPEST), method="bounded").x)
    at_most = 1 - zeta(exponent, values + 1) / zeta(exponent, first)
    distance = float(np.abs(counts.cumsum() / total - at_most).max())
    return PowerLaw(exponent, first, total, distance)
