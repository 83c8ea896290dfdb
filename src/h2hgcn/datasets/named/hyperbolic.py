"""A random graph with a hidden hierarchy, of any size: points of a hyperbolic disk, near ones joined.

The model (Krioukov et al. 2010, at temperature 0), in the order in which it is drawn:

1. *Positions.* Every node has an angle, uniform, and a radius ``r`` up to ``R`` with a density in proportion to
   ``sinh(α r)``: few nodes near the middle, most of them at the rim. ``R`` is chosen such that the expected number of
   edges is the one that was asked for (``disk_radius``).
2. *Edges.* Two nodes are joined if their hyperbolic distance is at most ``R``. Nodes near the middle become hubs, those
   at the rim are linked through them: degrees follow a power law of exponent ``2α + 1``, and triangles abound.
3. *Features.* The depth ``2r/R - 1`` and ``cos kθ``, ``sin kθ`` for ``k`` = 1 to ``harmonics``, mixed by a random
   matrix, plus normal noise: close positions are alike, but no single column tells them.
4. *Labels.* The sector of the angle, one of ``num_classes`` of equal width.

Positions are kept as ``positions`` (radius and angle), for tests and pictures; no task looks at them.
"""

import math

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from torch_geometric.data import Data

from h2hgcn.datasets.named.disk_links import Floats, pairs_within
from h2hgcn.errors import DataError

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
