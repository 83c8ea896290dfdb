"""Frozen settings and defaults: which are found, and whether all of them can be run."""

from importlib.resources import files

import pytest

from h2hgcn.datasets import DATASETS
from h2hgcn.experiments import read_experiment
from h2hgcn.experiments.presets import find_preset, read_packaged
from h2hgcn.experiments.reproduce import TABLES, paper_table, runs_of
from h2hgcn.models import ENCODERS
from h2hgcn.tasks import TASKS

FROZEN = sorted(file.name.removesuffix(".toml") for file in (files("h2hgcn.experiments") / "dai2021").iterdir())
METRICS = {"lp": {"auc"}, "nc": {"accuracy", "f1"}, "gc": {"accuracy", "macro_f1"}}


@pytest.mark.parametrize("dataset", FROZEN)
def test_frozen_settings_are_found_run_and_say_how_they_were_chosen(dataset):
    file = read_packaged(f"dai2021/{dataset}.toml")
    assert file.keys() <= {*TASKS, "clean"}
    by_variant = {None: file, "clean": file.get("clean", {})}
    tables = [
        (variant, task, model)
        for variant, tasks in by_variant.items()
        for task in TASKS
        for model in tasks.get(task, {})
    ]
    assert tables
    for variant, task, model in tables:
        named = {} if variant is None else {"preset": variant}
        flags = {"data": {"dataset": dataset}, "task": {"name": task}, "model": {"name": model}, **named}
        experiment = read_experiment(flags)
        prefix = "" if variant is None else f"{variant}."
        assert experiment.preset == f"dai2021/{dataset}.toml:{prefix}{task}.{model}"
        assert isinstance(experiment.encoder(200, num_nodes=10), ENCODERS[model])
        assert by_variant[variant][task][model].keys() <= {"chosen", "task", "model", "training"}
        assert experiment.chosen
        for search in experiment.chosen:
            assert search.by in ("tune", "random", "hand", "copied")
            assert (search.by == "copied") == bool(search.source)
            assert search.trials or search.by == "copied" or search.note
            assert not search.seeds or search.metric in METRICS[task]


@pytest.mark.parametrize("task", TASKS)
def test_defaults_suit_every_model_of_a_task(task):
    """A model without a section of its own has the settings of ``[all]``."""
    models = {name for name, encoder in ENCODERS.items() if task in encoder.tasks}
    assert read_packaged(f"defaults/{task}.toml").keys() - {"all", "race"} <= models
    data = {"dataset": "dd"} if task == "gc" else {"edges": "e.csv"}
    for model in models:
        preset = find_preset(None, task, model)
        assert preset.name == f"defaults/{task}.toml:{model}"
        flags = {"data": data, "task": {"name": task}, "model": {"name": model}}
        experiment = read_experiment(
            {**flags, **{name: flags.get(name, {}) | preset.settings[name] for name in preset.settings}}
        )
        assert isinstance(experiment.encoder(200, num_nodes=10), ENCODERS[model])


def test_a_model_goes_before_all_models():
    preset = find_preset(None, "lp", "hgcn")
    assert preset.settings["model"]["dim"] == 16
    assert find_preset(None, "lp", "h2h-gcn").settings["model"]["dim"] == 64
    assert preset.settings["task"]["scaling"] == "auto"


def test_a_dataset_without_settings_of_its_own_has_the_defaults():
    assert find_preset("hyperbolic-10k", "lp", "gcn") == find_preset(None, "lp", "gcn")
    assert find_preset("cora", "lp", "hgnn", "clean").name == "defaults/lp.toml:hgnn"


@pytest.mark.parametrize(
    ("dataset", "protocol", "variant", "found"),
    [
        ("cora", "clean", None, "clean.nc.gat"),
        ("cora", "planetoid", None, "nc.gat"),
        ("disease", "clean", None, "nc.gat"),  # the usual split, asked for or not
        ("disease", None, None, "nc.gat"),
        ("disease", "clean", "clean", "clean.nc.gat"),
        ("disease", "clean", "legacy", "nc.gat"),
    ],
)
def test_a_split_that_is_not_the_usual_one_has_settings_of_its_own(dataset, protocol, variant, found):
    task = {"name": "nc"} | ({} if protocol is None else {"protocol": protocol})
    named = {} if variant is None else {"preset": variant}
    flags = {"data": {"dataset": dataset}, "task": task, "model": {"name": "gat"}, **named}
    assert read_experiment(flags).preset == f"dai2021/{dataset}.toml:{found}"


@pytest.mark.parametrize("name", TABLES)
def test_no_number_of_a_table_rests_on_the_defaults_for_any_graph(name):
    """So that the defaults can be improved, and published numbers stay."""
    table = paper_table(name)
    for protocol in table.protocols:
        for run in runs_of(table, protocol, 1, (), [row.name for row in table.rows]):
            if not run.fold:
                assert read_experiment(run.flags).preset.startswith("dai2021/"), run


def test_frozen_settings_are_of_named_datasets():
    assert set(FROZEN) <= set(DATASETS)
