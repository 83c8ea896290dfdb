from dataclasses import replace

import numpy as np
import pytest
import torch
from runs import Flat, shapes
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool

from h2hgcn.datasets import DataError, load_dataset, split_edges
from h2hgcn.datasets.disease import generate_disease
from h2hgcn.geometry import lorentz, poincare
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import GraphClassification, LinkPrediction, NodeClassification, link_baselines
from h2hgcn.tasks.graphs import graph_logits
from h2hgcn.tasks.model import FeatureScaling
from h2hgcn.training import build_optimizer


def train(problem, encoder, epochs=60):
    torch.manual_seed(0)
    model = problem.build(encoder)
    optimizer = build_optimizer(model, lr=0.02, stiefel_lr=0.05)
    random = np.random.RandomState(0)
    for _ in range(epochs):
        model.train()
        for batch in problem.batches(random):
            optimizer.zero_grad()
            problem.loss(model, batch).backward()
            optimizer.step()
    return model.eval()


def test_links_of_the_disease_tree_are_learnt():
    graph = generate_disease(600)
    problem = LinkPrediction(message_share=0.5, scaling="standard", test=0.2).bind(graph)
    encoder = H2HGCN(problem.in_features, 16, activation="leaky_relu", stem_activation=None)
    metrics = problem.evaluate(train(problem, encoder, 150), "test")
    best = max(scores["auc"] for scores in link_baselines(problem.x.numpy(), problem.split).metrics.values())
    assert metrics["auc"] > best + 0.05


@pytest.mark.parametrize("part", ["val", "test"])
def test_the_auc_of_answerable_pairs(part):
    problem = LinkPrediction(val=0.2, test=0.2).bind(generate_disease(300))
    model = problem.build(Flat(problem.in_features)).eval()
    metrics = problem.evaluate(model, part)
    linked = set(problem.split.train.ravel().tolist())
    points = problem.points(model).detach()

    def scores(pairs):
        kept = np.array([pair for pair in pairs.tolist() if linked.issuperset(pair)])
        assert 0 < len(kept) < len(pairs)
        return -(points[kept[:, 0]] - points[kept[:, 1]]).norm(dim=1).numpy()

    links, others = (scores(getattr(problem.split, name)) for name in (part, f"{part}_neg"))
    assert metrics["auc_answerable"] == pytest.approx((links[:, None] > others).mean(), abs=1e-3)
    assert metrics["auc_answerable"] != metrics["auc"]


def test_no_auc_of_answerable_pairs_where_it_is_the_same_or_has_no_links():
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    dense = torch.cat([ring, torch.stack([ring[0], (ring[0] + 2) % 40]), torch.stack([ring[0], (ring[0] + 3) % 40])], 1)
    star = torch.stack([torch.zeros(39, dtype=torch.long), torch.arange(1, 40)])
    for edges in (dense, star):
        problem = LinkPrediction().bind(Data(x=torch.randn(40, 2), edge_index=torch.cat([edges, edges.flip(0)], 1)))
        assert "auc_answerable" not in problem.evaluate(problem.build(Flat(2)).eval(), "test")


def test_classes_of_the_disease_tree_are_learnt():
    graph = generate_disease(800)
    problem = NodeClassification(val=0.2, test=0.3, scaling="standard", feature_length=2).bind(graph)
    metrics = problem.evaluate(train(problem, H2HGCN(problem.in_features, 16)), "test")
    majority = max(torch.bincount(graph.y[problem.split.test]).tolist()) / len(problem.split.test)
    assert metrics["accuracy"] > majority + 0.1


def test_graphs_are_told_apart():
    problem = GraphClassification(num_folds=3, batch_size=5).bind(shapes())
    assert problem.evaluate(train(problem, H2HGCN(5, 8), 30), "test")["accuracy"] == 1


