"""Batches of a large graph: how large they are, and who prepares them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.sampled_adjacency import SampledAdjacency, sample_adjacency

Prepared = TypeVar("Prepared")


@dataclass(frozen=True)
class Sampling:
    """``batch_size`` links or nodes a step; ``fanout[h]`` neighbours at hop ``h``; ``workers`` threads that prepare
    batches ahead, none of which changes what they are. Of several processes, the one with this ``rank`` takes its part
    of each batch.
    """

    batch_size: int
    fanout: tuple[int, ...]
    workers: int = 0
    rank: int = 0
    ranks: int = 1

    @property
    def mine(self) -> slice:
        """Which items of a batch fall to this process."""
        return slice(self.rank, None, self.ranks)

    def shares(self, count: int, random: np.random.RandomState) -> Iterator[tuple[NDArray[np.int64], int]]:
        """All of ``count`` items in a random order, batch by batch, each with a seed of its own."""
        order = random.permutation(count)
        bounds = [*range(0, count, self.batch_size), count]
        if len(bounds) > 2 and bounds[-1] - bounds[-2] < self.ranks:  # each process needs something
            del bounds[-2]
        for first, last in pairwise(bounds):
            yield order[first:last], int(random.randint(0, 2**63 - 1, dtype=np.int64))

    def neighborhoods(
        self, graph: Adjacency, nodes: NDArray[np.int64], seed: int
    ) -> tuple[SampledAdjacency, NDArray[np.int64]]:
        """The sampled neighbourhoods of ``nodes``, which may repeat, and the row of each.

        What is drawn for a node does not depend on the others, so each process draws for its own alone.
        """
        named = np.zeros(graph.num_nodes, dtype=bool)
        named[nodes] = True
        seeds = np.flatnonzero(named)
        number_of = np.empty(graph.num_nodes, np.int64)
        number_of[seeds] = np.arange(len(seeds))
        return sample_adjacency(graph, seeds, self.fanout, seed), number_of[nodes]

    def prepared(self, jobs: Iterable[Callable[[], Prepared]]) -> Iterator[Prepared]:
        """What the jobs return, in their order; with workers, two jobs each are begun ahead."""
        if not self.workers:
            yield from (job() for job in jobs)
            return
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="h2hgcn-batches")
        waiting: deque[Future[Any]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def batch_random(seed: int) -> np.random.RandomState:
    """What a batch draws with, whoever prepares it."""
    return np.random.RandomState(np.random.SeedSequence(seed).generate_state(4))
