"""Who is near a node, and which links it is likeliest to miss, by exact distances in the space of the points or, for
directed links, by what the decoder makes of every pair.

Order by distance is order by ``t t' - s·s'``, one product of a matrix with a vector. Its rounding is bounded, so that
distances, which take longer, are needed of few nodes only: of all that may be among the nearest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.coordinates import lorentz_tensor
from h2hgcn.embeddings.neighbors import Rank
from h2hgcn.explorer.links import Links
from h2hgcn.geometry import lorentz
from h2hgcn.geometry.numerics import INNER_PRODUCT_STEPS

# Probabilities of links for pairs (k × 2) of nodes; None where nothing was trained to tell them.
Probabilities = Callable[[NDArray[np.int64]], Iterable[float] | None]
Entry = dict[str, Any]
Found = tuple[NDArray[np.int64], NDArray[np.float64]]

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
        targets: Links | None = None,
        rank: Rank | None = None,
        directed: bool = False,
    ) -> None:
        self._points = lorentz_tensor(points, space)
        self._array: NDArray[np.float64] = self._points.numpy()
        steps = INNER_PRODUCT_STEPS + self._array.shape[1]
        self._rounding = steps * np.finfo(np.float64).eps * self._array[:, 0]
        self._links = links
        self._probabilities = probabilities
        self._scale = distance_scale
        self._targets = targets
        self._rank = rank
        self.directed = directed

    @property
    def knows_links(self) -> bool:
        """Without edges nobody can tell which are missing."""
        return self._links is not None and self._links.count > 0

    def near(self, kind: str, node: int, k: int) -> list[Entry]:
        """``"neighbors"``: the ``k`` nearest nodes; ``"links"``: the nearest that the node is not linked with, or, if
        there is a ``rank``, the highest of those that it has no edge to.
        """
        return self.all_near(kind, [node], k)[0]

    def all_near(self, kind: str, nodes: Sequence[int], k: int) -> list[list[Entry]]:
        """The lists of several nodes, whose distances and probabilities are asked for together."""
        found = self._found(kind, nodes, k)
        pairs = np.array([(node, other) for node, (others, _) in zip(nodes, found, strict=True) for other in others])
        given = self._probabilities(pairs) if self._probabilities is not None and len(pairs) else None
        chances = iter([None] * len(pairs) if given is None else [float(chance) for chance in given])
        return [
            self._entries(node, others, distances, chances)
            for node, (others, distances) in zip(nodes, found, strict=True)
        ]

    def _entries(
        self, node: int, others: NDArray[np.int64], distances: NDArray[np.float64], chances: Iterator[float | None]
    ) -> list[Entry]:
        linked = np.isin(others, self._linked(node))
        return [
            {"node": other, "distance": distance * self._scale, "probability": next(chances), "linked": known}
            for other, distance, known in zip(others.tolist(), distances.tolist(), linked.tolist(), strict=True)
        ]

    def _found(self, kind: str, nodes: Sequence[int], k: int) -> list[Found]:
        """The nearest of each node with their distances, in order."""
        if kind == "links" and self._rank is not None:
            return [self._ranked(node, k) for node in nodes]
        candidates = [self._candidates(kind, node, k) for node in nodes]
        sizes = [len(some) for some in candidates]
        sources, targets = np.repeat(nodes, sizes), np.concatenate(candidates)
        distances = lorentz.distance(self._points[sources], self._points[targets]).numpy() if len(targets) else targets
        parts = np.split(distances, np.cumsum(sizes)[:-1])
        orders = [np.argsort(part, kind="stable")[:k] for part in parts]
        return [(some[order], part[order]) for some, part, order in zip(candidates, parts, orders, strict=True)]

    def _ranked(self, node: int, k: int) -> Found:
        """The likeliest targets of a node that it has no edge to."""
        assert self._rank is not None
        free = np.ones(len(self._array), dtype=bool)
        free[node] = False
        if self._targets is not None:
            free[self._targets.of(node)] = False
        others = free.nonzero()[0]
        scores = self._rank(np.column_stack([np.full_like(others, node), others]))
        others = others[(-scores).argsort(kind="stable")[:k]]
        return others, lorentz.distance(self._points[[node]], self._points[others]).numpy()

    def _candidates(self, kind: str, node: int, k: int) -> NDArray[np.int64]:
        own = self._array[node]
        products = self._array @ np.concatenate([own[:1], -own[1:]])
        products[node] = np.inf
        if kind == "links":
            products[self._linked(node)] = np.inf
        return _may_be_smallest(products, own[0] * self._rounding, k)

    def _linked(self, node: int) -> NDArray[np.uint32]:
        return self._links.of(node) if self._links is not None else np.empty(0, dtype=np.uint32)


def _may_be_smallest(numbers: NDArray[np.float64], rounding: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The places, in ascending order, of all that may be among the ``k`` smallest if each may be off by so much."""
    k = min(k, int(np.isfinite(numbers).sum()))
    if not k:
        return np.empty(0, dtype=np.int64)
    smallest = np.argpartition(numbers, k - 1)[:k]
    limit = (numbers + rounding)[smallest].max()
    return (numbers - rounding <= limit).nonzero()[0]
