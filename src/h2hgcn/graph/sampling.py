"""Sampled neighborhoods of a graph, for our tasks and for PyG's loaders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.sampler import BaseSampler, EdgeSamplerInput, NegativeSampling, NodeSamplerInput, SamplerOutput
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from h2hgcn.graph.adjacency import Adjacency, Kind, NeighborWeights, check_neighbor_weights
from h2hgcn.kernels.csr import divided_by_row_sums
from h2hgcn.kernels.sampling import Sample, sample_neighbors


class SampledAdjacency(Adjacency):
    """Rows of an adjacency with a part of their neighbors, as drawn at a hop; ``layer_graphs`` has those of all hops.

    Weights are those of the ``whole``, by its degrees, times ``scale``: their sums over what was drawn are unbiased
    estimates of the sums over all neighbors. Nodes that were reached by the last hop have their self-loop alone.
    """

    def __init__(self, whole: Adjacency, sample: Sample, hop: int) -> None:
        block, rim = sample.blocks[hop], np.arange(sample.sizes[hop], sample.sizes[hop + 1], dtype=np.int32)
        loops = whole.loop_entries.numpy()[sample.nodes[sample.sizes[hop] : sample.sizes[hop + 1]]]
        after = block.crow[-1] + np.arange(1, len(rim) + 1, dtype=np.int32)
        crow, col = np.concatenate([block.crow, after]), np.concatenate([block.col, rim])
        super().__init__(torch.from_numpy(crow), torch.from_numpy(col))
        self.whole = whole
        self.sample = sample
        self.entries = np.concatenate([block.entries, loops])
        self.scale = torch.from_numpy(np.concatenate([block.scale, np.ones(len(rim), np.float32)]))

    @cached_property
    def _default_weights(self) -> Tensor:
        scale = self.scale.to(torch.float64)
        return scale if self.whole.unweighted else self._drawn(self.whole.weights) * scale

    @property
    def nodes(self) -> Tensor:
        """The nodes that the rows stand for, the seeds first: those of the graph as it was given, if ``whole`` is
        reordered.
        """
        rows = torch.from_numpy(self.sample.nodes[: self.num_nodes])
        return rows if self.whole.nodes is None else self.whole.nodes[rows]

    def layer_graphs(self, count: int) -> list[Adjacency]:
        """What each of ``count`` layers needs: the fewer layers come after it, the fewer hops."""
        last = len(self.sample.blocks) - 1
        return [
            self if hop >= last else SampledAdjacency(self.whole, self.sample, hop).to(self.device)
            for hop in reversed(range(count))
        ]

    def unbiased(self, kind: Kind, dtype: torch.dtype) -> Tensor:
        """Weights of the whole, times ``scale``."""
        return self._drawn(self.whole.matrix(kind, dtype).values).mul_(self.scale)

    def values(self, kind: Kind, dtype: torch.dtype) -> Tensor:
        """``unbiased`` weights; those of midpoints are divided by their sum, to which a midpoint is indifferent, but
        the bound under its root is not.
        """
        values = self.unbiased(kind, dtype)
        return divided_by_row_sums(self.crow, values) if kind in get_args(NeighborWeights) else values

    def _drawn(self, values: Tensor) -> Tensor:
        """Those of the whole's entries that were drawn."""
        return values.index_select(0, torch.from_numpy(self.entries)).to(self.device)


def sample_adjacency(whole: Adjacency, seeds: Any, fanout: Sequence[int], seed: int) -> SampledAdjacency:
    """The neighborhoods of some nodes within ``len(fanout)`` hops, ``fanout[h]`` neighbors a node at hop ``h``, or
    all of them for -1.

    ``whole`` is on the CPU; ``seeds`` are different nodes, the first of the result's.
    """
    sample = sample_neighbors(*sampled_arrays(whole), np.asarray(seeds, np.int64), fanout, seed)
    return SampledAdjacency(whole, sample, len(fanout) - 1)


def sampled_arrays(whole: Adjacency) -> tuple[Any, Any, Any]:
    """What ``sample_neighbors`` draws from: rows, columns and self-loops."""
    return whole.crow.numpy(), whole.col.numpy(), whole.loop_entries.numpy()


class AdjacencySampler(BaseSampler):  # type: ignore[misc]  # PyG is not annotated
    """Samples neighborhoods of an adjacency without replacement.

    The loader's ``Data`` has the edges ``adjacency.edges(self_loops=False)[0]``, in this order, and ``weigh`` for its
    transform, after which ``H2HConv(..., neighbor_weights="uniform")`` takes ``batch.edge_index`` and
    ``batch.edge_weight``.

    Args:
        adjacency: What ``prepare_adjacency`` returned, on the CPU.
        fanout: Neighbors at each hop; -1 takes all.
        neighbor_weights: Of the whole graph, see ``H2HConv``.
        seed: Draws differ from call to call; a new sampler with the same seed draws the same. Each worker of a loader
            draws by its own seed, too.
    """

    def __init__(
        self, adjacency: Adjacency, fanout: Sequence[int], neighbor_weights: str = "symmetric", seed: int = 0
    ) -> None:
        self.adjacency = adjacency
        self.fanout = list(fanout)
        self.seed = seed
        self._calls = itertools.count()
        is_loop = torch.zeros(len(adjacency.col), dtype=torch.bool)
        is_loop[adjacency.loop_entries] = True
        self._edge_number = (~is_loop).cumsum(0) - 1
        self._values = adjacency.matrix(check_neighbor_weights(neighbor_weights), torch.float32).values
        self._edge_values, self._loop_values = self._values[~is_loop], self._values[adjacency.loop_entries]
        self._degrees = adjacency.crow.diff() - 1

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        return node_sample(index, self._sample)

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None) -> SamplerOutput:
        return edge_sample(index, self._sample, self.adjacency.num_nodes, False, None, neg_sampling)

    def weigh(self, batch: Data) -> Data:
        """Adds self-loops to a batch, and weights by which sums over it are unbiased for those over the whole graph.

        Serves batches of PyG's own ``NeighborLoader``, too, which samples by pyg-lib where that is installed.
        """
        receivers, count = batch.edge_index[1], batch.num_nodes
        drawn = torch.bincount(receivers, minlength=count)
        scale = self._degrees[batch.n_id] / drawn.clamp_min(1)
        weights = self._edge_values[batch.e_id] * scale[receivers]
        nodes = torch.arange(count)
        batch.edge_index = torch.cat([batch.edge_index, nodes.expand(2, -1)], dim=1)
        batch.edge_weight = torch.cat([weights, self._loop_values[batch.n_id]])
        return batch

    def _sample(self, seeds: Tensor, *_: Any) -> SamplerOutput:
        arrays = sampled_arrays(self.adjacency)
        worker = torch.utils.data.get_worker_info()
        stream = self.seed * 1_000_003 + (0 if worker is None else worker.seed)
        seed = stream * 2**32 % 2**62 + next(self._calls)
        sample = sample_neighbors(*arrays, seeds.numpy(), self.fanout, seed, once=True)
        counts, senders, entries = (
            torch.from_numpy(np.concatenate(parts))
            for parts in zip(*((np.diff(block.crow), block.col, block.entries) for block in sample.blocks), strict=True)
        )
        receivers = torch.repeat_interleave(counts)
        kept = receivers != senders
        return SamplerOutput(
            node=torch.from_numpy(sample.nodes), row=senders[kept].long(), col=receivers[kept],
            edge=self._edge_number[entries[kept]], batch=None,
            num_sampled_nodes=[size - before for before, size in itertools.pairwise([0, *sample.sizes])],
            num_sampled_edges=None,
        )  # fmt: skip
