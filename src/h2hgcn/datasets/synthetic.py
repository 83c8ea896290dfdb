"""Which random process made this graph? Erdős-Rényi (class 0), Watts-Strogatz (1) or Barabási-Albert (2)."""

import hashlib
import io
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
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


@compiled
def pack_triangle(adjacency: Adjacency) -> NDArray[np.uint8]:
    """The upper triangle, row by row, one bit a pair; the low bits of a byte come first."""
    num_nodes = len(adjacency)
    packed = np.zeros((num_nodes * (num_nodes - 1) // 2 + 7) // 8, np.uint8)
    pair = 0
    for i in range(num_nodes):
        for j in range(i + 1, num_nodes):
            packed[pair >> 3] |= adjacency[i, j] << (pair & 7)
            pair += 1
    return packed


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

with warnings.catch_warnings():  # PyTorch says once in a process that it trusts sparse tensors; batches set it off
    warnings.simplefilter("ignore")
    torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.long), torch.zeros(0), (1,))


@dataclass(frozen=True)
class _Stamp:
    """What a file must have been made with to be used; a change of the generators or the format counts up."""

    graphs_per_kind: int
    seed: int
    version: int = 1


class _Recipe(NamedTuple):
    """How one graph is made: ``links`` is Watts-Strogatz's neighbors or Barabási-Albert's edges a node."""

    kind: int
    num_nodes: int
    links: int
    probability: float
    state: Any

    def packed_graph(self) -> NDArray[np.uint8]:
        if self.kind == 0:
            return pack_triangle(erdos_renyi(self.num_nodes, self.probability, self.state))
        if self.kind == 1:
            return pack_triangle(watts_strogatz(self.num_nodes, self.links, self.probability, self.state))
        return pack_triangle(barabasi_albert(self.num_nodes, self.links, self.state))


class SyntheticCollection(GraphCollection):
    """The graphs, made on demand; ``train``, ``val`` and ``test`` are indices into the whole collection."""

    def __init__(self, bits: Path, num_nodes: NDArray[np.integer[Any]], y: Tensor) -> None:
        super().__init__("synthetic", y, num_node_features=MAX_DEGREE + 1)
        self._bits = _MappedFile(bits)
        self._num_nodes = num_nodes.tolist()
        self._pointers = np.concatenate([[0], np.cumsum(_packed_sizes(num_nodes))])
        self.train, self.val, self.test = _thirds(y)

    def checksum(self) -> str:
        return sha256_of(self._bits.path)

    def get(self, idx: int) -> Data:
        """Graph ``idx`` of the whole collection; ``x`` is sparse."""
        packed = self._bits.array[self._pointers[idx] : self._pointers[idx + 1]]
        edges, degree = unpack_edges(packed, self._num_nodes[idx])
        return Data(x=_one_hot_degree(degree), edge_index=torch.from_numpy(edges), y=self._labels[idx : idx + 1])


class _MappedFile:
    """A read-only array on disk, which other processes map again instead of receiving it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.array: NDArray[np.uint8] = np.asarray(np.load(path, mmap_mode="r"))

    def __reduce__(self) -> tuple[type["_MappedFile"], tuple[Path]]:
        return _MappedFile, (self.path,)


def load_synthetic(
    cache: Path, graphs_per_kind: int = 6000, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> SyntheticCollection:
    """The collection from the folder ``cache``, where it is generated first if it is not there or does not fit.

    Graph ``i`` of a kind is the same for every ``graphs_per_kind``. ``progress`` is called with the number of graphs
    generated and of all.
    """
    if graphs_per_kind < 3:
        raise ValueError(f"graphs_per_kind is {graphs_per_kind}, but every kind has to train, validate and test")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed}, but must be in [0, 2^63)")
    stamp = _Stamp(graphs_per_kind, seed)
    bits = cache / f"synthetic-{graphs_per_kind}-{seed}.npy"
    known = _read(bits, stamp)
    if known is None:
        _generate(bits, stamp, progress)
        known = _read(bits, stamp)
    if known is None:
        raise OSError(f"{bits} was written, but does not read back; look after the disk")
    return known


def _read(bits: Path, stamp: _Stamp) -> SyntheticCollection | None:
    """The collection, unless a file is missing, damaged, or was made with something else."""
    try:
        # opened here, since numpy leaves a file open whose end is missing
        with bits.with_suffix(".npz").open("rb") as file, np.load(file) as facts:
            if any(facts[name] != value for name, value in asdict(stamp).items()):
                return None
            num_nodes, y = facts["num_nodes"], torch.from_numpy(facts["y"])
            checksum = str(facts["sha256"])
        if np.load(bits, mmap_mode="r").shape != (_packed_sizes(num_nodes).sum(),) or sha256_of(bits) != checksum:
            return None
        return SyntheticCollection(bits, num_nodes, y)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _generate(bits: Path, stamp: _Stamp, progress: Callable[[int, int], None] | None) -> None:
    recipes = list(_recipes(stamp))
    num_nodes = np.array([recipe.num_nodes for recipe in recipes], np.int16)
    header = io.BytesIO()
    shape = (int(_packed_sizes(num_nodes).sum()),)
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    facts = bits.with_suffix(".npz")
    facts.unlink(missing_ok=True)
    digest = hashlib.sha256(header.getvalue())
    with atomic_write(bits) as file:
        file.write(header.getvalue())
        for done, recipe in enumerate(recipes, start=1):
            packed = recipe.packed_graph().tobytes()
            file.write(packed)
            digest.update(packed)
            if progress and (done % _REPORT_EVERY == 0 or done == len(recipes)):
                progress(done, len(recipes))
    with atomic_write(facts) as file:
        np.savez(
            file,
            num_nodes=num_nodes,
            y=np.array([recipe.kind for recipe in recipes], np.int8),
            links=np.array([recipe.links for recipe in recipes], np.int16),
            probability=np.array([recipe.probability for recipe in recipes]),
            sha256=digest.hexdigest(),
            **asdict(stamp),
        )


def _recipes(stamp: _Stamp) -> Iterator[_Recipe]:
    for kind, number in product(range(len(KINDS)), range(stamp.graphs_per_kind)):
        state = random_state(stamp.seed, kind, number)
        num_nodes, links = 200 + random_below(300, state), 1 + random_below(199, state)
        yield _Recipe(kind, num_nodes, links, 0.01 + 0.99 * random_uniform(state), state)


def _packed_sizes(num_nodes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    pairs = num_nodes.astype(np.int64) * (num_nodes - 1) // 2
    return (pairs + 7) // 8


def _one_hot_degree(degree: NDArray[np.int64]) -> Tensor:
    columns = torch.from_numpy(degree).clamp_max(MAX_DEGREE)
    place = torch.stack([torch.arange(len(degree)), columns])
    shape = (len(degree), MAX_DEGREE + 1)
    return torch.sparse_coo_tensor(place, torch.ones(len(degree)), shape, is_coalesced=True, check_invariants=False)


def _thirds(y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The first, the second and the last third of each kind; the graphs are independent, so their order is random."""
    kinds = [(y == kind).nonzero().flatten() for kind in range(len(KINDS))]
    first, second, third = zip(*(kind.tensor_split(3) for kind in kinds), strict=True)
    return torch.cat(first), torch.cat(second), torch.cat(third)
