from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from runs import TASKS, Flat, curve, last_weights, same_weights, shapes, small_data, small_fit
from torch_geometric.data import Data, InMemoryDataset

from h2hgcn.datasets.disease import generate_disease
from h2hgcn.embeddings import read_embeddings
from h2hgcn.errors import DataError
from h2hgcn.files import read_tensors
from h2hgcn.models import H2HGCN
from h2hgcn.tasks import LinkPrediction, NodeClassification, baselines
from h2hgcn.training import fit, load_run
from h2hgcn.training.folder import RunFolder

EVERY_TASK = pytest.mark.parametrize("task", TASKS)


@EVERY_TASK
def test_the_seed_decides_on_everything(task):
    first, again, other = (small_fit(task, seed=seed) for seed in (3, 3, 4))
    assert same_weights(first, again)
    assert curve(first) == curve(again)
    assert first.metrics == again.metrics
    assert not same_weights(first, other)


@EVERY_TASK
def test_a_run_says_what_came_out(task):
    run = small_fit(task)
    assert run.finished
    assert [row["epoch"] for row in run.history] == [1, 2, 3, 4]
    selection = run.result["selection"]
    best = max(run.history, key=lambda row: row["val"][selection])
    assert run.result["best_epoch"] == best["epoch"]
    assert run.metrics["val"] == best["val"] == run.evaluate("val")
    assert run.metrics["test"] == run.evaluate("test")
    assert run.result["trivial"]
    assert all(0 <= score <= 1 for score in run.result["trivial"].values())
    assert run.result["parameters"] == sum(p.numel() for p in run.model.parameters() if p.requires_grad)


@EVERY_TASK
def test_evaluation_does_not_touch_training(task, tmp_path):
    often, seldom = (
        small_fit(task, epochs=5, settings={"patience": None, "eval_every": every}, folder=tmp_path / str(every))
        for every in (1, 5)
    )
    assert [row["epoch"] for row in seldom.history if "val" in row] == [5]
    assert [row["loss"] for row in often.history] == [row["loss"] for row in seldom.history]
    first, second = last_weights(tmp_path / "1"), last_weights(tmp_path / "5")
    assert all(torch.equal(first[name], second[name]) for name in first)


@EVERY_TASK
@pytest.mark.parametrize(
    "settings",
    [
        {"dtype": "float64"},
        {"schedule": "cosine", "clip_norm": 0.5},
        {"schedule": "step", "decay_every": 1, "stiefel_method": "radam", "stiefel_lr": 0.05},
    ],
    ids=["float64", "cosine", "step"],
)
def test_settings_reach_the_loop(task, settings):
    run = small_fit(task, settings=settings)
    assert not same_weights(run, small_fit(task))
    dtype = getattr(torch, settings.get("dtype", "float32"))
    assert all(value.dtype == dtype for value in run.model.state_dict().values() if value.is_floating_point())
    assert run.embeddings.dtype == dtype
    lr = [row["lr"] for row in run.history]
    assert lr == pytest.approx({
        "cosine": [0.01, 0.01 * (2 + 2**0.5) / 4, 0.005, 0.01 * (2 - 2**0.5) / 4],
        "step": [0.01, 0.005, 0.0025, 0.00125],
    }.get(settings.get("schedule"), [0.01] * 4))  # fmt: skip


def test_float64_weights_are_orthonormal_to_float64():
    weight = small_fit(settings={"dtype": "float64"}).model.encoder.convs[0].linear.weight
    torch.testing.assert_close(weight.mT @ weight, torch.eye(4, dtype=torch.float64), atol=1e-14, rtol=0)


def test_patience():
    run = small_fit("nc", epochs=50, settings={"patience": 3, "eval_every": 2, "lr": 1e-9})
    assert run.result["stopped_early"]
    assert run.result["best_epoch"] == 2
    assert run.result["epochs"] == 6


def test_class_weights_change_the_loss():
    weighted = small_fit(NodeClassification(num_centroids=6, class_weights=True))
    assert weighted.history[0]["loss"] != small_fit("nc").history[0]["loss"]


