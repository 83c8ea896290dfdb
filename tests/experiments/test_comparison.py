from pathlib import Path

import numpy as np
import pytest
import torch
from runs import shapes
from scipy import stats

from h2hgcn.datasets import DATASETS
from h2hgcn.datasets.disease import generate_disease
from h2hgcn.datasets.registry import NamedDataset
from h2hgcn.errors import DataError
from h2hgcn.experiments.compare import check_varied, default_models, p_value, plan, tabulate
from h2hgcn.experiments.config import read_experiment, read_layer
from h2hgcn.experiments.runner import Outcome


def finished(score, val=0.8, trivial=0.6, parameters=7):
    return Outcome(
        "finished",
        {
            "selection": "auc",
            "metrics": {"test": {"auc": score}, "val": {"auc": val}},
            "trivial": {"degree product": trivial},
            "parameters": parameters,
            "seconds": 2.0,
        },
    )


def by_seed(scores):
    return dict(enumerate(scores))


def table_of(scores, *, vary_split=False, outcomes=None):
    """A table of models with these scores, one a seed."""
    models = list(scores)
    comparison = plan({}, ["h2h-gcn"], max(2, 2, *map(len, scores.values())), vary_split=vary_split)
    object.__setattr__(comparison, "experiments", dict.fromkeys(models, comparison.first))
    found = {(model, seed): finished(score) for model in models for seed, score in enumerate(scores[model])}
    return tabulate(comparison, found | (outcomes or {}), "auc")


def test_every_model_has_the_same_split_and_every_seed_a_folder(tmp_path):
    comparison = plan({"data": {"dataset": "cora"}, "task": {"name": "lp"}}, ["h2h-gcn"], 3, tmp_path)
    assert comparison.seeds == (0, 1, 2)
    assert {cell.folder for cell in comparison.cells} == {tmp_path / f"h2h-gcn-seed{k}" for k in range(3)}
    assert {cell.flags["task"]["protocol"] for cell in comparison.cells} == {"legacy"}  # as its preset says
    assert {cell.flags["task"]["split_seed"] for cell in comparison.cells} == {1234}
    varied = plan({}, ["h2h-gcn"], 3, tmp_path, vary_split=True)
    assert [cell.flags["task"]["split_seed"] for cell in varied.cells] == [1234, 1235, 1236]
    assert plan({}, ["h2h-gcn"], 1).cells[0].folder == Path("runs/compare-disease-lp/h2h-gcn-seed0")


def test_models_that_are_compared_if_none_are_named(tmp_path, monkeypatch):
    (tmp_path / "my.csv").write_text("a,b\nb,c\nc,d\n")
    own = {"data": {"edges": str(tmp_path / "my.csv")}}
    assert default_models({}) == ["h2h-gcn", "hgcn", "gcn", "mlp"]
    assert default_models(own) == ["h2h-gcn", "gcn", "hyp", "euc"]
    (tmp_path / "gat.toml").write_text('[model]\nname = "gat"\n')
    assert default_models(own, [read_layer(tmp_path / "gat.toml")]) == ["h2h-gcn", "gcn", "hyp", "euc", "gat"]
    monkeypatch.setitem(DATASETS, "shapes", NamedDataset("", "", ("gc",), lambda root: shapes()))
    models = default_models({"data": {"dataset": "shapes"}})
    assert models == ["h2h-gcn", "gin", "fingerprint"]
    assert list(plan({"data": {"dataset": "shapes"}}, models, 1).experiments) == models
    with pytest.raises(DataError, match="holds nothing out to compare by"):
        default_models({"task": {"name": "embed"}})


@pytest.mark.parametrize(
    ("models", "seeds", "message"),
    [
        (["h2h-gcn", "h2h-gcn"], 3, "name each model once"),
        ([], 3, "name each model once"),
        (["h2h-gcn", "h2h-gnc"], 3, "did you mean 'h2h-gcn'"),
        (["h2h-gcn"], 0, "--seeds 0"),
    ],
)
def test_comparisons_that_cannot_be(models, seeds, message):
    with pytest.raises(DataError, match=message):
        plan({}, models, seeds)


def test_the_best_comes_first_and_the_others_are_compared_with_it():
    table = table_of({"a": [0.7, 0.72, 0.71], "b": [0.9, 0.91, 0.92], "c": [0.9, 0.9, 0.92]})
    assert [row.model for row in table.rows] == ["b", "c", "a"]
    assert table.level == 0.025
    best, close, far = table.rows
    assert best.p_value is None
    assert table.differs(close) is False
    assert table.differs(far) is True
    assert far.mean == pytest.approx(0.71)
    assert far.deviation == pytest.approx(0.01)
    assert table.trivial == {"degree product": 0.6}
    assert (best.parameters, best.seconds) == (7, 2.0)


