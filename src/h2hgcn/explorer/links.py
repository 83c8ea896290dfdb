"""The edges of a graph as everybody's neighbours: what a page needs to draw arcs and to walk along them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.neighbors import check_edges
from h2hgcn.embeddings.picture import different_links


@dataclass(frozen=True)
class Links:
    """The neighbours of node ``i`` are ``targets[offsets[i] : offsets[i + 1]]``, in ascending order."""

    offsets: NDArray[np.uint32]
    targets: NDArray[np.uint32]

    @property
    def count(self) -> int:
        """Every edge counts once, whichever way it goes."""
        return len(self.targets) // 2

    def degrees(self) -> NDArray[np.int64]:
        ends = self.offsets.astype(np.int64)
        return ends[1:] - ends[:-1]

    def of(self, node: int) -> NDArray[np.uint32]:
        return self.targets[self.offsets[node] : self.offsets[node + 1]]


def find_links(edges: Any, num_nodes: int) -> Links:
    """Edges ``(2, edges)`` both ways, each once, without loops."""
    pairs = different_links(check_edges(edges, num_nodes), num_nodes)
    codes = np.concatenate([pairs[:, 0] * num_nodes + pairs[:, 1], pairs[:, 1] * num_nodes + pairs[:, 0]])
    codes.sort()
    sources, targets = np.divmod(codes, num_nodes)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=num_nodes))])
    return Links(offsets.astype(np.uint32), targets.astype(np.uint32))


def find_targets(edges: Any, num_nodes: int) -> Links:
    """Directed edges ``(2, edges)`` from their sources, in the form of ``Links``; loops are left out."""
    sources, targets = check_edges(edges, num_nodes)
    codes = np.unique((sources * num_nodes + targets)[sources != targets])
    sources, targets = np.divmod(codes, num_nodes)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=num_nodes))])
    return Links(offsets.astype(np.uint32), targets.astype(np.uint32))