@EVERY_TASK
def test_the_caller_is_left_alone(task, tmp_path):
    def surroundings():
        return (
            torch.get_rng_state(),
            np.random.get_state()[1].copy(),
            torch.get_default_dtype(),
            torch.get_num_threads(),
        )

    torch.set_num_threads(2)
    before = surroundings()
    for folder in (None, tmp_path / "run", tmp_path / "run"):  # the last one is only loaded
        small_fit(task, settings={"dtype": "float64", "threads": 1}, folder=folder)
        after = surroundings()
        assert torch.equal(before[0], after[0])
        assert np.array_equal(before[1], after[1])
        assert before[2:] == after[2:]


def test_the_callers_default_dtype_does_not_matter():
    expected = small_fit()
    torch.set_default_dtype(torch.float64)
    try:
        assert same_weights(expected, small_fit())
    finally:
        torch.set_default_dtype(torch.float32)


def test_nodes_without_a_label_are_in_no_part():
    graph = generate_disease(200)
    graph.y[::3] = -1
    graph.y = graph.y.int()
    run = small_fit("nc", graph)
    split = run.problem.split
    assert set(np.concatenate([split.train, split.val, split.test])) == set(np.flatnonzero(graph.y >= 0))
    assert run.predict().shape == (200, 2)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float16, torch.float64])
def test_features_of_any_type_are_scaled_as_floats(dtype):
    """A mean that is made a whole number first would be another one."""
    graph = generate_disease(200)
    graph.x = (graph.x * 10).round()
    task = LinkPrediction(scaling="standard")
    expected = small_fit(task, graph.clone())
    graph.x = graph.x.to(dtype)
    torch.testing.assert_close(small_fit(task, graph).embeddings, expected.embeddings)


def test_where_the_features_lie_in_memory_does_not_matter():
    """Products depend to the last bit on where their numbers begin, and a run that goes on has them elsewhere."""
    graph = generate_disease(200)
    size = graph.x.numel()
    places = [torch.empty(size + 3)[offset : offset + size].view_as(graph.x).copy_(graph.x) for offset in (1, 3)]
    expected = small_fit("lp", graph.clone())
    for place in (*places, graph.x.T.contiguous().T):
        graph.x = place
        assert same_weights(small_fit("lp", graph), expected)


def test_sparse_features():
    graph = generate_disease(200)
    dense = small_fit("lp", graph.clone())
    graph.x = graph.x.to_sparse_coo()
    run = small_fit("lp", graph)
    torch.testing.assert_close(run.embeddings, dense.embeddings)
    assert run.result["trivial"] == pytest.approx(dense.result["trivial"])


def killed(*_):
    raise KeyboardInterrupt


