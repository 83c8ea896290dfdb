import time
from functools import partial

import numpy as np
import pytest
import torch
from runs import curve, last_weights, same_weights, small_data, small_fit

from h2hgcn.datasets.hyperbolic import generate_hyperbolic
from h2hgcn.errors import DataError
from h2hgcn.models import ENCODERS, H2HGCN
from h2hgcn.tasks import LinkPrediction, NodeClassification
from h2hgcn.tasks import model as encoding_module
from h2hgcn.tasks.base import Sampling
from h2hgcn.training import TrainingSettings, batching, load_run

SAMPLED = {"batch_size": 40, "fanout": "3,2"}
BOTH = pytest.mark.parametrize("task", ["lp", "nc"])


def test_an_epoch_has_every_item_once():
    shares = list(Sampling(7, (2,)).draws(30, np.random.RandomState(0)))
    assert [len(chosen) for chosen, _ in shares] == [7, 7, 7, 7, 2]
    assert sorted(np.concatenate([chosen for chosen, _ in shares])) == list(range(30))
    assert len({seed for _, seed in shares}) == 5


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_come_in_their_order(workers):
    def slow(number):
        time.sleep(0.002 * (number % 3))
        return number

    prepared = Sampling(1, (1,), workers).prepared(partial(slow, number) for number in range(20))
    assert list(prepared) == list(range(20))


def test_a_worker_that_fails_is_heard():
    def bad():
        raise DataError("no such neighbour")

    with pytest.raises(DataError, match="no such neighbour"):
        list(Sampling(1, (1,), 2).prepared([lambda: 1, bad, lambda: 2]))


@BOTH
def test_the_seed_decides_and_workers_do_not(task):
    first, again, ahead, other = (
        small_fit(task, seed=seed, settings=SAMPLED | {"workers": workers})
        for seed, workers in ((3, 0), (3, 0), (3, 2), (4, 0))
    )
    assert same_weights(first, again)
    assert same_weights(first, ahead)
    assert curve(first) == curve(ahead)
    assert not same_weights(first, other)


@BOTH
def test_a_run_in_a_folder_is_that_in_memory_and_loads_with_its_metrics(task, tmp_path):
    run = small_fit(task, settings=SAMPLED, folder=tmp_path)
    assert same_weights(run, small_fit(task, settings=SAMPLED))
    loaded = load_run(tmp_path)
    assert loaded.evaluate("test") == run.metrics["test"]
    assert torch.equal(loaded.embeddings, run.embeddings)


@BOTH
def test_a_run_that_was_stopped_goes_on_to_the_same_weights(task, tmp_path):
    whole = small_fit(task, settings=SAMPLED, folder=tmp_path / "whole")
    epochs = iter([False, False, True])
    part = small_fit(task, settings=SAMPLED, folder=tmp_path / "part", should_stop=lambda: next(epochs))
    assert part.result["epochs"] == 2
    ended = small_fit(task, settings=SAMPLED | {"workers": 2}, folder=tmp_path / "part")
    assert curve(ended) == curve(whole)
    one, other = last_weights(tmp_path / "whole"), last_weights(tmp_path / "part")
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", [name for name, kind in ENCODERS.items() if kind.inductive and "lp" in kind.tasks])
def test_every_encoder_of_neighbourhoods_can_be_sampled(name):
    run = small_fit(model=partial(ENCODERS[name], dim=4), epochs=1, settings={"batch_size": 60})
    assert 0 <= run.metrics["test"]["auc"] <= 1


@pytest.mark.parametrize("name", ["mlp", "hnn"])
def test_no_neighbors_are_sampled_for_models_that_do_not_look_at_them(name):
    problem = LinkPrediction().bind(small_data())
    encoder = ENCODERS[name](problem.in_features, 4)
    plan = batching.plan_batches(TrainingSettings(batch_size=10), problem, encoder, 4)
    problem.sampling = plan.sampling
    for batch in problem.batches(np.random.RandomState(0)):
        assert batch.messages.num_nodes == len(batch.pairs.unique())


def test_sampling_learns_as_much_as_the_whole_graph():
    data = generate_hyperbolic(4000, mean_degree=10)
    task = LinkPrediction(scaling="standard")
    full, sampled = (
        small_fit(task, data, partial(H2HGCN, dim=8), epochs=25, settings=settings)
        for settings in ({"batch_size": "full"}, {"batch_size": 850, "fanout": "8,5"})
    )
    assert sampled.metrics["test"]["auc"] > full.metrics["test"]["auc"] - 0.01


def test_sparse_features_are_sampled():
    data = small_data()
    data.x = torch.nn.functional.one_hot(torch.arange(200), 200).float()
    full, sampled = (
        small_fit(data=data, epochs=2, settings={"batch_size": size, "fanout": "-1,-1"}) for size in ("full", 50)
    )
    assert full.history[-1]["loss"] == pytest.approx(sampled.history[-1]["loss"], rel=0.5)


