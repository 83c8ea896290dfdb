"""Many graphs as one block-diagonal adjacency, prepared once, of which batches take blocks."""

import torch
from torch import Tensor

from h2hgcn.layers.adjacency import Adjacency


class BlockDiagonal:
    """Graphs side by side: the nodes of graph ``k`` are the rows ``bounds[k]`` to ``bounds[k + 1]``."""

    def __init__(self, adjacency: Adjacency, bounds: Tensor) -> None:
        self.adjacency = adjacency
        self.bounds = bounds
        self.lengths = adjacency.crow.diff()
        self.transpose_lengths = adjacency.transpose_crow.diff()

    def take(self, graphs: Tensor) -> tuple[Adjacency, Tensor, Tensor]:
        """The adjacency of some graphs, in this order; the rows of their nodes; and the graph of each node."""
        whole = self.adjacency
        first, last = self.bounds[graphs], self.bounds[graphs + 1]
        counts = last - first
        nodes, shift = _ranges(first, counts)
        # a block has as many entries as its transpose, so both begin at the same place
        first_entry = whole.crow[first].long()
        entry_counts = whole.crow[last].long() - first_entry
        entries, entry_shift = _ranges(first_entry, entry_counts)
        node_shift = shift.repeat_interleave(entry_counts).int()
        adjacency = Adjacency(
            _pointers(self.lengths[nodes]), whole.col[entries] + node_shift, whole.weights[entries],
            _pointers(self.transpose_lengths[nodes]), whole.transpose_col[entries] + node_shift,
            whole.transpose_order[entries] + entry_shift.repeat_interleave(entry_counts).int(),
        )  # fmt: skip
        return adjacency, nodes, torch.arange(len(graphs)).repeat_interleave(counts)


def _ranges(first: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of all ranges, one after the other, and how far each range moves by that."""
    shift = counts.cumsum(0) - counts - first
    return torch.arange(int(counts.sum())) - shift.repeat_interleave(counts), shift


def _pointers(lengths: Tensor) -> Tensor:
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0, dtype=lengths.dtype)])