@pytest.mark.parametrize("space", ["euclidean", "ball", "lorentz"])
@pytest.mark.parametrize("classifier", ["centroids", "linear"])
def test_every_space_has_both_classifiers(space, classifier):
    encoder = Flat(16, 3, space)
    head = NodeClassification(num_centroids=7, classifier=classifier).bind(generate_disease(100)).build(encoder).head
    points = encoder(torch.randn(5, 16), None)
    hidden = {"lorentz": lorentz.log_origin, "ball": lambda b: lorentz.log_origin(poincare.to_lorentz(b))}.get(
        space, lambda p: p
    )(points)
    if classifier == "linear":
        assert head.classes.centroids is None
        torch.testing.assert_close(head(points), head.classes.classifier(hidden))
    elif space == "euclidean":
        expected = (points[:, None] - head.classes.centroids.centroids).norm(dim=-1)
        torch.testing.assert_close(head(points), head.classes.classifier(expected))
    assert head(points).shape == (5, 2)


@pytest.mark.parametrize("classifier", ["centroids", "linear"])
def test_what_a_classifier_sees_can_be_standardised(classifier):
    task = GraphClassification(num_folds=3, batch_size=5, num_centroids=7, classifier=classifier, head_norm=True)
    problem = task.bind(shapes())
    model = problem.build(Flat(5, 3, "lorentz"))
    seen = []
    model.head.dropout.register_forward_hook(lambda module, given, result: seen.append(given[0]))
    batch = next(problem.batches(np.random.RandomState(0)))
    problem.loss(model.train(), batch).backward()
    assert seen[0].mean(0).abs().max() < 1e-5
    torch.testing.assert_close(seen[0].std(0, correction=0), torch.ones(seen[0].shape[1]), atol=0.05, rtol=0)
    assert all(p.grad is not None for p in model.head.parameters())


@pytest.mark.parametrize("space", ["euclidean", "lorentz"])
@pytest.mark.parametrize("classifier", ["centroids", "linear"])
def test_sums_are_means_times_the_number_of_nodes(space, classifier):
    data = shapes()
    heads = []
    for pooling in ("mean", "sum"):
        problem = GraphClassification(num_folds=3, classifier=classifier, pooling=pooling).bind(data)
        torch.manual_seed(0)
        model = problem.build(Flat(5, 3, space)).eval()
        model.head.classifier = nn.Identity()
        batch = next(problem.batches(np.random.RandomState(0)))
        heads.append(graph_logits(model, batch))
    counts = torch.bincount(batch.graph_of_node).unsqueeze(1)
    torch.testing.assert_close(heads[1], heads[0] * counts)


def test_a_batch_of_one_graph_can_be_standardised():
    problem = GraphClassification(num_folds=3, batch_size=15, head_norm=True).bind(shapes())
    problem.split = replace(problem.split, train=problem.split.train[:1])
    model = problem.build(H2HGCN(5, 4))
    (batch,) = problem.batches(np.random.RandomState(0))
    before = model.head.norm.module.running_mean.clone()
    problem.loss(model.train(), batch).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    assert torch.equal(model.head.norm.module.running_mean, before)


class Pool(nn.Module):
    """An encoder that pools graphs itself, with a loss of its own."""

    space, dim, pools = "euclidean", 3, True

    def __init__(self, in_features):
        super().__init__()
        self.linear = nn.Linear(in_features, 3)
        self.auxiliary_loss = None

    def forward(self, x, adjacency, batch, num_graphs):
        self.auxiliary_loss = self.linear.weight.square().sum()
        return global_add_pool(self.linear(x), batch, num_graphs)


def test_encoders_that_pool():
    problem = GraphClassification(num_folds=3, batch_size=5).bind(shapes())
    torch.manual_seed(0)
    model = problem.build(Pool(5))
    assert problem.points(model).shape == (24, 3)
    batch = next(problem.batches(np.random.RandomState(0)))
    expected = model.head.classifier(global_add_pool(model.encoder.linear(batch.x), batch.graph_of_node))
    loss = nn.functional.cross_entropy(expected, batch.y) + model.encoder.linear.weight.square().sum()
    torch.testing.assert_close(problem.loss(model, batch), loss)


@pytest.mark.parametrize("space", ["euclidean", "ball", "lorentz"])
def test_every_space_has_its_decoders(space):
    graph = generate_disease(200)
    for task, data in (
        (LinkPrediction(), graph),
        (NodeClassification(), graph),
        (GraphClassification(num_folds=3), shapes()),
    ):
        problem = task.bind(data)
        encoder = Flat(problem.in_features, 4, space)
        model = problem.build(encoder)
        loss = sum(problem.loss(model, batch) for batch in problem.batches(np.random.RandomState(0)))
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        assert all(np.isfinite(value) for value in problem.evaluate(model.eval(), "val").values())


