"""Who is near a node, and which links it is likeliest to miss, by exact distances in the space of the points."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from h2hgcn.embeddings.coordinates import lorentz_tensor
from h2hgcn.explorer.links import Links
from h2hgcn.geometry import lorentz

# Probabilities of links for pairs (k × 2) of nodes; None where nothing was trained to tell them.
Probabilities = Callable[[NDArray[np.int64]], Sequence[float] | None]
Entry = dict[str, Any]

KINDS = ("neighbors", "links")


class Nearest:
    """Lists of nodes by distance, which is that of the whole space, whatever a picture shows of it."""

    def __init__(
        self,
        points: Any,
        space: str,
        links: Links | None,
        probabilities: Probabilities | None = None,
        distance_scale: float = 1.0,
    ) -> None:
        self._points = lorentz_tensor(points, space)
        self._links = links
        self._probabilities = probabilities
        self._scale = distance_scale

    @property
    def knows_links(self) -> bool:
        """Without edges nobody can tell which are missing."""
        return self._links is not None and self._links.count > 0

    def near(self, kind: str, node: int, k: int) -> list[Entry]:
        """``"neighbors"``: the ``k`` nearest nodes; ``"links"``: the nearest that the node is not linked with."""
        linked = self._links.of(node) if self._links is not None else np.empty(0, dtype=np.uint32)
        distances = self._distances(node)
        distances[node] = np.inf
        if kind == "links":
            distances[linked] = np.inf
        found = _smallest(distances, k)
        return self._entries(node, found, distances[found], set(linked.tolist()))

    def _distances(self, node: int) -> NDArray[np.float64]:
        with torch.no_grad():
            return lorentz.distance(self._points[node].expand_as(self._points), self._points).numpy()

    def _entries(
        self, node: int, found: NDArray[np.int64], distances: NDArray[np.float64], linked: set[int]
    ) -> list[Entry]:
        pairs = np.column_stack([np.full(len(found), node, dtype=np.int64), found])
        given = self._probabilities(pairs) if self._probabilities is not None and len(pairs) else None
        chances = [None] * len(found) if given is None else [float(chance) for chance in given]
        return [
            {"node": other, "distance": distance * self._scale, "probability": chance, "linked": other in linked}
            for other, distance, chance in zip(found.tolist(), distances.tolist(), chances, strict=True)
        ]


def _smallest(distances: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The places of the ``k`` smallest finite numbers, in order; of equal ones the first."""
    k = min(k, int(np.isfinite(distances).sum()))
    if not k:
        return np.empty(0, dtype=np.int64)
    limit = np.partition(distances, k - 1)[k - 1]
    candidates = (distances <= limit).nonzero()[0]
    return candidates[np.argsort(distances[candidates], kind="stable")[:k]]
