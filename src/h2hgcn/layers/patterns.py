"""Undirected graphs without weights, of which the pattern of their entries is enough: a tenth of the memory.

Such a graph is its own transpose, and its weights follow from the degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.compiled import compiled, run_on_rows
from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.sparse import SparseMatrix, transpose_pattern


@dataclass(frozen=True, eq=False)
class Pattern:
    """The row pointers and columns of one graph, self-loops included, the columns in as few bytes as they need."""

    crow: NDArray[np.int32]
    col: NDArray[np.integer[Any]]

    @property
    def num_bytes(self) -> int:
        return self.crow.nbytes + self.col.nbytes


def pattern_of(adjacency: Adjacency) -> Pattern | None:
    """The pattern of a graph on the CPU that is undirected and has no weights; None of others."""
    same_transpose = adjacency.crow.equal(adjacency.transpose_crow) and adjacency.col.equal(adjacency.transpose_col)
    if not same_transpose or not adjacency.unweighted:
        return None
    narrow = np.uint16 if adjacency.num_nodes <= 1 << 16 else np.int32
    return Pattern(adjacency.crow.numpy(), adjacency.col.numpy().astype(narrow))


class PatternAdjacency(Adjacency):
    """An adjacency that makes its weights when somebody asks for them."""

    def __init__(self, crow: Tensor, col: Tensor) -> None:
        vars(self).update(crow=crow, col=col, transpose_crow=crow, transpose_col=col, _matrices={}, _edges={})

    def to(self, device: torch.device | str) -> Adjacency:
        if torch.device(device) == self.device:
            return self
        return Adjacency(
            self.crow, self.col, self.weights, self.transpose_crow, self.transpose_col, self.transpose_order
        ).to(device)

    @cached_property
    def weights(self) -> Tensor:
        return torch.ones(len(self.col), dtype=torch.float64)

    @cached_property
    def transpose_order(self) -> Tensor:
        return transpose_pattern(self.crow, self.col)[2]

    @cached_property
    def unweighted(self) -> bool:
        return True

    def kept_matrix(self, kind: str, dtype: torch.dtype) -> SparseMatrix:
        if kind not in ("symmetric", "uniform", "gcn"):
            return super().kept_matrix(kind, dtype)
        if (kind, dtype) not in self._matrices:
            with torch.inference_mode(False):
                self._matrices[kind, dtype] = self._product_matrix(kind, dtype)
        return self._matrices[kind, dtype]

    def _product_matrix(self, kind: str, dtype: torch.dtype) -> SparseMatrix:
        """Every weight is a number of its row times one of its column."""
        degrees = self.crow.diff().to(dtype)
        if kind == "uniform":
            of_row, of_column = 1 / degrees, torch.ones_like(degrees)
        else:
            of_row = of_column = 1 / degrees.sqrt()
        if kind == "symmetric":
            of_row = torch.empty_like(degrees)
            self._run(_invert_sums, of_column, of_row)
        values, transposed = degrees.new_empty(len(self.col)), degrees.new_empty(len(self.col))
        self._run(_multiply, of_row, of_column, values)
        self._run(_multiply, of_column, of_row, transposed)
        return SparseMatrix(self.crow, self.col, values, self.crow, self.col, transposed)

    def _run(self, loop: Callable[..., None], *arguments: Tensor) -> None:
        shape = (self.num_nodes, 1 + len(self.col) // max(self.num_nodes, 1))
        run_on_rows(loop, shape, *(part.numpy() for part in (self.crow, self.col, *arguments)))


def joined_patterns(patterns: Sequence[Pattern]) -> tuple[PatternAdjacency, Tensor]:
    """Graphs side by side, and the graph of each node."""
    sizes = np.array([len(pattern.crow) - 1 for pattern in patterns])
    lengths = np.array([len(pattern.col) for pattern in patterns])
    crow, col = np.zeros(sizes.sum() + 1, np.int32), np.empty(lengths.sum(), np.int32)
    node = entry = 0
    for pattern, size, length in zip(patterns, sizes, lengths, strict=True):
        np.add(pattern.crow[1:], entry, out=crow[node + 1 : node + size + 1], casting="unsafe")
        np.add(pattern.col, node, out=col[entry : entry + length], casting="unsafe")
        node, entry = node + size, entry + length
    graph_of_node = torch.arange(len(patterns)).repeat_interleave(torch.from_numpy(sizes))
    return PatternAdjacency(torch.from_numpy(crow), torch.from_numpy(col)), graph_of_node


@compiled
def _invert_sums(first: int, last: int, crow: Any, col: Any, of_column: Any, inverses: Any) -> None:
    for row in range(first, last):
        total = 0.0
        for entry in range(crow[row], crow[row + 1]):
            total += of_column[col[entry]]
        inverses[row] = 1 / total


@compiled
def _multiply(first: int, last: int, crow: Any, col: Any, of_row: Any, of_column: Any, values: Any) -> None:
    for row in range(first, last):
        for entry in range(crow[row], crow[row + 1]):
            values[entry] = of_row[row] * of_column[col[entry]]
