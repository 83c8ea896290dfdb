"""Our sampling behind PyG's interface, for ``NodeLoader`` and ``LinkLoader``."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from h2hgcn.layers.adjacency import Adjacency, check_neighbor_weights
from h2hgcn.layers.neighbor_sampling import sample_neighbors
from h2hgcn.layers.sampled_adjacency import sampled_arrays


class AdjacencySampler(BaseSampler):  # type: ignore[misc]  # PyG is not annotated
    """Samples neighbourhoods of an adjacency without replacement.

    The loader's ``Data`` has the edges ``adjacency.edges(self_loops=False)[0]``, in this order, and ``weigh`` for its
    transform, after which ``H2HConv(..., neighbor_weights="uniform")`` takes ``batch.edge_index`` and
    ``batch.edge_weight``.

    Args:
        adjacency: What ``prepare_adjacency`` returned, on the CPU.
        fanout: Neighbours at each hop; -1 takes all.
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
        sample = sample_neighbors(*arrays, seeds.numpy(), self.fanout, self._next_seed(), once=True)
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

    def _next_seed(self) -> int:
        worker = torch.utils.data.get_worker_info()
        number = 0 if worker is None else worker.seed
        return (self.seed * 1_000_003 + number) * 2**32 % 2**62 + next(self._calls)