def test_ball_and_hyperboloid_give_the_same_logits():
    points = lorentz.exp_origin(torch.randn(6, 3, dtype=torch.float64))
    pairs = torch.tensor([[0, 1], [2, 5]])
    from h2hgcn.tasks.links import LinkHead

    heads = [LinkHead(Flat(3, 3, space)) for space in ("lorentz", "ball")]
    torch.testing.assert_close(heads[0](points, pairs), heads[1](poincare.from_lorentz(points), pairs))


def test_batches_depend_on_the_random_state_alone():
    problem = LinkPrediction(message_share=0.5, negatives=3).bind(generate_disease(100))
    (first,), (second,), (third,) = (list(problem.batches(np.random.RandomState(seed))) for seed in (1, 1, 2))
    assert torch.equal(first.pairs, second.pairs)
    assert not torch.equal(first.pairs, third.pairs)
    assert int((first.labels == 0).sum()) == 3 * int(first.labels.sum())


def test_weights_of_edges_reach_the_messages():
    graph = generate_disease(60)
    graph.edge_weight = torch.rand(graph.edge_index.shape[1])
    for share in (None, 0.5):
        (batch,) = LinkPrediction(message_share=share).bind(graph).batches(np.random.RandomState(0))
        assert len(batch.messages.weights.unique()) > 10


def test_one_edge_alone_carries_messages():
    graph = generate_disease(60)
    for weight in (None, torch.ones(graph.edge_index.shape[1])):
        graph.edge_weight = weight
        (batch,) = LinkPrediction(message_share=1e-9).bind(graph).batches(np.random.RandomState(0))
        assert int((batch.labels == 1).sum()) == len(split_edges(graph).train) - 1


def test_edges_without_weight_carry_no_messages():
    """Chance alone would sooner or later choose none that carries something."""
    graph = generate_disease(60)
    graph.edge_weight = (graph.edge_index.sum(0) % 7 == 0).float()
    problem = LinkPrediction(message_share=0.02).bind(graph)
    random = np.random.RandomState(0)
    for _ in range(20):
        (batch,) = problem.batches(random)
        assert batch.messages.weights.all()


def weighted_with(weight):
    graph = generate_disease(60)
    graph.edge_weight = torch.full((graph.edge_index.shape[1],), weight)
    return graph


@pytest.mark.parametrize("task", [LinkPrediction(), LinkPrediction(message_share=0.5), NodeClassification()])
@pytest.mark.parametrize(
    ("weight", "message"), [(0.0, "all edge weights of the graph are zero"), (-1.0, "holds -1"), (np.nan, "not finite")]
)
def test_weights_that_can_carry_nothing(task, weight, message):
    with pytest.raises(DataError, match=message):
        task.bind(weighted_with(weight))


def test_weights_that_are_held_out():
    graph = weighted_with(0.0)
    held_out = split_edges(graph).test[0]
    graph.edge_weight[(graph.edge_index.sort(0).values == torch.from_numpy(held_out).unsqueeze(1)).all(0)] = 1.0
    with pytest.raises(DataError, match="all edge weights of the training graph are zero"):
        LinkPrediction().bind(graph)


def test_evaluation_changes_nothing():
    problem = NodeClassification().bind(generate_disease(100))
    model = problem.build(H2HGCN(problem.in_features, 4, dropout=0.5)).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    assert problem.evaluate(model, "test") == problem.evaluate(model, "test")
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_class_weights_make_rare_classes_count():
    graph = generate_disease(100)
    problem = NodeClassification(class_weights=True).bind(graph)
    counts = torch.bincount(graph.y[problem.split.train]).float()
    torch.testing.assert_close(problem.weights * counts, counts.sum().expand(2) / 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_row_scaling(sparse):
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]])
    scaled = FeatureScaling("row", x)(x.to_sparse_coo() if sparse else x)
    expected = torch.tensor([[0.25, 0.75], [0.0, 0.0], [1.0, 0.0]])
    torch.testing.assert_close(scaled.to_dense() if sparse else scaled, expected)


