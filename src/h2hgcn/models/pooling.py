"""What encoders of whole graphs have in common: the graphs of a batch go in, one vector for each comes out."""

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.nn import BatchNorm

from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.features import is_sparse
from h2hgcn.layers.remembered import adjacency_of
from h2hgcn.layers.spaces import Space
from h2hgcn.models.pretrained import Pretrained


class PoolingEncoder(Pretrained):
    """An encoder that gives one Euclidean vector ``(num_graphs, dim)`` for each graph of a batch."""

    tasks: ClassVar[tuple[str, ...]] = ("gc",)
    pools: ClassVar[bool] = True
    space: Space = "euclidean"
    in_features: int

    def forward(
        self,
        x: Any,
        edge_index: Any,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Vectors ``(num_graphs, dim)`` of graphs whose nodes have the features ``x (n, in_features)``.

        ``batch`` holds the graph of each node, in rising order; without it, all nodes are of one graph.
        """
        self._check_features(x)
        adjacency = adjacency_of(edge_index, edge_weight, x.shape[0])
        if batch is None:
            batch = torch.zeros(x.shape[0], dtype=torch.long, device=adjacency.device)
        if num_graphs is None:
            num_graphs = int(batch.max()) + 1 if len(batch) else 1
        return self.pooled(x, adjacency, batch, num_graphs)

    @abstractmethod
    def pooled(self, x: Any, adjacency: Adjacency, batch: Tensor, num_graphs: int) -> Tensor:
        """``forward``, all arguments being there and checked."""

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.config.items())

    def _check_features(self, x: Any) -> None:
        if not isinstance(x, Tensor) and not is_sparse(x):
            raise ValueError(f"x is a {type(x).__name__}; pass a tensor, or a sparse matrix of torch or SciPy")
        shape = tuple(x.shape)
        if len(shape) != 2 or shape[1] != self.in_features:
            raise ValueError(
                f"x has shape {shape}, but the encoder was made for {self.in_features} features; pass one row of "
                f"{self.in_features} numbers for each node, or make an encoder with in_features={shape[-1]}"
            )


def batch_norm(width: int) -> BatchNorm:
    """Batch norm that takes a batch of one row, too: with the running mean and variance, as in evaluation."""
    return BatchNorm(width, allow_single_element=True)


def check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name}={count} must be at least 1")


def check_shares(**shares: float) -> None:
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise ValueError(f"{name}={share} must be 0 or more, and below 1")


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is not known; use one of {known}")