def test_what_diverged_is_no_number():
    bad = Outcome("diverged", {}, "the loss is nan")
    table = table_of({"a": [0.7, 0.8], "b": []}, outcomes={("b", 0): bad, ("b", 1): bad})
    lost = table.rows[-1]
    assert lost.model == "b"
    assert (lost.mean, lost.deviation, lost.diverged, lost.parameters) == (None, None, 2, None)
    assert table.differs(lost) is None


def test_one_seed_tells_nothing_of_noise():
    table = table_of({"a": [0.7], "b": [0.9]})
    assert table.rows[1].p_value is None
    assert table.rows[0].deviation is None


def test_the_tests_are_those_of_scipy():
    first, second = np.array([0.9, 0.92, 0.95]), np.array([0.88, 0.93, 0.9])
    assert p_value(by_seed(first), by_seed(second), False) == stats.ttest_ind(first, second, equal_var=False).pvalue
    assert p_value(by_seed(first), by_seed(second), True) == stats.ttest_rel(first, second).pvalue
    assert p_value(by_seed([0.5, 0.5]), by_seed([0.5, 0.5]), False) == 1
    assert p_value(by_seed([0.5, 0.5]), by_seed([0.75, 0.75]), False) == 0
    assert p_value(by_seed([0.25, 0.5]), by_seed([0.5, 0.75]), True) == 0
    assert p_value(by_seed([0.5, 0.6]), by_seed([0.6]), True) is None


def test_scores_that_are_equal_but_for_rounding_are_equal():
    """SciPy would warn of what it computes from such."""
    same, rounded = by_seed([0.1 + 0.2, 0.3, 0.3]), by_seed([0.3, 0.3, 0.1 + 0.2])
    assert p_value(same, rounded, False) == p_value(same, rounded, True) == 1
    assert p_value(same, by_seed([0.4, 0.4, 0.1 + 0.3]), False) == 0


def test_pairs_are_of_the_same_seed():
    first, second = {0: 0.9, 1: 0.5, 2: 0.7, 3: 0.6}, {1: 0.52, 2: 0.71, 3: 0.63}
    pairs = [[0.5, 0.7, 0.6], [0.52, 0.71, 0.63]]
    assert p_value(first, second, True) == pytest.approx(stats.ttest_rel(*pairs).pvalue)
    assert p_value({0: 0.1, 1: 0.2, 2: 0.3}, {2: 0.4, 3: 0.5, 4: 0.6}, True) is None


def test_varied_splits_are_compared_in_pairs():
    scores = {"a": [0.5, 0.7, 0.9], "b": [0.51, 0.712, 0.911]}
    assert table_of(scores, vary_split=True).rows[1].p_value < 0.01 < table_of(scores).rows[1].p_value


def test_a_seed_that_diverged_is_no_pair():
    bad = {("b", 1): Outcome("diverged", {}, "the loss is nan")}
    scores = {"a": [0.9, 0.5, 0.7, 0.6], "b": [0.85, 0.0, 0.69, 0.57]}
    table = table_of(scores, vary_split=True, outcomes=bad)
    row = table.rows[0] if table.rows[0].model == "b" else table.rows[1]
    assert row.test == {0: 0.85, 1: None, 2: 0.69, 3: 0.57}
    assert row.diverged == 1
    pairs = [[0.9, 0.7, 0.6], [0.85, 0.69, 0.57]]
    assert table.rows[1].p_value == pytest.approx(stats.ttest_rel(*pairs).pvalue)


def test_what_has_not_learnt_is_never_the_best():
    lucky = {("a", seed): finished(0.9, val=0.5) for seed in (0, 1)}
    table = table_of({"a": [], "b": [0.7, 0.8]}, outcomes=lucky)
    assert [(row.model, row.learnt) for row in table.rows] == [("b", True), ("a", False)]
    assert table.best.model == "b"
    reversed_links = table_of({"a": [0.4, 0.45], "b": [0.3, 0.35]})  # by their test scores; validation is fine
    assert reversed_links.best is None
    table = table_of({"a": []}, outcomes=lucky)
    assert table.best is None
    assert table.rows[0].p_value is None


def test_classes_are_learnt_above_the_most_frequent_one():
    comparison = plan({}, ["h2h-gcn"], 1)

    def learnt(score):
        result = {
            "selection": "accuracy", "metrics": {"test": {"accuracy": score}, "val": {"accuracy": score}},
            "trivial": {"majority class": 0.4}, "parameters": 1, "seconds": 1.0,
        }  # fmt: skip
        outcomes = {("h2h-gcn", 0): Outcome("finished", result)}
        return tabulate(comparison, outcomes, "accuracy").rows[0].learnt

    assert learnt(0.41)
    assert not learnt(0.4)


