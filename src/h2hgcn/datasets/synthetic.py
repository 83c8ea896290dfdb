"""Which random process made this graph? Erdős-Rényi (class 0), Watts-Strogatz (1) or Barabási-Albert (2)."""

import io
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from h2hgcn.datasets.collection import GraphCollection
from h2hgcn.datasets.registry import sha256_of
from h2hgcn.files import atomic_write
from h2hgcn.jit import compiled, random_below, random_state, random_uniform

Adjacency = NDArray[np.uint8]


@compiled
def erdos_renyi(num_nodes: int, probability: float, state: Any) -> Adjacency:
    """Every pair is joined with this probability."""
    adjacency = np.zeros((num_nodes, num_nodes), np.uint8)
    for i in range(num_nodes):
        for j in range(i + 1, num_nodes):
            if random_uniform(state) < probability:
                adjacency[i, j] = adjacency[j, i] = 1
    return adjacency


@compiled
def watts_strogatz(num_nodes: int, num_neighbors: int, probability: float, state: Any) -> Adjacency:
    """A ring whose nodes are joined to the ``num_neighbors // 2`` next on each side, some edges rewired at one end.

    As in networkx, an odd number counts as the even one below it; 1 gives a graph without edges.
    """
    adjacency = np.zeros((num_nodes, num_nodes), np.uint8)
    degree = np.full(num_nodes, 2 * (num_neighbors // 2))
    for distance in range(1, num_neighbors // 2 + 1):
        for node in range(num_nodes):
            other = (node + distance) % num_nodes
            adjacency[node, other] = adjacency[other, node] = 1
    for distance in range(1, num_neighbors // 2 + 1):
        for node in range(num_nodes):
            # a node joined to all others has nowhere to rewire to
            if random_uniform(state) >= probability or degree[node] >= num_nodes - 1:
                continue
            new = random_below(num_nodes, state)
            while new == node or adjacency[node, new]:
                new = random_below(num_nodes, state)
            old = (node + distance) % num_nodes
            adjacency[node, old] = adjacency[old, node] = 0
            adjacency[node, new] = adjacency[new, node] = 1
            degree[old] -= 1
            degree[new] += 1
    return adjacency


@compiled
def barabasi_albert(num_nodes: int, num_links: int, state: Any) -> Adjacency:
    """A star of ``num_links + 1`` nodes grows; every new node joins ``num_links`` others, drawn by their degree."""
    adjacency = np.zeros((num_nodes, num_nodes), np.uint8)
    # every node stands here once for each of its edges, so that a uniform draw prefers high degrees
    ends = np.empty(2 * num_links * (num_nodes - num_links), np.int64)
    count = 0
    for leaf in range(1, num_links + 1):
        adjacency[0, leaf] = adjacency[leaf, 0] = 1
        ends[count], ends[count + 1] = 0, leaf
        count += 2
    for node in range(num_links + 1, num_nodes):
        known = count
        while count < known + 2 * num_links:
            target = ends[random_below(known, state)]
            if not adjacency[node, target]:
                adjacency[node, target] = adjacency[target, node] = 1
                ends[count], ends[count + 1] = node, target
                count += 2
    return adjacency


def pack_triangle(adjacency: Adjacency) -> NDArray[np.uint8]:
    """The upper triangle, row by row, one bit a pair; the low bits of a byte come first."""
    return np.packbits(adjacency[~np.tri(len(adjacency), dtype=bool)], bitorder="little")


@compiled
def unpack_edges(packed: NDArray[np.uint8], num_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges ``(2, edges)`` in both directions, sorted, and the degrees."""
    # whatever a bit says, something is written: on random bits, half of all branches would be foreseen wrongly
    adjacency = np.zeros((num_nodes, num_nodes), np.uint8)
    pair = 0
    for i in range(num_nodes):
        for j in range(i + 1, num_nodes):
            adjacency[i, j] = adjacency[j, i] = (packed[pair >> 3] >> (pair & 7)) & 1
            pair += 1
    degree = np.empty(num_nodes, np.int64)
    for i in range(num_nodes):
        degree[i] = adjacency[i].sum()
    edges = np.empty((2, degree.sum()), np.int64)
    columns = np.empty(num_nodes + 1, np.int64)
    first = 0
    for i in range(num_nodes):
        count = 0
        for j in range(num_nodes):
            columns[count] = j
            count += adjacency[i, j]
        edges[0, first : first + count] = i
        edges[1, first : first + count] = columns[:count]
        first += count
    return edges, degree


KINDS = ("erdos-renyi", "watts-strogatz", "barabasi-albert")
MAX_DEGREE = 1000

_REPORT_EVERY = 50

# Of the generators: a change of theirs counts up, so that graphs of before are made again.
_VERSION = 1

with warnings.catch_warnings():  # PyTorch says once in a process that it trusts sparse tensors; batches set it off
    warnings.simplefilter("ignore")
    torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.long), torch.zeros(0), (1,))


class _Recipe(NamedTuple):
    """How one graph is made: ``links`` is Watts-Strogatz's neighbors or Barabási-Albert's edges a node."""

    kind: int
    num_nodes: int
    links: int
    probability: float
    state: Any

    def adjacency(self) -> Adjacency:
        if self.kind == 0:
            return erdos_renyi(self.num_nodes, self.probability, self.state)
        if self.kind == 1:
            return watts_strogatz(self.num_nodes, self.links, self.probability, self.state)
        return barabasi_albert(self.num_nodes, self.links, self.state)


def _recipes(graphs_per_kind: int, seed: int) -> Iterator[_Recipe]:
    for kind, number in product(range(len(KINDS)), range(graphs_per_kind)):
        state = random_state(seed, kind, number)
        num_nodes, links = 200 + random_below(300, state), 1 + random_below(199, state)
        yield _Recipe(kind, num_nodes, links, 0.01 + 0.99 * random_uniform(state), state)


class SyntheticCollection(GraphCollection):
    """The graphs, made on demand; ``train``, ``val`` and ``test`` are indices into the whole collection.

    ``bits`` is a file with the triangle of graph ``i`` in the bytes from ``places[i]`` to ``places[i + 1]``.
    """

    def __init__(self, bits: Path, places: NDArray[np.int64], recipes: list[_Recipe]) -> None:
        kinds = torch.tensor([recipe.kind for recipe in recipes])
        super().__init__("synthetic", kinds, num_node_features=MAX_DEGREE + 1)
        self._bits, self._places = bits, places.tolist()
        self._num_nodes = [recipe.num_nodes for recipe in recipes]
        # thirds of each kind: the graphs are independent, so their order is random
        thirds = [(kinds == kind).nonzero().flatten().tensor_split(3) for kind in range(len(KINDS))]
        self.train, self.val, self.test = (torch.cat(parts) for parts in zip(*thirds, strict=True))

    def checksum(self) -> str:
        return sha256_of(self._bits)

    def get(self, idx: int) -> Data:
        """Graph ``idx`` of the whole collection; ``x`` is sparse."""
        first, last = self._places[idx : idx + 2]
        packed = np.fromfile(self._bits, np.uint8, last - first, offset=first)
        edges, degree = unpack_edges(packed, self._num_nodes[idx])
        return Data(x=_one_hot_degree(degree), edge_index=torch.from_numpy(edges), y=self._labels[idx : idx + 1])


def load_synthetic(
    cache: Path, graphs_per_kind: int = 6000, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> SyntheticCollection:
    """The collection from the folder ``cache``, where it is generated first if it is not there or damaged.

    Graph ``i`` of a kind is the same for every ``graphs_per_kind``. ``progress`` is called with the number of graphs
    generated and of all.
    """
    if graphs_per_kind < 3:
        raise ValueError(f"graphs_per_kind is {graphs_per_kind}, but every kind has to train, validate and test")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed}, but must be in [0, 2^63)")
    recipes = list(_recipes(graphs_per_kind, seed))
    sizes = [(recipe.num_nodes * (recipe.num_nodes - 1) // 2 + 7) // 8 for recipe in recipes]
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (sum(sizes),)})
    places = np.cumsum([len(header.getvalue()), *sizes])
    bits = cache / f"synthetic-{graphs_per_kind}-{seed}.npy"
    stamp = bits.with_suffix(".sha256")
    known = stamp.read_text() if stamp.is_file() else ""
    if not bits.is_file() or known != f"{sha256_of(bits)} {_VERSION}\n":
        with atomic_write(bits) as file:
            file.write(header.getvalue())
            for done, recipe in enumerate(recipes, start=1):
                file.write(pack_triangle(recipe.adjacency()).tobytes())
                if progress and (done % _REPORT_EVERY == 0 or done == len(recipes)):
                    progress(done, len(recipes))
        with atomic_write(stamp) as file:
            file.write(f"{sha256_of(bits)} {_VERSION}\n".encode())
    return SyntheticCollection(bits, places, recipes)


def _one_hot_degree(degree: NDArray[np.int64]) -> Tensor:
    columns = torch.from_numpy(degree).clamp_max(MAX_DEGREE)
    place = torch.stack([torch.arange(len(degree)), columns])
    shape = (len(degree), MAX_DEGREE + 1)
    return torch.sparse_coo_tensor(place, torch.ones(len(degree)), shape, is_coalesced=True, check_invariants=False)
