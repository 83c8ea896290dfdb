import numpy as np
import torch
from runs import shapes
from torch_geometric.data import Batch, Data
from torch_geometric.nn import dense_diff_pool
from torch_geometric.utils import to_dense_adj

from h2hgcn.models import DiffPool
from h2hgcn.tasks import GraphClassification


def test_one_graph_with_dense_matrices():
    torch.manual_seed(0)
    encoder, graph = DiffPool(5, 6, num_clusters=4).eval(), shapes()[9]
    first, readouts = encoder(graph.x.float(), graph.edge_index), []
    graph_matrix, nodes = to_dense_adj(graph.edge_index), graph.x.float()[None]
    for level in range(3):
        embedded = dense_stack(encoder.embed[level], nodes, graph_matrix)
        readouts.append(embedded.amax(1))
        if level < 2:
            scores = dense_stack(encoder.assign[level], nodes, graph_matrix)
            nodes, graph_matrix, *_ = dense_diff_pool(embedded, graph_matrix, scores)
            assert nodes.shape == (1, [4, 1][level], 6)
    torch.testing.assert_close(first, encoder.output(torch.cat(readouts, 1)).relu(), atol=1e-5, rtol=1e-4)


def dense_stack(stack, nodes, matrix):
    outputs, hidden = [], nodes
    means = matrix / matrix.sum(-1, keepdim=True).clamp(min=1)
    for conv, norm in zip(stack.convs, stack.norms, strict=True):
        neighbors, root = (conv.neighbors, conv.root) if hasattr(conv, "root") else (conv.lin_rel, conv.lin_root)
        hidden = means @ hidden @ neighbors.weight.mT + hidden @ root.weight.mT
        hidden = norm(hidden.flatten(0, 1)).view_as(hidden).relu()
        outputs.append(hidden)
    return stack.output(torch.cat(outputs, -1))


def test_the_auxiliary_loss_belongs_to_training():
    problem = GraphClassification(num_folds=3, batch_size=5).bind(shapes())
    batch = next(problem.batches(np.random.RandomState(0)))
    losses = {}
    for weight in (0.0, 1.0):
        torch.manual_seed(0)
        model = problem.build(DiffPool(5, 6, link_weight=weight, entropy_weight=weight))
        losses[weight] = problem.loss(model, batch)
        auxiliary = model.encoder.auxiliary_loss
    torch.testing.assert_close(losses[1.0], losses[0.0] + auxiliary)
    assert auxiliary > 0
    problem.evaluate(model.eval(), "val")
    assert model.encoder.auxiliary_loss is None


def test_graphs_of_very_different_sizes():
    """A dense batch of these would hold 40 x 6,000 x 6,000 numbers."""
    ring = torch.stack([torch.arange(6000), (torch.arange(6000) + 1) % 6000])
    large = Data(x=torch.ones(6000, 5), edge_index=ring)
    small = [Data(x=torch.ones(3, 5), edge_index=torch.tensor([[0, 1], [1, 2]])) for _ in range(39)]
    batch = Batch.from_data_list([large, *small])
    encoder = DiffPool(5, 6)
    points = encoder(batch.x, batch.edge_index, batch.batch, batch.num_graphs)
    (points.sum() + encoder.auxiliary_loss).backward()
    assert points.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())
