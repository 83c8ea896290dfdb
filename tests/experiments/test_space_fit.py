import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution

from h2hgcn.errors import DataError
from h2hgcn.experiments.config import read_experiment
from h2hgcn.experiments.tune import Tuning, check_space, search_space, without_idle
from h2hgcn.models import ENCODERS


def flags_of(task, model, **more):
    data = {"dataset": "enzymes"} if task == "gc" else {"dataset": "disease"}
    return {"data": data, "task": {"name": task, **more}, "model": {"name": model}}


@pytest.mark.parametrize("model", sorted(ENCODERS))
def test_our_own_spaces_can_be_built(tmp_path, model):
    for task in ENCODERS[model].tasks:
        check_space(Tuning(flags_of(task, model), search_space(task, model), tmp_path), "ours", 64)


@pytest.mark.parametrize(
    ("place", "dimension", "message"),
    [
        ("model.num_layers", IntDistribution(0, 3), r"my.toml: \[model\] num_layers = 0: "),
        ("model.dim", CategoricalDistribution((8, -1)), r"my.toml: \[model\] dim = -1: "),
        ("training.lr", CategoricalDistribution((0.1, -1.0)), r"my.toml: \[training\] lr = -1.0: "),
        ("task.negatives", IntDistribution(0, 2), r"my.toml: \[task\] negatives = 0: "),
    ],
)
def test_values_that_cannot_be_built(tmp_path, place, dimension, message):
    with pytest.raises(DataError, match=message):
        check_space(
            Tuning({}, {place: dimension, "model.dropout": CategoricalDistribution((0.0, 0.5))}, tmp_path),
            "my.toml",
            64,
        )


def test_values_that_fit_together_alone_are_taken(tmp_path):
    """The five heads need a dimension that they divide, which the settings do not have."""
    space = {"model.heads": CategoricalDistribution((5,)), "model.dim": CategoricalDistribution((15, 30))}
    flags = {"model": {"name": "gat", "num_layers": 2}}
    assert read_experiment(flags).model_options["dim"] % 5
    check_space(Tuning(flags, space, tmp_path), "my.toml", 64)
    with pytest.raises(DataError, match="heads = 5"):
        check_space(Tuning(flags, {"model.heads": CategoricalDistribution((5,))}, tmp_path), "my.toml", 64)


@pytest.mark.parametrize(
    ("task", "model", "classifier", "searched"),
    [
        ("nc", "gcn", {}, False),
        ("nc", "gcn", {"classifier": "centroids"}, True),
        ("nc", "h2h-gcn", {}, True),
        ("nc", "hnn", {"classifier": "linear"}, False),
        ("gc", "diffpool", {}, False),
        ("gc", "hgcn", {}, True),
    ],
)
def test_centroids_are_searched_where_there_are_some(task, model, classifier, searched):
    base = read_experiment(flags_of(task, model, **classifier))
    assert ("task.num_centroids" in without_idle(search_space(task, model), base)) == searched
