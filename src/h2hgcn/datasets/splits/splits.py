"""Splits of edges and nodes, as small frozen objects that know how they were made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.datasets.splits.pairs import Pairs, PairSpace
from h2hgcn.errors import DataError

Protocol = Literal["clean", "legacy"]
NodeProtocol = Literal["clean", "legacy", "planetoid", "given"]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EdgeSplit:
    """Pairs of nodes (NumPy arrays ``(k, 2)``) to train, validate and test on, and as many pairs without an edge to
    validate and test against.

    The graph that an encoder may see is made of ``train`` alone: ``train_edge_index`` and ``train_edge_weight``, as
    PyG wants them. Negatives to train with are not part of a split, but drawn afresh: ``draw_negatives``.
    """

    train: Pairs
    val: Pairs
    test: Pairs
    val_neg: Pairs
    test_neg: Pairs
    num_nodes: int
    seed: int
    protocol: Protocol
    directed: bool = False
    train_weights: NDArray[np.float32] | None = None

    def train_edge_weight(self) -> Tensor | None:
        """The weights of ``train_edge_index``, if the graph has any."""
        if self.train_weights is None:
            return None
        weights = torch.from_numpy(self.train_weights)
        if self.directed:
            return weights
        return torch.cat([weights, weights[torch.from_numpy(self.train[:, 0] != self.train[:, 1])]])

    def train_edge_index(self) -> Tensor:
        """The training graph as PyG wants it, both directions of undirected edges."""
        edges = torch.from_numpy(self.train.T.copy())
        if self.directed:
            return edges
        return torch.cat([edges, edges[:, edges[0] != edges[1]].flip(0)], dim=1)

    def answerable(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Whether both nodes of each pair have an edge in the training graph, in either direction.

        Of a pair with a node that has none, the training graph says nothing; only features can.
        """
        linked = np.zeros(self.num_nodes, dtype=bool)
        linked[self.train[self.train[:, 0] != self.train[:, 1]]] = True
        return linked[pairs[:, 0]] & linked[pairs[:, 1]]

    def table(self) -> dict[str, NDArray[Any]]:
        """Pairs as columns ``source``, ``target``, ``split`` and ``label``, which is 0 for pairs without an edge."""
        kinds = ("train", "val", "val_neg", "test", "test_neg")
        pairs = np.concatenate([getattr(self, kind) for kind in kinds])
        sizes = [len(getattr(self, kind)) for kind in kinds]
        parts = np.repeat([kind.removesuffix("_neg") for kind in kinds], sizes)
        labels = np.repeat([0 if kind.endswith("_neg") else 1 for kind in kinds], sizes)
        return {"source": pairs[:, 0], "target": pairs[:, 1], "split": parts, "label": labels}

    @property
    def space(self) -> PairSpace:
        """The pairs that negatives are drawn from."""
        return PairSpace(self.num_nodes, self.directed, with_self=self.protocol == "legacy")

    def __repr__(self) -> str:
        return _summary(self, ("train", "val", "test", "val_neg", "test_neg"))


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Indices of nodes to train, validate and test on."""

    train: Indices
    val: Indices
    test: Indices
    seed: int
    protocol: NodeProtocol

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns ``node`` and ``split``."""
        return _table(self, "node")

    def __repr__(self) -> str:
        return _summary(self, ("train", "val", "test"))


@dataclass(frozen=True, eq=False)
class GraphSplit:
    """Indices of graphs to train, validate and test on: one fold."""

    train: Indices
    val: Indices
    test: Indices
    seed: int
    protocol: Literal["clean", "fair-comparison"]

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns ``graph`` and ``split``."""
        return _table(self, "graph")

    def __repr__(self) -> str:
        return _summary(self, ("train", "val", "test"))


def check_protocol(protocol: str, known: tuple[str, ...] = get_args(Protocol)) -> None:
    if protocol not in known:
        raise DataError(f"protocol={protocol!r} is not known; use one of {', '.join(map(repr, known))}")


def check_fractions(val: float, test: float) -> None:
    if not (0 <= val < 1 and 0 <= test < 1 and val + test < 1):
        raise DataError(f"val={val} and test={test} must be shares of the whole that leave something to train on")


def check_seed(seed: int) -> None:
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise DataError(f"seed={seed!r} must be an integer between 0 and {2**32 - 1}")


def _table(split: NodeSplit | GraphSplit, item: str) -> dict[str, NDArray[Any]]:
    parts = {part: getattr(split, part) for part in ("train", "val", "test")}
    return {
        item: np.concatenate(list(parts.values())),
        "split": np.repeat(list(parts), [len(members) for members in parts.values()]),
    }


def _summary(split: Any, arrays: tuple[str, ...]) -> str:
    sizes = ", ".join(f"{name}={len(getattr(split, name))}" for name in arrays)
    others = [f.name for f in fields(split) if f.name not in (*arrays, "train_weights")]
    rest = ", ".join(f"{name}={getattr(split, name)!r}" for name in others)
    return f"{type(split).__name__}({sizes}; {rest})"
