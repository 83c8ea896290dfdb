"""A part of a graph, drawn at random, that aggregates as the whole does in the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from h2hgcn.layers.adjacency import Adjacency, NeighborWeights
from h2hgcn.layers.neighbor_sampling import Sample, restricted, sample_neighbors
from h2hgcn.layers.sparse import transpose_pattern


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class SampledAdjacency(Adjacency):
    """Rows of an adjacency with a part of their neighbours. Weights are those of the ``whole``, by its degrees, times
    ``scale``: their sums over what was drawn are unbiased estimates of the sums over all neighbours.

    Nodes that were reached by the last hop have their self-loop alone.
    """

    whole: Adjacency
    entries: Tensor
    scale: Tensor
    sample: Sample

    def to(self, device: torch.device | str) -> Adjacency:
        if torch.device(device) == self.device:
            return self
        return _of_sample(self.whole, self.sample, len(self.sample.sizes) - 1, torch.device(device))

    @property
    def nodes(self) -> Tensor:
        """The nodes of the whole graph that the rows stand for, the seeds first."""
        return torch.from_numpy(self.sample.nodes[: self.num_nodes])

    def steps(self, count: int) -> list[Adjacency]:
        """The part that each of ``count`` layers needs: a layer less lies between it and the seeds, so a hop less."""
        hops = len(self.sample.sizes) - 1
        wanted = [max(1, min(hops, count - layer)) for layer in range(count)]
        parts = {hops: self, **{k: _of_sample(self.whole, self.sample, k, self.device) for k in {*wanted} - {hops}}}
        return [parts[k] for k in wanted]

    def unbiased(self, kind: str, dtype: torch.dtype) -> Tensor:
        """Weights of the whole, times ``scale``."""
        values = self.whole.kept_matrix(kind, dtype).values
        return values.index_select(0, self.entries).to(self.device) * self.scale.to(dtype)

    def values(self, kind: str, dtype: torch.dtype) -> Tensor:
        """``unbiased`` weights; those of midpoints are divided by their sum, to which a midpoint is indifferent, but
        the bound under its root is not.
        """
        values = self.unbiased(kind, dtype)
        if kind not in get_args(NeighborWeights):
            return values
        return values / self._row_sums(values).repeat_interleave(self.crow.diff())


def sample_adjacency(
    whole: Adjacency, seeds: Any, fanout: Sequence[int], seed: int, only: Any = None
) -> SampledAdjacency:
    """The neighbourhoods of some nodes within ``len(fanout)`` hops, ``fanout[h]`` neighbours a node at hop ``h``, or
    all of them for -1.

    ``whole`` is on the CPU; ``seeds`` are different nodes, the first of the result's. With ``only``, sorted numbers of
    seeds, the result is what these depend on.
    """
    crow, col, loops = (part.numpy() for part in (whole.crow, whole.col, whole.loop_entries))
    sample = sample_neighbors(crow, col, loops, np.asarray(seeds, np.int64), fanout, seed)
    if only is not None:
        sample = restricted(sample, np.asarray(only, np.int64))
    return _of_sample(whole, sample, len(fanout), whole.device)


def _of_sample(whole: Adjacency, sample: Sample, hops: int, device: torch.device) -> SampledAdjacency:
    """The rows of all nodes within ``hops``; those of the last hop are self-loops."""
    rows, size = sample.sizes[hops - 1], sample.sizes[hops]
    used, rim = int(sample.crow[rows]), np.arange(rows, size)
    loops = whole.loop_entries.numpy()[sample.nodes[rows:size]]
    crow = torch.from_numpy(np.concatenate([sample.crow[: rows + 1], used + 1 + rim - rows]).astype(np.int32))
    col = torch.from_numpy(np.concatenate([sample.col[:used], rim]).astype(np.int32))
    entries = torch.from_numpy(np.concatenate([sample.entries[:used], loops]))
    scale = torch.from_numpy(np.concatenate([sample.scale[:used], np.ones(len(rim), np.float32)]))
    pattern = transpose_pattern(crow, col)
    transpose_crow, transpose_col, order = (part.to(device) for part in pattern)
    return SampledAdjacency(
        crow.to(device), col.to(device), (whole.weights[entries] * scale).to(device),
        transpose_crow, transpose_col, order, whole=whole, entries=entries, scale=scale.to(device), sample=sample,
    )  # fmt: skip
