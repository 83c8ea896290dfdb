"""Random graphs with a hidden hierarchy, of any size: points of a hyperbolic disk, near ones joined."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.errors import DataError
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
    starts = np.zeros(len(radii) + 1, np.int64)
    found = np.empty(0, np.int64)
    for _ in range(2):  # to count the pairs, and to write them
        counts = np.zeros(len(radii), np.int64)
        shape = (len(radii), 64)  # about as many pairs are looked at
        run_on_rows(_find_pairs, shape, radii, angles, distance, *bands, starts, found, counts)
        starts[1:] = np.cumsum(counts)
        found = np.empty(starts[-1], np.int64) if not len(found) else found
    once = sp.csr_array((np.ones(len(found), np.bool_), found, starts), shape=(len(radii), len(radii)))
    once.sort_indices()
    both = (once + once.T).tocoo()
    return np.stack([both.row, both.col]).astype(np.int64)


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
def _find_pairs(
    first: int, last: int, all_radii: Any, all_angles: Any, distance: float, starts: Any, edges: Any, angles: Any,
    radii: Any, nodes: Any, band_of: Any, places: Any, found: Any, counts: Any,
) -> None:  # fmt: skip
    """Counts the near points of each node; those of node ``i`` are written from ``places[i]`` on, unless ``found`` is
    empty.
    """
    for node in range(first, last):
        end = _neighbors_outward(
            node, all_radii, all_angles, distance, starts, edges, angles, radii, nodes, band_of, found, places[node]
        )
        counts[node] = end - places[node]


# Features are multiples of this: what another processor rounds differently goes unseen.
_GRID = 2.0**-10

# Rings and steps of the search for the radius.
_RINGS, _STEPS = 200, 40


def generate_hyperbolic(
    num_edges: int = 100_000,
    seed: int = 0,
    *,
    mean_degree: float = 20.0,
    alpha: float = 0.75,
    num_features: int = 16,
    harmonics: int = 8,
    noise: float = 0.5,
    num_classes: int = 8,
) -> Data:
    """A graph of about ``num_edges`` edges and ``2 · num_edges / mean_degree`` nodes; see the module for the model.

    The same arguments give the same graph everywhere, but for a pair whose distance agrees with ``R`` to 15 digits:
    NumPy has frozen the streams of ``RandomState``.
    """
    num_nodes = round(2 * num_edges / mean_degree) if mean_degree > 0 else 0
    _check_arguments(num_edges, num_nodes, mean_degree, alpha, num_features, harmonics, noise, num_classes)
    random = RandomState(seed)
    radius = disk_radius(num_nodes, mean_degree, alpha)
    angles = 2 * math.pi * random.random_sample(num_nodes)
    depths = random.random_sample(num_nodes)
    radii = np.arccosh(1 + depths * (math.cosh(alpha * radius) - 1)) / alpha
    data = Data(num_nodes=num_nodes)
    data.x = torch.from_numpy(_features(random, radii / radius, angles, num_features, harmonics, noise))
    data.y = torch.from_numpy((angles * (num_classes / (2 * math.pi))).astype(np.int64).clip(max=num_classes - 1))
    data.edge_index = torch.from_numpy(pairs_within(radii, angles, radius))
    data.positions = torch.from_numpy(np.stack([radii, angles], axis=1).astype(np.float32))
    return data


def disk_radius(num_nodes: int, mean_degree: float, alpha: float) -> float:
    """The radius at which so many nodes have this degree in the mean: found by halving, since the degree falls."""
    low, high = 1e-3, 2 * math.log(num_nodes) + 20
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if (num_nodes - 1) * _near_share(middle, alpha) > mean_degree:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _near_share(radius: float, alpha: float) -> float:
    """The probability that two nodes of a disk are joined, by sums over rings."""
    # rings of little mass in the middle, whose nodes have most of the edges
    steps = (np.arange(_RINGS) + 0.5) / _RINGS
    shares = steps**2
    masses = 2 * steps / _RINGS
    radii = np.arccosh(1 + shares * (math.cosh(alpha * radius) - 1)) / alpha
    gap = math.cosh(radius) - np.cosh(radii[:, None] - radii[None, :])
    square = gap / (2 * np.sinh(radii)[:, None] * np.sinh(radii)[None, :])
    angles = 2 * np.arcsin(np.sqrt(square.clip(0, 1)))
    return float(masses @ angles @ masses) / math.pi


def _features(
    random: RandomState, depths: Floats, angles: Floats, num_features: int, harmonics: int, noise: float
) -> NDArray[np.float32]:
    """Column by column, so that no more than a few are held in double precision."""
    mixing = random.standard_normal((num_features, 1 + 2 * harmonics)) / math.sqrt(1 + 2 * harmonics)
    features = np.empty((len(depths), num_features), np.float32)
    for column, weights in enumerate(mixing):
        values = weights[0] * (2 * depths - 1)
        for k in range(1, harmonics + 1):
            values += weights[2 * k - 1] * np.cos(k * angles) + weights[2 * k] * np.sin(k * angles)
        values += noise * random.standard_normal(len(depths))
        features[:, column] = np.round(values / _GRID) * _GRID
    return features


def _check_arguments(
    num_edges: int,
    num_nodes: int,
    mean_degree: float,
    alpha: float,
    num_features: int,
    harmonics: int,
    noise: float,
    num_classes: int,
) -> None:
    if not mean_degree > 0 or not math.isfinite(mean_degree):
        raise DataError(f"mean_degree={mean_degree}: a graph with edges has a positive one")
    if num_nodes < 2 or mean_degree > (num_nodes - 1) / 2:
        raise DataError(
            f"{num_edges} edges at a mean degree of {mean_degree:g} make {num_nodes} nodes, too few; ask for more "
            "edges, or for a lower degree"
        )
    if not 0.5 < alpha < math.inf:
        raise DataError(f"alpha={alpha} must be above 0.5: degrees follow a power law of exponent 2·alpha + 1")
    if min(num_features, harmonics, num_classes) < 1 or not 0 <= noise < math.inf:
        raise DataError(
            f"num_features={num_features}, harmonics={harmonics}, num_classes={num_classes} must be at least 1, and "
            f"noise={noise} at least 0"
        )