@EVERY_TASK
def test_a_run_killed_at_its_baselines_has_its_model_and_resumes(task, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(type(TASKS[task].bind(small_data(task))), "baselines", killed)
        with pytest.raises(KeyboardInterrupt):
            small_fit(task, folder=tmp_path)
    folder = RunFolder(tmp_path)
    assert folder.model.exists()
    assert folder.embeddings.exists()
    assert folder.read_result() is None
    weights = read_tensors(folder.model)[0]
    run = small_fit(task, folder=tmp_path, on_epoch=lambda *_: pytest.fail("trained again"))
    whole = small_fit(task)
    assert run.result | {"seconds": 0} == whole.result | {"seconds": 0}
    assert all(torch.equal(weights[name], value) for name, value in whole.model.state_dict().items())
    assert folder.read_result() == run.result
    assert load_run(tmp_path, small_data(task)).metrics == whole.metrics


def test_a_baseline_that_fails_is_a_note(tmp_path, monkeypatch):
    def fails(*_):
        raise MemoryError("Unable to allocate 57 GiB")

    expected = small_fit().result["trivial"]
    monkeypatch.setattr(baselines, "shared_neighbors", fails)
    run = small_fit(folder=tmp_path)
    assert run.finished
    assert run.result["doubts"][-2:] == [
        f"the baseline {name} was skipped: Unable to allocate 57 GiB" for name in ("common neighbors", "Adamic-Adar")
    ]
    assert expected.items() - run.result["trivial"].items() == {
        (name, expected[name]) for name in ("common neighbors", "Adamic-Adar")
    }
    assert "Unable to allocate 57 GiB" in (tmp_path / "report.html").read_text()


def test_collections_of_pytorch_geometric():
    class Shapes(InMemoryDataset):
        def __init__(self, graphs):
            super().__init__()
            self.data, self.slices = self.collate(graphs)

    ours = shapes()
    assert same_weights(small_fit("gc", ours), small_fit("gc", Shapes(list(ours))))


def test_a_list_of_graphs_is_a_collection(tmp_path):
    graphs = list(shapes())
    run = small_fit("gc", graphs, folder=tmp_path)
    assert same_weights(run, small_fit("gc", shapes()))
    assert load_run(tmp_path, graphs).evaluate() == run.metrics["test"]
    with pytest.raises(DataError, match="other data than these"):
        load_run(tmp_path, graphs[::-1])


def spoilt_graph(**attributes):
    first, second, *others = shapes()
    return [first, Data(**second.to_dict() | attributes), *others]


def test_threads_follow_the_size_of_the_embedding(monkeypatch):
    """Small graphs get one thread in training and in all that comes after it, large ones those that are there."""
    seen = []
    encode = H2HGCN.forward
    monkeypatch.setattr(H2HGCN, "forward", lambda *args: seen.append(torch.get_num_threads()) or encode(*args))
    torch.set_num_threads(2)
    for task in TASKS:
        run = small_fit(task, epochs=1)
        run.evaluate()
        run.predict([[0, 1]] if task == "lp" else None, None if task == "gc" else small_data())
        assert len(run.embeddings)
    assert set(seen) == {1}
    seen.clear()
    monkeypatch.setattr("h2hgcn.training.settings._LARGE", 100)
    small_fit("gc", epochs=1)
    assert set(seen) == {2}


def test_an_encoder_can_be_given_as_it_is(tmp_path):
    encoder = Flat(16)
    run = small_fit(model=encoder, folder=tmp_path / "run")
    assert run.model.encoder is encoder
    again = small_fit(model=Flat(16), folder=tmp_path / "run")
    assert same_weights(run, again)


def test_an_activation_of_ones_own(tmp_path):
    make = partial(H2HGCN, dim=4, activation=lambda b: b / 2)
    run = small_fit(model=make, folder=tmp_path / "run")
    assert same_weights(run, small_fit(model=make, folder=tmp_path / "run"))


def without_features():
    graph = generate_disease(60)
    graph.x = None
    graph.num_nodes = 60
    return graph


def with_features(change):
    graph = generate_disease(60)
    graph.x = change(graph.x)
    return graph


def spoilt(x):
    x[7, 2] = float("nan")
    return x


def masked():
    graph = generate_disease(60)
    for number, part in enumerate(("train", "val", "test")):
        graph[f"{part}_mask"] = torch.arange(60) % 3 == number
    graph.y[4] = -1
    return graph


def complete():
    index = torch.ones(6, 6).triu(1).nonzero().T
    return Data(x=torch.randn(6, 2), edge_index=torch.cat([index, index.flip(0)], 1), y=torch.arange(6) % 2)


def own_encoder(change, space="euclidean"):
    """What makes an encoder whose points are changed."""

    class Odd(Flat):
        def forward(self, *arguments):
            return change(super().forward(*arguments))

    return partial(Odd, space=space)


def graph_with(**attributes):
    graph = generate_disease(60)
    graph.update(attributes)
    return graph


BAD = [
    ({"task": LinkPrediction}, "task is <class .*pass LinkPrediction()"),
    ({"data": graph_with(node_ids=np.arange(60) // 2)}, "node_ids names 0 more than once"),
    ({"data": graph_with(node_ids=np.arange(59))}, r"node_ids are int64 of shape \(59,\); give each of the 60"),
    ({"data": graph_with(node_ids=np.arange(60) / 2)}, "node_ids are float64 of shape"),
    ({"model": own_encoder(lambda points: points + 2, "ball")}, "the encoder's points is not inside the unit ball"),
    ({"model": own_encoder(lambda points: points + 2, "lorentz")}, "the encoder's points is not on the hyperboloid"),
    ({"model": own_encoder(lambda points: points[:3])}, r"points of shape \(3, 3\); it has to give 200 rows"),
    ({"task": "nc", "data": graph_with(label_names=["a"])}, "label_names has 1 names for 2 classes"),
    ({"task": "nc", "data": graph_with(y=7)}, r"y has shape \(\)"),
    ({"task": "nc", "data": graph_with(y=["a"] * 60)}, "y is <U1 of length 60"),
    ({"task": "nc", "data": graph_with(y=torch.zeros(60, dtype=int), label_names=["a"])}, "nodes have the class a;"),
    ({"data": "e.csv"}, "has no tensor edge_index"),
    ({"task": "gc", "data": spoilt_graph(y=float("nan"))}, "graph 1 has y=nan"),
    ({"task": "gc", "data": spoilt_graph(y=torch.tensor(float("inf")))}, r"graph 1 has y=tensor\(inf\)"),
    ({"task": "gc", "data": spoilt_graph(edge_index=None)}, "graph 1 has no tensor edge_index"),
    ({"task": "link"}, "task is 'link'"),
    ({"seed": -1}, "seed=-1"),
    ({"seed": 0.5}, "seed=0.5"),
    ({"model": "h2h-gcn"}, "model is 'h2h-gcn'"),
    ({"model": H2HGCN}, "the model cannot be made: .*dim"),
    ({"model": partial(H2HGCN, dim=0)}, "dim=0"),
    ({"model": lambda n: torch.nn.Linear(n, 3)}, "the encoder is a Linear"),
    ({"model": partial(Flat, space="sphere")}, "'sphere' is not known"),
    ({"model": lambda n: None}, "the encoder is a NoneType"),
    ({"tensorboard": True}, "pass folder="),
    ({"data": without_features()}, "has no features"),
    ({"data": with_features(lambda x: x.numpy())}, "ndarray of shape"),
    ({"data": with_features(lambda x: x[:, 0])}, "pass a tensor"),
    ({"data": with_features(spoilt)}, "NaN or infinity, first in row 7"),
    ({"data": with_features(lambda x: spoilt(x).to_sparse_coo())}, "NaN or infinity"),
    ({"task": "nc", "data": without_features()}, "has no features"),
    ({"task": NodeClassification(protocol="planetoid"), "data": masked()}, "node 4 is in the val part, but"),
    ({"task": NodeClassification(val=0.34, test=0.34), "data": complete()}, "all pairs of nodes are linked"),
    ({"task": "gc", "data": small_data()}, "not one graph"),
    ({"task": "gc", "data": []}, "list has no y"),
    ({"task": "gc", "data": spoilt_graph(y=None)}, "graph 1 has y=None"),
    ({"task": "gc", "data": spoilt_graph(y=torch.tensor([0, 1]))}, r"graph 1 has y=tensor\(\[0, 1\]\)"),
    ({"task": "gc", "data": spoilt_graph(y=0.5)}, "graph 1 has y=0.5"),
    ({"task": "gc", "data": spoilt_graph(x=torch.ones(5, 3))}, "graph 1 has 3 features .* graph 0 has 5"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_bad_input(options, message):
    with pytest.raises(DataError, match=message):
        small_fit(**options, on_epoch=lambda *_: pytest.fail("trained"))


def test_settings_of_another_kind():
    with pytest.raises(DataError, match=r"settings is a dict; pass TrainingSettings\("):
        fit(LinkPrediction(), small_data(), settings={"epochs": 3})


@pytest.mark.parametrize(
    "attributes",
    [
        {"y": torch.zeros(60, 5)},
        {"y": torch.full((60,), float("nan"))},
        {"y": ["a"] * 60},
        {"y": 7},
        {"y": torch.full((60,), -7)},
        {"label_names": ["a"]},
    ],
    ids=["many", "nan", "texts", "number", "negative", "names"],
)
def test_links_do_not_need_labels_that_can_be_used(attributes, tmp_path):
    run = small_fit(LinkPrediction(val=0.1), graph_with(**attributes), folder=tmp_path, epochs=1)
    assert run.finished
    assert read_embeddings(tmp_path / "embeddings.parquet").labels is None


def test_classes_as_an_array_of_numpy():
    graph = small_data()
    expected = small_fit("nc", graph.clone())
    graph.y = graph.y.numpy()
    assert same_weights(small_fit("nc", graph), expected)


@EVERY_TASK
def test_what_data_were_made_from_is_not_trained(task, tmp_path):
    graphs = list(shapes()) if task == "gc" else [small_data()]
    for graph in graphs:
        graph.x = graph.x.float().requires_grad_()
        graph.edge_weight = torch.ones(graph.edge_index.shape[1], requires_grad=True)
    run = small_fit(task, graphs if task == "gc" else graphs[0], folder=tmp_path, epochs=2)
    assert run.finished
    assert all(graph.x.grad is None and graph.edge_weight.grad is None for graph in graphs)


def test_calls_in_threads_take_turns():
    expected = [small_fit(seed=seed, epochs=8) for seed in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda seed: small_fit(seed=seed, epochs=8), (0, 1)))
    assert all(map(same_weights, runs, expected))
