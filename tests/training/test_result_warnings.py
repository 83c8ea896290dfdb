from types import SimpleNamespace

import numpy as np
import pytest
import torch
from runs import Flat, small_data, small_fit
from torch_geometric.data import Data

from h2hgcn.tasks import TASKS, LinkPrediction
from h2hgcn.training.result_warnings import point_spread, serious_warnings, warnings_about


def finished(
    test=0.9, baseline=0.6, best_epoch=7, selection="auc", val=0.9, num_val=400, num_test=400, task="lp", isolated=0,
    points=((0, 0), (3, 4)), classes=None,
):  # fmt: skip
    """What warnings look at in a run, without one."""

    def answerable(pairs):
        return np.arange(len(pairs)) >= isolated

    return SimpleNamespace(
        result={
            "selection": selection,
            "metrics": {"val": {selection: val}, "test": {selection: test, "auc_answerable": 0.7}},
            "trivial": {"feature distance": baseline, "degree product": 0.1},
            "best_epoch": best_epoch,
            "epochs": 9,
        },
        config={"facts": {"classes": ["red", "green", "blue"]}},
        task=SimpleNamespace(items=TASKS[task].items, of_collections=task == "gc", class_weights=False),
        problem=SimpleNamespace(
            split=SimpleNamespace(val=[0] * num_val, test=[0] * num_test, answerable=answerable),
            task=SimpleNamespace(name=task, items=TASKS[task].items),
            num_classes=None if classes is None else 3,
            classes=lambda model, part: tuple(np.array(one) for one in classes),
        ),
        embeddings=torch.tensor(points, dtype=torch.float32),
        model=SimpleNamespace(encoder=SimpleNamespace(space="euclidean"), scale=1.0),
        data=Data(structural=True),
    )


def test_a_good_result_has_no_warnings():
    assert warnings_about(finished()) == []


@pytest.mark.parametrize(
    ("own", "ending"),
    [(0.05, "the model's 5; compare both before you act on recommend --top"), (0.25, "25; within noise"), (0.5, None)],
)
def test_a_baseline_that_ranks_the_top_better(own, ending):
    run = finished()
    run.result["metrics"]["test"]["precision@100"] = own
    run.result["baselines"] = {
        "Adamic-Adar": {"auc": 0.6, "precision@100": 0.305},
        "common neighbors": {"auc": 0.6, "precision@100": 0.2},
        "degree product": {"auc": 0.1},
    }
    found = warnings_about(run)
    assert len(found) == (ending is not None)
    for warning in found:
        assert warning.startswith("Adamic-Adar ranks the top better: of its 100 likeliest pairs 30.5 are test links, ")
        assert warning.endswith(ending)
    run.result["doubts"] = found
    assert serious_warnings(run.result) == found


def test_few_sampled_pairs_at_the_top():
    run = finished()
    run.result["details"] = {"sampled_at_top": 3}
    (warning,) = warnings_about(run)
    assert "probabilities of the likeliest pairs are rough: 3 of the sampled pairs" in warning
    assert serious_warnings({"doubts": [warning]}) == [warning]
    run.result["details"] = {"sampled_at_top": 30}
    assert warnings_about(run) == []


TRUTH = [0] * 6 + [1] * 6 + [2] * 2


