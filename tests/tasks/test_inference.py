import pytest
import torch
from runs import Flat, shapes, small_data

from h2hgcn.errors import DataError
from h2hgcn.layers.spaces import squared_distance
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import GraphClassification, LinkPrediction, NodeClassification
from h2hgcn.tasks.graphs import graph_probabilities
from h2hgcn.tasks.model import encode_nodes


def model_for(task, data, space=None):
    problem = task.bind(data)
    encoder = H2HGCN(problem.in_features, 4) if space is None else Flat(problem.in_features, 4, space)
    return problem.build(encoder).eval(), problem


@pytest.mark.parametrize("scaling", ["raw", "row", "standard", "auto"])
def test_nodes_are_encoded_as_in_training(scaling):
    graph = small_data("nc")
    model, problem = model_for(NodeClassification(scaling=scaling), graph)
    points = encode_nodes(model, graph, "nc", 16)
    assert torch.equal(points, problem.points(model))
    assert not points.requires_grad


def test_new_nodes_are_measured_by_the_old_rule():
    """Standardised by their own mean, a part of the nodes would land elsewhere."""
    graph = small_data("nc")
    model, _ = model_for(NodeClassification(scaling="standard"), graph, "euclidean")
    part = graph.subgraph(torch.arange(50))
    torch.testing.assert_close(encode_nodes(model, part, "nc", 16), encode_nodes(model, graph, "nc", 16)[:50])


@pytest.mark.parametrize("space", ["lorentz", "ball", "euclidean"])
def test_links_by_the_decoders_formula(space):
    model, problem = model_for(LinkPrediction(r=1.5, t=0.5), small_data(), space)
    points = problem.points(model)
    pairs = torch.tensor([[0, 1], [5, 5], [7, 3]])
    found = problem.task.probabilities(model, points, pairs, small_data())
    square = squared_distance(space)(points[pairs[:, 0]], points[pairs[:, 1]])
    torch.testing.assert_close(found, torch.sigmoid((1.5 - square) / 0.5).detach())


def test_classes_add_up_to_one():
    model, problem = model_for(NodeClassification(), small_data("nc"))
    points = problem.points(model)
    chosen = torch.tensor([3, 3, 190])
    probabilities = problem.task.probabilities(model, points, chosen, small_data("nc"))
    torch.testing.assert_close(probabilities.sum(1), torch.ones(3))
    assert torch.equal(probabilities[0], probabilities[1])
    assert torch.equal(probabilities.argmax(1), model.head(points).argmax(1)[chosen])


@pytest.mark.parametrize("space", [None, "ball", "euclidean"])
def test_graphs_do_not_depend_on_their_batch(space):
    collection = shapes()
    model, _ = model_for(GraphClassification(num_folds=3, scaling="standard"), collection, space)
    graphs = list(collection)
    together = graph_probabilities(model, graphs, 5)
    assert together.shape == (24, 2)
    for size in (1, 7):
        torch.testing.assert_close(graph_probabilities(model, graphs, 5, size), together)
    torch.testing.assert_close(graph_probabilities(model, graphs[::-1], 5).flip(0), together)


def test_widths_that_do_not_fit():
    model, _ = model_for(GraphClassification(num_folds=3), shapes())
    graphs = list(shapes())
    graphs[2].x = graphs[2].x[:, :3]
    with pytest.raises(DataError, match="graph 2 has 3 features a node; the model was trained with 5"):
        graph_probabilities(model, graphs, 5)
    model, _ = model_for(LinkPrediction(), small_data())
    with pytest.raises(DataError, match="the graph has 16 features a node; the model was trained with 17"):
        encode_nodes(model, small_data(), "lp", 17)
