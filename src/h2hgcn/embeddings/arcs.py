"""Geodesics of the Poincaré disk as circles: arcs that meet the boundary at right angles."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# From this radius of its circle on, an arc is drawn straight: within the unit disk it strays by less than 5e-5.
STRAIGHT_RADIUS = 1e4


@dataclass(frozen=True)
class Arcs:
    """``straight`` says which are lines; their ``centers`` and ``radii`` mean nothing.

    ``turns`` is +1 where the arc runs counterclockwise about its circle's centre, -1 where clockwise.
    """

    start: Array
    end: Array
    centers: Array
    radii: Array
    turns: Array
    straight: NDArray[np.bool_]

    def sampled(self, steps: int = 24) -> Array:
        """Points ``(arcs, steps + 1, 2)`` along each arc, its ends among them."""
        fractions = np.linspace(0.0, 1.0, steps + 1)[:, None]
        lines = self.start[:, None] * (1 - fractions) + self.end[:, None] * fractions
        return np.where(self.straight[:, None, None], lines, self._on_circles(fractions))

    def _on_circles(self, fractions: Array) -> Array:
        first, last = self.start - self.centers, self.end - self.centers
        sweep = np.arctan2(_cross(first, last), (first * last).sum(1))[:, None] * fractions.T
        cos, sin = np.cos(sweep), np.sin(sweep)
        turned = np.stack([cos * first[:, :1] - sin * first[:, 1:], sin * first[:, :1] + cos * first[:, 1:]], axis=-1)
        return self.centers[:, None] + turned


def geodesic_arcs(start: Array, end: Array) -> Arcs:
    """Geodesics between points ``(arcs, 2)`` of the disk.

    A circle about ``c`` of radius ``r`` is orthogonal to the unit circle if ``|c|² = 1 + r²``, and then passes through
    ``p`` if ``2 c·p = 1 + |p|²``: two points make two linear equations for ``c``. On a line through the origin they
    have no solution.
    """
    cross = _cross(start, end)
    flat = cross == 0
    height_start, height_end = (1 + (start**2).sum(1)) / 2, (1 + (end**2).sum(1)) / 2
    across = np.stack(
        [height_start * end[:, 1] - height_end * start[:, 1], height_end * start[:, 0] - height_start * end[:, 0]], 1
    )
    with np.errstate(over="ignore", invalid="ignore"):
        centers = across / np.where(flat, 1.0, cross)[:, None]
        squares = (centers**2).sum(1) - 1
    straight = flat | ~((squares > 0) & (squares < STRAIGHT_RADIUS**2))
    centers[straight] = 0.0
    radii = np.sqrt(np.where(straight, 1.0, squares))
    turns = np.where(_cross(start - centers, end - centers) < 0, -1.0, 1.0)
    return Arcs(start, end, centers, radii, turns, straight)


def _cross(first: Array, second: Array) -> Array:
    return first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
