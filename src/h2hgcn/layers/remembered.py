"""Adjacencies of ``edge_index`` tensors, remembered."""

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.utils import is_torch_sparse_tensor

from h2hgcn.layers.adjacency import Adjacency, prepare_adjacency, reused


def adjacency_of(edge_index: Any, edge_weight: Tensor | None, num_nodes: int) -> Adjacency:
    """``prepare_adjacency``, remembered for as long as the ``edge_index`` tensor lives and is not changed."""
    if isinstance(edge_index, Adjacency):
        return reused(edge_index, edge_weight, num_nodes)
    return _remembered_adjacency(edge_index, edge_weight, num_nodes)


@torch.compiler.disable  # type: ignore[untyped-decorator]  # sorting a graph is not for a compiled graph
def _remembered_adjacency(edge_index: Any, edge_weight: Tensor | None, num_nodes: int) -> Adjacency:
    if not _can_be_remembered(edge_index, edge_weight):
        return prepare_adjacency(edge_index, edge_weight, num_nodes)
    known = _remembered.get(edge_index)
    if known is None or not known.fits(edge_index, edge_weight, num_nodes):
        with torch.inference_mode(False):  # what is kept must serve training, too
            adjacency = prepare_adjacency(edge_index, edge_weight, num_nodes)
        weight = None if edge_weight is None else (weakref.ref(edge_weight), edge_weight._version)
        known = _Remembered(adjacency, edge_index._version, weight)
        _remembered[edge_index] = known
    return known.adjacency


class _Remembered(NamedTuple):
    adjacency: Adjacency
    edge_version: int
    weight: tuple[weakref.ref[Tensor], int] | None

    def fits(self, edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> bool:
        if edge_weight is None or self.weight is None:
            same_weight = edge_weight is None and self.weight is None
        else:
            same_weight = self.weight[0]() is edge_weight and self.weight[1] == edge_weight._version
        return same_weight and self.edge_version == edge_index._version and self.adjacency.num_nodes == num_nodes


_remembered: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _can_be_remembered(edge_index: Any, edge_weight: Tensor | None) -> bool:
    tensors = [edge_index] if edge_weight is None else [edge_index, edge_weight]
    return all(
        isinstance(tensor, Tensor)
        and not is_torch_sparse_tensor(tensor)
        and not tensor.is_inference()
        and not tensor.requires_grad
        for tensor in tensors
    )
