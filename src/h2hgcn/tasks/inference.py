"""Predictions of a trained model, also on graphs that it has not seen."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from h2hgcn.datasets import DataError
from h2hgcn.graph.adjacency import Adjacency
from h2hgcn.layers import prepare_adjacency
from h2hgcn.tasks.base import Model, ScaledFeatures, all_points, check_edges, edge_weight_of, listed, node_features
from h2hgcn.tasks.baselines import as_matrix
from h2hgcn.tasks.graphs import GraphBatch, batch_of, essence, graph_logits, graph_points
from h2hgcn.tasks.heads import ClassHead, LinkHead, NodeHead
from h2hgcn.tasks.neighborhoods import Neighborhoods


@torch.no_grad()
def encode_nodes(model: Model, data: Any, task_name: str, in_features: int, nodes: Tensor | None = None) -> Tensor:
    """Points of all nodes of a graph, known or new; all of its edges carry messages. For ``nodes`` see ``encoded``."""
    return all_points(model, *encoder_inputs(model, data, task_name, in_features), nodes)


def encoder_inputs(model: Model, data: Any, task_name: str, in_features: int) -> tuple[ScaledFeatures, Adjacency]:
    """The features and the edges of a graph, known or new, where the model is."""
    check_edges(data)
    x = node_features(data, task_name, data.edge_index)
    if x.shape[1] != in_features:
        names = getattr(data, "feature_names", None)
        given = f": {listed(names)}" if names else ""
        raise DataError(
            f"the graph has {x.shape[1]} features a node{given}; the model was trained with {in_features}; "
            "give the same columns in the same order"
        )
    device = next(model.parameters()).device
    adjacency = prepare_adjacency(data.edge_index, edge_weight_of(data), data.num_nodes)
    return ScaledFeatures(x).to(device), adjacency.to(device)


@torch.no_grad()
def link_probabilities(model: Model, points: Tensor, pairs: Tensor, data: Any) -> Tensor:
    """The probability of a link for each pair ``(k, 2)`` of rows of ``points``, nodes of a graph."""
    head = model.head
    assert isinstance(head, LinkHead)

    def neighborhoods() -> Neighborhoods:
        return Neighborhoods(data.edge_index.T.cpu().numpy(), len(points), head.directed)

    return head.probabilities(head.logits_in(neighborhoods, points, pairs.to(points.device), model.distance_scale))


@torch.no_grad()
def class_probabilities(model: Model, points: Tensor, nodes: Tensor, data: Any) -> Tensor:
    """The probabilities of the classes for some rows of ``points``, nodes of a graph."""
    head = model.head
    assert isinstance(head, NodeHead)

    def x() -> Any:
        return as_matrix(node_features(data, "nc"))[nodes.cpu().numpy()]

    return head.probabilities(head.logits_with(x, points[nodes.to(points.device)], model.distance_scale))


def graph_probabilities(model: Model, graphs: Sequence[Any], in_features: int, batch_size: int = 64) -> Tensor:
    """The probabilities of the classes of some graphs."""
    head = model.head
    assert isinstance(head, ClassHead)
    return _of_graphs(
        lambda batch: head.probabilities(graph_logits(model, batch)), model, graphs, in_features, batch_size
    )


def encode_graphs(model: Model, graphs: Sequence[Any], in_features: int, batch_size: int = 64) -> Tensor:
    """A point for each of some graphs."""
    return _of_graphs(lambda batch: graph_points(model, batch), model, graphs, in_features, batch_size)


@torch.no_grad()
def _of_graphs(
    compute: Callable[[GraphBatch], Tensor], model: Model, graphs: Sequence[Any], in_features: int, batch_size: int
) -> Tensor:
    """What is computed batch by batch, a row for each graph."""
    essences = [essence(graph, f"graph {number}") for number, graph in enumerate(graphs)]
    for number, graph in enumerate(essences):
        if graph.x.shape[1] != in_features:
            raise DataError(
                f"graph {number} has {graph.x.shape[1]} features a node; the model was trained with {in_features}"
            )
    device = next(model.parameters()).device
    chunks = [essences[first : first + batch_size] for first in range(0, len(essences), batch_size)]
    return torch.cat([compute(batch_of(chunk).to(device)) for chunk in chunks])
