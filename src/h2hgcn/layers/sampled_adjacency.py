"""A part of a graph, drawn at random, that aggregates as the whole does in the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from h2hgcn.layers.adjacency import Adjacency, NeighborWeights
from h2hgcn.layers.neighbor_sampling import Sample, sample_neighbors
from h2hgcn.layers.renumbered import RenumberedAdjacency
from h2hgcn.layers.sparse import divide_by_row_sums, transpose_pattern


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class SampledAdjacency(Adjacency):
    """Rows of an adjacency with a part of their neighbours, as drawn at the last hop; ``steps`` has those of all hops.

    Weights are those of the ``whole``, by its degrees, times ``scale``: their sums over what was drawn are unbiased
    estimates of the sums over all neighbours. Nodes that were reached by the last hop have their self-loop alone.
    """

    whole: Adjacency
    entries: Tensor
    scale: Tensor
    sample: Sample

    def to(self, device: torch.device | str) -> Adjacency:
        if torch.device(device) == self.device:
            return self
        return _of_hop(self.whole, self.sample, len(self.sample.blocks) - 1, torch.device(device))

    @property
    def nodes(self) -> Tensor:
        """The nodes that the rows stand for, the seeds first: those of the graph as it was given, if ``whole`` is
        renumbered.
        """
        rows = torch.from_numpy(self.sample.nodes[: self.num_nodes])
        return self.whole.nodes[rows] if isinstance(self.whole, RenumberedAdjacency) else rows

    def steps(self, count: int) -> list[Adjacency]:
        """What each of ``count`` layers needs: the fewer layers come after it, the fewer hops."""
        last = len(self.sample.blocks) - 1
        return [
            self if hop >= last else _of_hop(self.whole, self.sample, hop, self.device)
            for hop in reversed(range(count))
        ]

    def unbiased(self, kind: str, dtype: torch.dtype) -> Tensor:
        """Weights of the whole, times ``scale``."""
        values = self.whole.kept_matrix(kind, dtype).values
        return values.index_select(0, self.entries).to(self.device).mul_(self.scale)

    def values(self, kind: str, dtype: torch.dtype) -> Tensor:
        """``unbiased`` weights; those of midpoints are divided by their sum, to which a midpoint is indifferent, but
        the bound under its root is not.
        """
        values = self.unbiased(kind, dtype)
        if kind not in get_args(NeighborWeights):
            return values
        if values.is_cpu:
            return divide_by_row_sums(self.crow, values)
        return values / self._row_sums(values).repeat_interleave(self.crow.diff())


def sample_adjacency(whole: Adjacency, seeds: Any, fanout: Sequence[int], seed: int) -> SampledAdjacency:
    """The neighbourhoods of some nodes within ``len(fanout)`` hops, ``fanout[h]`` neighbours a node at hop ``h``, or
    all of them for -1.

    ``whole`` is on the CPU; ``seeds`` are different nodes, the first of the result's.
    """
    sample = sample_neighbors(*sampled_arrays(whole), np.asarray(seeds, np.int64), fanout, seed)
    return _of_hop(whole, sample, len(fanout) - 1, whole.device)


def sampled_arrays(whole: Adjacency) -> tuple[Any, Any, Any]:
    """What ``sample_neighbors`` draws from: rows, columns and self-loops."""
    return whole.crow.numpy(), whole.col.numpy(), whole.loop_entries.numpy()


def _of_hop(whole: Adjacency, sample: Sample, hop: int, device: torch.device) -> SampledAdjacency:
    """The rows drawn at a hop, and self-loops of the nodes that they reached."""
    block, rim = sample.blocks[hop], np.arange(sample.sizes[hop], sample.sizes[hop + 1], dtype=np.int32)
    loops = whole.loop_entries.numpy()[sample.nodes[sample.sizes[hop] : sample.sizes[hop + 1]]]
    after = block.crow[-1] + np.arange(1, len(rim) + 1, dtype=np.int32)
    crow = torch.from_numpy(np.concatenate([block.crow, after]))
    col = torch.from_numpy(np.concatenate([block.col, rim]))
    entries = torch.from_numpy(np.concatenate([block.entries, loops]))
    scale = torch.from_numpy(np.concatenate([block.scale, np.ones(len(rim), np.float32)]))
    transpose_crow, transpose_col, order = (part.to(device) for part in transpose_pattern(crow, col))
    weights = scale.to(whole.weights.dtype)
    if not whole.unweighted:
        weights = whole.weights.index_select(0, entries) * weights
    return SampledAdjacency(
        crow.to(device), col.to(device), weights.to(device),
        transpose_crow, transpose_col, order, whole=whole, entries=entries, scale=scale.to(device), sample=sample,
    )  # fmt: skip