def test_what_needs_no_learning_may_have_other_names_in_other_runs():
    other = finished(0.7)
    other.result["trivial"] = {"feature distance": 0.2}
    table = table_of({"a": [0.7]}, outcomes={("a", 1): other})
    assert table.trivial == {"degree product": 0.6, "feature distance": 0.2}


def test_a_split_that_cannot_vary_is_refused():
    data = generate_disease(60)
    masks = {"train_mask": slice(0, 20), "val_mask": slice(20, 40), "test_mask": slice(40, 60)}
    for name, part in masks.items():
        data[name] = torch.zeros(60, dtype=torch.bool)
        data[name][part] = True
    flags = {"data": {"dataset": "cora"}, "task": {"name": "nc"}}
    with pytest.raises(DataError, match="cora has one planetoid split for nc; use --protocol clean"):
        check_varied(plan(flags, ["gcn"], 2, vary_split=True), data)
    check_varied(plan(flags, ["gcn"], 2), data)
    clean = {**flags, "task": {"name": "nc", "protocol": "clean"}}
    check_varied(plan(clean, ["gcn"], 2, vary_split=True), data)


def test_collections_vary_the_fold():
    def folds(seeds, **task):
        flags = {"data": {"dataset": "enzymes"}, "task": {"name": "gc", **task}}
        comparison = plan(flags, ["gin"], seeds, vary_split=True)
        assert comparison.varied == "fold"
        return [cell.flags["task"]["fold"] for cell in comparison.cells]

    assert folds(3) == [0, 1, 2]
    assert folds(3, fold=9) == [9, 0, 1]
    with pytest.raises(DataError, match="there are 10 folds for 11 seeds"):
        folds(11)


def test_the_order_of_models_does_not_decide_on_the_split():
    flags = {"data": {"dataset": "cora"}, "task": {"name": "lp"}}
    for models in (["gcn", "hgnn"], ["hgnn", "gcn"]):  # of hgnn there is no preset for Cora's links
        comparison = plan(flags, models, 1)
        assert {cell.flags["task"]["protocol"] for cell in comparison.cells} == {"legacy"}


def test_files_hold_for_the_model_that_they_name(tmp_path):
    texts = {
        "gcn": "[data]\ndataset = 'cora'\n[task]\nname = 'nc'\nprotocol = 'clean'\n[model]\nname = 'gcn'\ndim = 5\n",
        "mlp": "[model]\nname = 'mlp'\ndim = 6\n",
        "all": "[training]\nepochs = 7\n",
    }
    files = []
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
        files.append(read_layer(tmp_path / f"{name}.toml"))
        (tmp_path / f"{name}.toml").unlink()  # read once, and not by every run anew
    comparison = plan({}, ["mlp", "gcn", "hnn"], 1, files=files)
    for cell in comparison.cells:
        model, _ = cell.key
        experiment = read_experiment(cell.flags, cell.files)
        assert (experiment.graph.name, experiment.task.name, experiment.task.protocol) == ("cora", "nc", "clean")
        assert experiment.settings.epochs == 7
        assert experiment.model_options["dim"] == {"mlp": 6, "gcn": 5}.get(model, experiment.model_options["dim"])
    with pytest.raises(DataError, match=r"mlp.toml is for the model mlp, which is not among --models gcn"):
        plan({}, ["gcn"], 1, files=files)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("[data]\ndataset = 'cora'", "[data]\ndataset = 'pubmed'", "one.toml is about the graph cora, another file"),
        ("[data]\ngraphs = 'a'", "[data]\ngraphs = 'b'", "one.toml is about the graph a, another file about b;"),
        ("[task]\nname = 'nc'", "[task]\nname = 'lp'", "task.name is nc in .*one.toml and lp in .*--task"),
        ("[task]\nprotocol = 'clean'", "[task]\nprotocol = 'legacy'", "task.protocol is clean in .*--protocol"),
    ],
)
def test_files_must_agree_on_graph_task_and_split(tmp_path, first, second, message):
    files = []
    for name, text, model in (("one", first, "gcn"), ("two", second, "mlp")):
        (tmp_path / f"{name}.toml").write_text(f"{text}\n[model]\nname = '{model}'\n")
        files.append(read_layer(tmp_path / f"{name}.toml"))
    with pytest.raises(DataError, match=message):
        plan({}, ["gcn", "mlp"], 1, files=files)
    said = {"data": {"dataset": "cora"}, "task": {"name": "lp", "protocol": "clean"}}
    assert plan(said, ["gcn", "mlp"], 1, files=files).first.graph.name == "cora"
