"""Points of the nodes of a graph, of a batch, or of a graph that is large."""

import torch
from torch import Tensor

from h2hgcn.layers.adjacency import Adjacency
from h2hgcn.layers.renumbered import RenumberedAdjacency
from h2hgcn.layers.sampled_adjacency import SampledAdjacency
from h2hgcn.models.row_blocks import can_go_by_blocks, points_by_blocks
from h2hgcn.tasks.problem import Model
from h2hgcn.tasks.scaling import ScaledFeatures

# Nodes from which on points are worked out by blocks. It does not depend on how a model was trained, so that a run that
# is loaded has the points that it had.
LARGE = 1 << 18


def encoded(model: Model, features: ScaledFeatures, graph: Adjacency) -> Tensor:
    """What the encoder gives for the rows of a graph; of a sampled one the seeds come first, and what follows is of no
    use.
    """
    nodes = graph.nodes if isinstance(graph, SampledAdjacency | RenumberedAdjacency) else None
    x = features.of(model.scaling) if nodes is None else features.rows(model.scaling, nodes)
    points: Tensor = model.encoder(x, graph)
    return points


def all_points(model: Model, features: ScaledFeatures, graph: Adjacency) -> Tensor:
    """The points of all nodes; of a large graph by blocks of rows, if the encoder's layers allow for it: as exact."""
    learns = model.training or torch.is_grad_enabled()
    if learns or not can_go_by_blocks(model.encoder) or graph.num_nodes < LARGE:
        return encoded(model, features, graph)
    return points_by_blocks(model.encoder, lambda rows: features.rows(model.scaling, rows), graph)  # type: ignore[arg-type]