@pytest.mark.parametrize(
    ("run", "warning"),
    [
        (
            finished(test=0.56),
            "the baseline feature distance has a test auc of 0.6000, the model 0.5600: do not rely on its predictions",
        ),
        (
            finished(test=0.58),
            "the baseline feature distance has a test auc of 0.6000, the model 0.5800: the difference is within the "
            "noise of 400 test links",
        ),
        (finished(test=0.4, baseline=0.3), "a test auc of 0.4000 is below chance"),
        (finished(val=0.3), "a validation auc of 0.3000 is below chance"),
        (finished(val=0.3, test=0.4, baseline=0.2), "a validation auc of 0.3000 and a test auc of 0.4000 are below"),
        (finished(val=0.52, test=0.49, baseline=0.2), "a validation auc of 0.5200 and a test auc of 0.4900 are no"),
        (finished(num_val=14), "the validation part has 14 links only"),
        (finished(num_test=3, task="gc"), "the test part has 3 graphs only"),
        (finished(best_epoch=1), "the first epoch was the best"),
        (finished(points=((0, 1e-3), (0, 0))), "the embedding has collapsed: 95 % of the pairs of nodes are within"),
        (
            finished(isolated=95),
            "95 of 400 test links end at a node without a training edge; on the other test pairs the auc is 0.7000. "
            "Without features they cannot be predicted",
        ),
        (
            finished(task="nc", selection="accuracy", classes=(TRUTH, [0] * 14)),
            "all test nodes get the class 'red': do not rely on its predictions; try task.class_weights=true",
        ),
        (
            finished(task="nc", selection="accuracy", classes=(TRUTH, [0, 2] * 7)),
            "the class 'green' (6 of 14 test nodes) is never predicted; try",
        ),
    ],
)  # fmt: skip
def test_warnings(run, warning):
    (found,) = warnings_about(run)
    assert found.startswith(warning)


def test_few_pairs_cannot_be_told_from_chance():
    (found, *_) = warnings_about(finished(val=0.55, test=0.45, baseline=0.2, num_val=50, num_test=50))
    assert found.endswith("are no better than chance for so few links (50 and 50): do not rely on its predictions")


@pytest.mark.parametrize(
    "run",
    [
        finished(isolated=20),
        finished(points=((0, 1e-3), (0, 0)), task="gc"),
    ],
)
def test_what_is_too_little_for_a_warning(run):
    assert warnings_about(run) == []


def test_warnings_that_matter_to_predictions():
    poor = finished(test=0.08, baseline=0.5, num_test=50)
    warnings = warnings_about(poor)
    assert [warning.split(" ")[:2] for warning in warnings] == [["the", "baseline"], ["a", "test"], ["the", "test"]]
    assert serious_warnings(poor.result | {"doubts": warnings}) == warnings[:2]


def test_the_spread_is_measured_in_the_space_of_the_points():
    for space in ("euclidean", "lorentz", "ball"):
        encoder = Flat(2, 2, space)
        encoder.linear.weight.data, encoder.linear.bias.data = torch.eye(2), torch.zeros(2)
        points = encoder(torch.tensor([[0.0, 0], [0.3, 0.4]]), None)
        model = SimpleNamespace(encoder=encoder, scale=2.0)
        assert point_spread(points.detach(), model) == pytest.approx(1.0)


def test_a_run_carries_its_warnings():
    run = small_fit()
    assert run.result["doubts"] == warnings_about(run)
    assert "the test part has" in " ".join(run.result["doubts"])
    assert repr(run).startswith("Run(h2h-gcn for lp: val auc 0.")


class AtOnePlace(Flat):
    def forward(self, x, edge_index, edge_weight=None):
        return super().forward(x, edge_index) * 1e-6


@pytest.mark.parametrize("task", ["lp", "nc"])
def test_a_collapsed_run_says_so(task):
    run = small_fit(task, model=AtOnePlace)
    assert any(warning.startswith("the embedding has collapsed") for warning in serious_warnings(run.result))


def test_a_run_that_predicts_one_class_names_it():
    graph = small_data()
    graph.label_names = ["healthy", "ill"]
    run = small_fit("nc", graph, model=AtOnePlace, epochs=1)
    truth, predicted = run.problem.classes(run.model, "test")
    assert len(set(truth.tolist())) == 2
    (found,) = set(predicted.tolist())
    assert any(
        warning.startswith(f"all test nodes get the class {graph.label_names[found]!r}")
        for warning in serious_warnings(run.result)
    )


def test_links_that_a_tree_cannot_answer():
    tree = small_data()
    run = small_fit(LinkPrediction(test=0.3), tree)
    split = run.problem.split
    degrees = np.bincount(split.train.ravel(), minlength=len(tree.x))
    isolated = sum(min(degrees[a], degrees[b]) == 0 for a, b in split.test)
    assert f"{isolated} of {len(split.test)} test links end at a node" in " ".join(run.result["doubts"])
    assert "auc_answerable" in run.metrics["test"]
    assert run.metrics["test"] == run.evaluate("test")
