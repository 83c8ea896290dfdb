"""Points of the nodes of a graph, of a batch, or of a graph that is large."""

from functools import partial

import torch
from torch import Tensor

from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.node_vectors import node_vectors_of
from h2hgcn.layers.renumbered import RenumberedAdjacency
from h2hgcn.layers.sampled_adjacency import SampledAdjacency
from h2hgcn.models.row_blocks import can_go_by_blocks, points_by_blocks
from h2hgcn.tasks.problem import Model
from h2hgcn.tasks.scaling import ScaledFeatures

# Nodes from which on points are worked out by blocks. It does not depend on how a model was trained, so that a run that
# is loaded has the points that it had.
LARGE = 1 << 18


def encoded(model: Model, features: ScaledFeatures, graph: Adjacency, nodes: Tensor | None = None) -> Tensor:
    """What the encoder gives for the rows of a graph. Of a sampled one only the seeds, which come first, are of use.

    ``nodes`` are the training nodes that the rows stand for, for encoders with ``NodeVectors``; None for all in order.
    """
    part = graph.nodes if isinstance(graph, SampledAdjacency | RenumberedAdjacency) else None
    x = features.of(model.scaling) if part is None else features.rows(model.scaling, part)
    nodes = part if nodes is None else nodes
    if nodes is None or node_vectors_of(model.encoder) is None:
        points: Tensor = model.encoder(x, graph)
    else:
        points = model.encoder(x, graph, nodes=nodes)
    return points


def all_points(model: Model, features: ScaledFeatures, graph: Adjacency, nodes: Tensor | None = None) -> Tensor:
    """The points of all nodes; of a large graph by blocks of rows, if the encoder's layers allow for it: as exact."""
    learns = model.training or torch.is_grad_enabled()
    if learns or not can_go_by_blocks(model.encoder) or graph.num_nodes < LARGE:
        return encoded(model, features, graph, nodes)
    rows_of = partial(features.rows, model.scaling)
    return points_by_blocks(model.encoder, rows_of, graph, nodes=nodes)  # type: ignore[arg-type]
