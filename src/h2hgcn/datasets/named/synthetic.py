"""Which random process made this graph? Erdős-Rényi (class 0), Watts-Strogatz (1) or Barabási-Albert (2).

The recipe of HGNN (Liu et al. 2019): graphs of 200 to 499 nodes; Erdős-Rényi joins pairs with a probability from
U(0.01, 1); Watts-Strogatz starts with 1 to 199 neighbors and rewires with a probability from U(0.01, 1);
Barabási-Albert adds 1 to 199 edges a node. The features are the one-hot degree up to 1,000: 1,001 columns, the last for
1,000 and above. Of each kind a third trains, a third validates, a third tests.

Generated on first use and kept on disk: all upper triangles as bits in one file, which is mapped, and a small one with
sizes, classes, parameters and the checksum of the large one. The small one is written last, and without it the large
one does not count.
"""

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

from h2hgcn.datasets.named.collection import GraphCollection
from h2hgcn.datasets.named.download import sha256_of
from h2hgcn.datasets.named.random_graphs import (
    barabasi_albert,
    erdos_renyi,
    pack_triangle,
    unpack_edges,
    watts_strogatz,
)  # fmt: skip
from h2hgcn.files import atomic_write
from h2hgcn.jit import random_below, random_state, random_uniform

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
