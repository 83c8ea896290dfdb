"""Random graphs with a hidden hierarchy, of any size: points of a hyperbolic disk, near ones joined."""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.errors import DataError

Floats = NDArray[np.float64]

# A ring is this thick; thinner ones cost more searches, thicker ones more pairs in vain.
_THICKNESS = 0.7

# So many points of a ring are compared with those of another at once, which bounds the memory.
_BLOCK = 1 << 14


def pairs_within(radii: Floats, angles: Floats, distance: float) -> NDArray[np.int64]:
    """The edges ``(2, edges)``, both ways and sorted, between points of a hyperbolic disk (native coordinates, angles
    from 0 to 2π) whose distance is at most ``distance``, which must be no less than any of the radii.
    """
    assert distance >= radii.max()
    edges = np.arange(0.0, radii.max() + _THICKNESS, _THICKNESS)
    rings = np.searchsorted(edges, radii, side="right") - 1
    order = np.lexsort((angles, rings))
    starts = np.searchsorted(rings[order], np.arange(len(edges) + 1))
    sorted_radii, sorted_angles = radii[order], angles[order]
    found: list[NDArray[np.int64]] = []
    for ring, (start, stop) in enumerate(pairwise(starts)):
        for first in range(start, stop, _BLOCK):
            points = np.arange(first, min(first + _BLOCK, stop))
            for outer in range(ring, len(edges)):
                others = range(starts[outer], starts[outer + 1])
                found += _near_pairs(points, others, edges[outer], sorted_radii, sorted_angles, distance)
    one, two = order[np.concatenate(found, axis=1)]
    shape = (len(radii), len(radii))
    once = sp.coo_array((np.ones(len(one), np.bool_), (one, two)), shape=shape).tocsr()
    both = once + once.T
    both.sort_indices()
    entries = both.tocoo()
    return np.stack([entries.row, entries.col]).astype(np.int64)


def _near_pairs(
    points: NDArray[np.int64], others: range, inner_edge: float, radii: Floats, angles: Floats, distance: float
) -> Iterator[NDArray[np.int64]]:
    """The near pairs of points and others, which are all those of a ring, by angle; a pair of one ring comes once."""
    square = _largest_square(radii[points], inner_edge, distance)  # at the inner edge it is largest
    width = 2 * np.arcsin(np.sqrt(square.clip(0, 1))) * (1 + 1e-9)  # wide enough whatever is rounded
    for turn in (-2 * np.pi, 0.0, 2 * np.pi):
        bounds = angles[points] + np.stack([turn - width, turn + width])
        low, high = np.searchsorted(angles[others.start : others.stop], bounds)
        low[square >= 1], high[square >= 1] = 0, len(others) if turn == 0 else 0
        counts = high - low
        one = np.repeat(points, counts)
        two = np.arange(len(one)) + np.repeat(others.start + high - counts.cumsum(), counts)
        half = np.sin(0.5 * (angles[two] - angles[one]))
        near = (one < two) & (half * half <= _largest_square(radii[one], radii[two], distance))
        yield np.stack([one[near], two[near]])


def _largest_square(radii: Floats, others: Floats | float, distance: float) -> Floats:
    """``sin²(Δ/2)`` of the largest difference Δ of angles at which two points are near.

    The law of cosines without the difference of large numbers that it has in its usual form.
    """
    product = 2 * np.sinh(radii) * np.sinh(others)
    gap = np.cosh(distance) - np.cosh(radii - others)
    return np.divide(gap, product, out=np.ones(len(product)), where=product > 0)


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
    """A hyperbolic random graph (Krioukov et al. 2010) of about ``num_edges`` edges and ``2 · num_edges / mean_degree``
    nodes; docs/data.md describes the model. ``positions`` are the hidden radii and angles.

    The same arguments give the same graph everywhere, but for a pair whose distance agrees with ``R`` to 15 digits:
    NumPy has frozen the streams of ``RandomState``.
    """
    num_nodes = round(2 * num_edges / mean_degree) if mean_degree > 0 else 0
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