@pytest.mark.parametrize(("share", "scaled"), [(0.05, False), (0.12, True), (0.5, True)])
def test_auto_scaling_does_not_depend_on_what_is_faster(share, scaled):
    x = (torch.rand(400, 200) < share).float()
    assert FeatureScaling("auto", x).needs_dense() == scaled
    assert FeatureScaling("raw", x).shaped(x).is_sparse == (share < 0.5)


def test_standard_scaling():
    x = torch.randn(500, 7) * torch.arange(7) + 3
    scaling = FeatureScaling("standard", x, length=2.0)
    scaled = scaling(x)
    torch.testing.assert_close(scaled.mean(0), torch.zeros(7), atol=1e-5, rtol=0)
    assert scaled[:, 0].abs().max() == 0  # a constant column says nothing
    torch.testing.assert_close(scaled.square().sum(1).mean(), torch.tensor(4 * 6 / 7), rtol=1e-4, atol=0)
    other = FeatureScaling("standard", torch.zeros(3, 7))
    other.load_state_dict(scaling.state_dict())
    torch.testing.assert_close(other(x), scaled)


@pytest.mark.parametrize("unit", [1e-36, 1e-9, 1e9])
def test_standard_scaling_does_not_depend_on_the_unit(unit):
    x = torch.randn(50, 3) + torch.tensor([0.0, 1.0, 5.0])
    x[:, 2] = 5
    torch.testing.assert_close(
        FeatureScaling("standard", x * unit)(x * unit), FeatureScaling("standard", x)(x), atol=1e-5, rtol=1e-4
    )


@pytest.mark.parametrize("scaling", ["row", "standard", "auto"])
@pytest.mark.parametrize(
    "values", [[1e-45, 0.0, 1e-44], [3.4e38, -3.4e38, 1.0], [3.4e38, -1e38, -3.4e38], [1e-38, 2.0]]
)
def test_scaled_features_are_finite(scaling, values):
    x = torch.tensor([values, values[::-1], values[1:] + values[:1]])
    scaled = FeatureScaling(scaling, x)(x)
    assert scaled.isfinite().all()
    if scaling != "row" and max(values) > 1:
        assert 0.5 < scaled.square().sum(1).mean() < 1.5


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.1, 1e30])
def test_constant_and_vanishing_columns_say_nothing(value):
    x = torch.full((7, 2), value)
    x[:, 1] = torch.arange(7) * 1e-44
    assert FeatureScaling("standard", x)(x).abs().max() == 0


@pytest.mark.filterwarnings("ignore:.* edges leave none")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NodeClassification().bind(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)), "has no labels"),
        (lambda: GraphClassification().bind(generate_disease(20)), "not one graph"),
        (lambda: GraphClassification(num_folds=3, fold=3).bind(shapes()), "the folds are 0 to 2"),
        (lambda: LinkPrediction(message_share=1.0).bind(generate_disease(100)), "message_share=1.0"),
        (lambda: LinkPrediction().bind(generate_disease(5)), "no edge is left for the val part"),
        (lambda: LinkPrediction().bind(Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=3)), "no edges"),
        (lambda: NodeClassification(val=0.01).bind(generate_disease(20)), "val part of 20 labeled nodes in 2 classes"),
        (lambda: NodeClassification(selection="f1").bind(three_classes()), "but there are 3"),
        (lambda: NodeClassification().bind(one_class()), "nothing to tell apart"),
        (lambda: FeatureScaling("other", torch.ones(2, 2)), "raw, row, standard"),
        (lambda: FeatureScaling("standard", torch.ones(2, 2).to_sparse_coo()), "not sparse any more"),
    ],
)
def test_tasks_that_do_not_fit_the_data(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_a_single_training_edge_is_predicted():
    graph = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    problem = LinkPrediction(val=0.34, test=0.34, message_share=0.5).bind(graph)
    assert (problem.num_messages, problem.num_items) == (0, 1)


def three_classes():
    graph = generate_disease(60)
    graph.y = torch.arange(60) % 3
    return graph


def one_class():
    graph = generate_disease(60)
    graph.y = torch.zeros(60, dtype=torch.long)
    return graph


def test_the_default_dataset_serves_both_tasks():
    graph = load_dataset("disease")
    assert LinkPrediction().bind(graph).in_features == NodeClassification().bind(graph).in_features == 16
