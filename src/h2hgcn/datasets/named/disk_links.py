"""Which points of a hyperbolic disk are near each other: all pairs within a distance, found band by band.

Points are sorted into rings ("bands") by radius and, within a ring, by angle. A point can be near only those of a ring
whose angle differs by less than what the ring's inner edge allows, so few pairs are looked at in vain (after von Looz,
Meyerhenke and Prutkin 2015).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.jit import compiled, inlined, run_on_rows

Floats = NDArray[np.float64]

# A ring is this thick; thinner ones cost more searches, thicker ones more pairs in vain.
_THICKNESS = 0.7


class _Bands(NamedTuple):
    """Points by ring and angle: ``starts[b]`` is the first of ring ``b``, whose inner edge is ``edges[b]``."""

    starts: NDArray[np.int64]
    edges: Floats
    angles: Floats
    radii: Floats
    nodes: NDArray[np.int64]
    band_of: NDArray[np.int64]


def pairs_within(radii: Floats, angles: Floats, distance: float) -> NDArray[np.int64]:
    """The edges ``(2, edges)``, both ways and sorted, between points of a hyperbolic disk (native coordinates, angles
    from 0 to 2π) whose distance is at most ``distance``, which must be no less than any of the radii.
    """
    assert distance >= radii.max()
    bands = _sorted_into_bands(radii, angles)
    counts = np.zeros(len(radii), np.int64)
    shape = (len(radii), 64)  # about as many pairs are looked at
    run_on_rows(_count_pairs, shape, radii, angles, distance, *bands, counts)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    found = np.empty(starts[-1], np.int64)
    run_on_rows(_fill_pairs, shape, radii, angles, distance, *bands, starts, found)
    return _both_ways(starts, found)


def _sorted_into_bands(radii: Floats, angles: Floats) -> _Bands:
    edges = np.arange(0.0, radii.max() + _THICKNESS, _THICKNESS)
    band_of = np.searchsorted(edges, radii, side="right") - 1
    order = np.lexsort((angles, band_of))
    starts = np.searchsorted(band_of[order], np.arange(len(edges) + 1))
    return _Bands(starts, edges, angles[order], radii[order], order, band_of)


@inlined
def _largest_square(radius: float, other: float, distance: float) -> float:
    """``sin²(Δ/2)`` of the largest difference Δ of angles at which two points are near.

    The law of cosines without the difference of large numbers that it has in its usual form.
    """
    product = 2 * np.sinh(radius) * np.sinh(other)
    gap = np.cosh(distance) - np.cosh(radius - other)
    return gap / product if product > 0 else 1.0


@inlined
def _scan(
    node: int, radius: float, angle: float, distance: float, low: int, high: int, radii: Any, angles: Any, nodes: Any,
    own_band: bool, found: Any, place: int,
) -> int:  # fmt: skip
    """Looks at the points from ``low`` to ``high`` and writes those that are near; returns where it stopped writing."""
    for entry in range(low, high):
        if own_band and nodes[entry] <= node:  # each pair once: by ring, and within a ring by number
            continue
        half = np.sin(0.5 * (angles[entry] - angle))
        if half * half <= _largest_square(radius, radii[entry], distance):
            if len(found):
                found[place] = nodes[entry]
            place += 1
    return place


@inlined
def _neighbors_outward(
    node: int, all_radii: Any, all_angles: Any, distance: float, starts: Any, edges: Any, angles: Any, radii: Any,
    nodes: Any, band_of: Any, found: Any, place: int,
) -> int:  # fmt: skip
    """The near points in a node's own ring and in those outside it."""
    radius, angle = all_radii[node], all_angles[node]
    for band in range(band_of[node], len(edges)):
        own = band == band_of[node]
        square = _largest_square(radius, edges[band], distance)  # at the inner edge it is largest
        first, last = starts[band], starts[band + 1]
        if square >= 1:
            place = _scan(node, radius, angle, distance, first, last, radii, angles, nodes, own, found, place)
            continue
        width = 2 * np.arcsin(np.sqrt(square)) * (1 + 1e-9)  # wide enough whatever is rounded
        for turn in (-2 * np.pi, 0.0, 2 * np.pi):
            low = first + np.searchsorted(angles[first:last], angle - width + turn)
            high = first + np.searchsorted(angles[first:last], angle + width + turn)
            place = _scan(node, radius, angle, distance, low, high, radii, angles, nodes, own, found, place)
    return place


@compiled
def _count_pairs(
    first: int, last: int, all_radii: Any, all_angles: Any, distance: float, starts: Any, edges: Any, angles: Any,
    radii: Any, nodes: Any, band_of: Any, counts: Any,
) -> None:  # fmt: skip
    nothing = np.empty(0, np.int64)
    for node in range(first, last):
        counts[node] = _neighbors_outward(
            node, all_radii, all_angles, distance, starts, edges, angles, radii, nodes, band_of, nothing, 0
        )


@compiled
def _fill_pairs(
    first: int, last: int, all_radii: Any, all_angles: Any, distance: float, starts: Any, edges: Any, angles: Any,
    radii: Any, nodes: Any, band_of: Any, places: Any, found: Any,
) -> None:  # fmt: skip
    for node in range(first, last):
        if places[node + 1] > places[node]:
            _neighbors_outward(
                node, all_radii, all_angles, distance, starts, edges, angles, radii, nodes, band_of, found, places[node]
            )


@compiled
def _both_ways(starts: Any, found: Any) -> Any:
    """Pairs, listed once at one of their ends, as edges in both directions, sorted."""
    count = len(starts) - 1
    places = np.zeros(count + 1, np.int64)
    for node in range(count):
        places[node + 1] += starts[node + 1] - starts[node]
        for entry in range(starts[node], starts[node + 1]):
            places[found[entry] + 1] += 1
    for node in range(count):
        places[node + 1] += places[node]
    edges = np.empty((2, 2 * len(found)), np.int64)
    used = places[:-1].copy()
    for node in range(count):
        for entry in range(starts[node], starts[node + 1]):
            other = found[entry]
            edges[1, used[node]], edges[1, used[other]] = other, node
            used[node] += 1
            used[other] += 1
    for node in range(count):
        edges[0, places[node] : places[node + 1]] = node
        edges[1, places[node] : places[node + 1]].sort()
    return edges