def test_large_graphs_are_evaluated_by_blocks(monkeypatch):
    whole = small_fit(settings=SAMPLED)
    monkeypatch.setattr(encoding_module, "LARGE", 10)
    blocks = small_fit(settings=SAMPLED)
    assert torch.allclose(whole.embeddings, blocks.embeddings, atol=1e-5)


def test_auto_decides_by_size_and_says_so(monkeypatch):
    said = []
    small_fit(epochs=1, on_plan=said.append)
    monkeypatch.setattr(batching, "LARGE_GRAPH", 100)
    small_fit(epochs=1, on_plan=said.append)
    small_fit(epochs=1, on_plan=said.append, settings={"batch_size": "full"})
    assert said == [
        "full-batch training (85 links)",
        "batches of 85 of 85 links, fanout 15,10: the graph is large",
        "full-batch training",
    ]


@pytest.mark.parametrize(("count", "size"), [(100, 100), (1024, 1024), (10_000, 1024), (160_001, 10_001)])
def test_an_epoch_has_sixteen_batches_unless_they_would_be_small(count, size):
    assert batching.automatic_size(count) == size


@pytest.mark.parametrize(
    ("task", "model", "settings", "message"),
    [
        ("lp", "h2h-gcn", {"fanout": "15"}, "has 1 numbers, but the encoder has 2 layers"),
        ("lp", "h2h-gcn", {"fanout": "15,10,5"}, "has 3 numbers, but the encoder has 2 layers"),
        ("lp", "h2h-gcn", {"batch_size": 1000}, "more than the 85 links"),
        ("nc", "h2h-gcn", {"batch_size": 1000}, "nodes there are to train on"),
        ("lp", "hyp", {"batch_size": 10}, "a vector for each node"),
        ("gc", "h2h-gcn", {"batch_size": 10}, "task.batch_size"),
        ("gc", "h2h-gcn", {"fanout": "3,2"}, "task.batch_size"),
    ],
)
def test_what_does_not_fit_is_refused(task, model, settings, message):
    with pytest.raises(DataError, match=message):
        small_fit(task, model=partial(ENCODERS[model], dim=4), settings=settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fanout": "a,b"}, "such as 15,10"),
        ({"fanout": "15,0"}, "at least 1"),
        ({"fanout": "15,-2"}, "at least 1"),
        ({"fanout": ""}, "such as 15,10"),
        ({"batch_size": 0}, "at least 1"),
        ({"batch_size": "large"}, "a whole number or 'auto' or 'full'"),
        ({"workers": -1}, "must be 0 to"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        TrainingSettings(**options)


def test_the_link_term_of_classes_can_be_left_out():
    run = small_fit(NodeClassification(num_centroids=6, link_weight=0.0), settings=SAMPLED, epochs=2)
    assert 0 <= run.metrics["test"]["accuracy"] <= 1


@BOTH
@pytest.mark.parametrize("settings", [{}, SAMPLED])
def test_large_graphs_are_trained_in_an_order_of_their_own(task, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(batching, "SCATTERED", 1)
    run = small_fit(task, settings=settings, folder=tmp_path)
    assert same_weights(run, small_fit(task, settings=settings))
    monkeypatch.undo()
    loaded = load_run(tmp_path)
    assert loaded.evaluate("test") == run.metrics["test"]
    assert torch.equal(loaded.embeddings, run.embeddings)


def test_the_order_changes_nothing_but_rounding(monkeypatch):
    curves = []
    for scattered in (1, 1 << 18):
        monkeypatch.setattr(batching, "SCATTERED", scattered)
        run = small_fit(NodeClassification(num_centroids=6, link_weight=0.0), model=partial(H2HGCN, dim=4))
        curves.append([row["loss"] for row in run.history])
    np.testing.assert_allclose(*curves, rtol=1e-4)


@pytest.mark.parametrize("share", [None, 0.5])
def test_links_in_another_order_are_the_training_links(share):
    problem = LinkPrediction(message_share=share).bind(small_data())
    problem.reorder()
    (batch,) = problem.batches(np.random.RandomState(0))
    nodes = problem.graph.nodes.numpy()
    links = {tuple(sorted(pair)) for pair in nodes[batch.pairs[batch.labels == 1].numpy()].tolist()}
    others = {tuple(sorted(pair)) for pair in nodes[batch.pairs[batch.labels == 0].numpy()].tolist()}
    known = {tuple(sorted(pair)) for pair in problem.split.train.tolist()}
    assert links <= known
    assert not others & known
    sources, targets = nodes[batch.messages.edges(self_loops=False)[0].numpy()]
    carried = {tuple(sorted(pair)) for pair in zip(sources.tolist(), targets.tolist(), strict=True)}
    assert carried == (known if share is None else known - links)


def test_a_vector_for_each_node_keeps_its_place(monkeypatch):
    monkeypatch.setattr(batching, "SCATTERED", 1)
    problem = LinkPrediction().bind(small_data())
    encoder = ENCODERS["euc"](problem.in_features, 4, num_nodes=problem.num_nodes)
    assert not batching.plan_batches(TrainingSettings(), problem, encoder, 4).reorder
    assert batching.plan_batches(TrainingSettings(), problem, H2HGCN(problem.in_features, 4), 4).reorder
