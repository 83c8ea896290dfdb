import pytest
import torch

from h2hgcn.datasets.named.disease import generate_disease
from h2hgcn.layers import prepare_adjacency
from h2hgcn.tasks import NodeClassification
from h2hgcn.tasks.label_propagation import propagated_classes


def two_paths():
    """Nodes 0-4 in a row, 5-9 in another, and 10 alone."""
    edges = torch.tensor([[k, k + 1] for k in (0, 1, 2, 3, 5, 6, 7, 8)]).T
    return prepare_adjacency(torch.cat([edges, edges.flip(0)], 1), None, 11)


def test_labels_go_along_edges_and_the_most_frequent_one_elsewhere():
    labels = torch.tensor([0, -1, -1, -1, 0, 1, -1, -1, -1, -1, -1])
    found = propagated_classes(two_paths(), labels, torch.tensor([0, 4, 5]))
    assert found.tolist() == [0] * 5 + [1] * 5 + [0]


def test_against_the_fixed_point_of_the_equation():
    """Zhou's form: F = α S F + (1 - α) Y, whose solution is worked out densely."""
    labels = torch.tensor([0, 0, 1, 2, 2, 1, 1, 0, 2, 2, 0])
    train = torch.tensor([0, 3, 5, 8])
    adjacency = two_paths()
    (source, target), weights = adjacency.edges(self_loops=False)
    dense = torch.zeros(11, 11).index_put((target, source), weights.float())
    scale = dense.sum(1).clamp_min(1).rsqrt()
    given = torch.zeros(11, 3).index_put((train, labels[train]), torch.ones(4))
    solved = torch.linalg.solve(torch.eye(11) - 0.9 * scale[:, None] * dense * scale, 0.1 * given)
    expected = solved[:10].argmax(1).tolist()
    assert propagated_classes(adjacency, labels, train)[:10].tolist() == expected


def test_it_stands_beside_what_was_learnt():
    problem = NodeClassification().bind(generate_disease(300))
    scores = problem.trivial("test")
    assert set(scores) == {"majority class", "label propagation"}
    assert all(0 <= score <= 1 for score in scores.values())


def test_one_class_for_all_is_the_other_when_f1_is_what_counts():
    problem = NodeClassification(selection="f1").bind(generate_disease(300))
    share = float(problem.y[torch.as_tensor(problem.split.test)].float().mean())
    assert 0 < share < 0.5
    scores = problem.trivial("test")
    assert scores["majority class"] == 0
    assert scores["always class 1"] == pytest.approx(2 * share / (1 + share))
