"""Configuration: which of several places decides, and what is said of mistakes."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from h2hgcn.errors import DataError
from h2hgcn.experiments import presets as presets_package
from h2hgcn.experiments import read_experiment
from h2hgcn.experiments.sections import absolute_paths, merged, setting
from h2hgcn.models import ENCODERS, H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import TrainingSettings

PRESETS = sorted(path.stem for path in Path(presets_package.__file__).parent.glob("*.toml"))


@pytest.fixture
def file(tmp_path):
    """A configuration file with this text."""

    def write(text):
        path = tmp_path / "my.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_without_anything_it_is_the_disease_tree():
    experiment = read_experiment({})
    assert experiment.name == "disease-lp-h2h-gcn-seed0"
    assert experiment.preset == "disease-lp-h2h-gcn"
    assert isinstance(experiment.task, LinkPrediction)
    assert isinstance(experiment.encoder(7), H2HGCN)


def test_a_file_may_begin_with_a_byte_order_mark(file):
    assert read_experiment({}, file("\ufeff[training]\nepochs = 7\n")).settings.epochs == 7


def test_flags_go_before_the_file_before_the_preset_before_defaults(file):
    preset = read_experiment({}).settings
    path = file("seed = 3\n[training]\nlr = 0.5\nepochs = 7\n[model]\nname = 'h2h-gcn'\ndim = 5\n")
    experiment = read_experiment({"training": {"epochs": 9}}, path)
    default = TrainingSettings()
    assert preset.stiefel_lr != default.stiefel_lr
    chosen = {"epochs": 9, "lr": 0.5, "stiefel_lr": preset.stiefel_lr, "patience": default.patience}
    assert {name: asdict(experiment.settings)[name] for name in chosen} == chosen
    assert experiment.encoder(7).dim == 5
    assert experiment.seed == 3
    assert read_experiment({"seed": 4}, path).seed == 4


@pytest.mark.parametrize(
    ("text", "section", "option", "value"),
    [
        ("model.dropout=0.5", "model", "dropout", 0.5),
        (" training.patience = none ", "training", "patience", None),
        ("task.learn_decoder=false", "task", "learn_decoder", False),
        ("training.dtype=float64", "training", "dtype", "float64"),
        ("model.num_layers=3", "model", "num_layers", 3),
    ],
)
def test_settings_by_text(text, section, option, value):
    experiment = read_experiment(setting(text))
    parts = {"model": experiment.encoder(7).config, "task": asdict(experiment.task)}
    assert parts.get(section, asdict(experiment.settings))[option] == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mdoel]\n", "my.toml has no section 'mdoel' to give; did you mean 'model'"),
        ("model = 3\n", "my.toml: model is a section"),
        ("[model]\ndropoot = 0.5\n", r"my.toml: \[model\] has no option 'dropoot'; did you mean 'dropout'"),
        ("[model]\nin_features = 5\n", r"my.toml: \[model\] has no option 'in_features'"),
        ("[training]\nname = 'x'\n", r"my.toml: \[training\] has no option 'name'"),
        ("[training]\nepochs = 'many'\n", r"my.toml: \[training\] epochs='many' must be a whole number"),
        ("[task]\nprotocol = 'planetoid'\n", r"my.toml: \[task\] protocol='planetoid' is not known; use one of clean"),
        ("[task]\nname = 'np'\n", "my.toml: 'np' is not a task"),
        ("[task]\nname = ['lp']\n", "is not a task"),
        ("[model]\nname = 'h2hgcn'\n", "my.toml: 'h2hgcn' is not a model; did you mean 'h2h-gcn'"),
        ("[model]\nname = 'Mine'\nown = true\n", "my.toml: the model Mine is a class of your own"),
        ("[data]\ndataset = 'coraa'\n", "my.toml: 'coraa' is not a named dataset; did you mean 'cora'"),
        ("[data]\ndata = 'cora'\n", r"my.toml: \[data\] has no option 'data'; did you mean 'dataset'"),
        ("[data]\nmemory = true\n", "my.toml: the data of that run came from memory"),
        ("[data]\nedges = 'e.csv'\ndataset = 'cora'\n", "both given; choose one"),
        ("[data]\nlabels = 'y.csv'\n", "my.toml: labels: only for a graph of your own; name its edges"),
        ("seed = 1.5\n", "my.toml: seed=1.5 must be a whole number"),
        ("seed = -1\n", "seed=-1"),
        ("[training\n", "my.toml is not TOML: .*line 1"),
    ],
)
def test_a_mistake_is_told_with_its_place(file, text, message):
    with pytest.raises(DataError, match=message):
        read_experiment({}, file(text))


def test_flags_are_a_place_too():
    with pytest.raises(DataError, match=r"command line: \[model\] has no option 'dropoot'"):
        read_experiment(setting("model.dropoot=1"))


def test_a_graph_that_flags_name_takes_the_place_of_that_of_the_file(file):
    path = file("[data]\nedges = 'e.csv'\nlabels = 'y.csv'\nfingerprint = 'abc'\n")
    assert read_experiment({"data": {"dataset": "Cora"}}, path).graph.options == {"dataset": "cora"}
    more = read_experiment({"data": {"directed": True}}, path).graph
    assert more.options["directed"]
    assert more.options["edges"].endswith("e.csv")
    assert more.fingerprint == "abc"
    with pytest.raises(DataError, match="directed: only for a graph of your own; cora is a named dataset"):
        read_experiment({"data": {"dataset": "cora", "directed": True}}, path)


def test_files_are_looked_for_beside_the_file_that_names_them(file, tmp_path):
    (tmp_path / "e.graphml").write_text("")
    found = read_experiment({}, file("[data]\nedges = 'e.graphml'\nlabels = 'kind'\n")).graph
    assert found.options == {"edges": str(tmp_path / "e.graphml"), "labels": "kind"}
    assert found.name == "e"
    assert absolute_paths({"edges": "none.csv"}, tmp_path) == {"edges": str(tmp_path / "none.csv")}


@pytest.mark.parametrize(
    ("dataset", "default", "misfit"), [("cora", "lp", "gc"), ("disease_nc", "lp", "gc"), ("enzymes", "gc", "lp")]
)
def test_tasks_fit_the_data(file, dataset, default, misfit):
    path = file(f"[data]\ndataset = '{dataset}'\n")
    assert read_experiment({}, path).task.name == default
    with pytest.raises(DataError, match=f"the task {misfit} does not fit {dataset}"):
        read_experiment({"task": {"name": misfit}}, path)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_found_and_whole(name):
    dataset, task, model, protocol = re.fullmatch(r"(?:(\w+)-)?(lp|nc|gc)-(.+?)(?:-(clean))?", name).groups()
    variant = {} if protocol is None else {"preset": protocol}
    found, settings = presets_package.preset(dataset, task, model, protocol)
    assert found == name
    data = {"dataset": dataset or "dd"} if task == "gc" or dataset else {"edges": "e.csv"}
    flags = {"data": data, "task": {"name": task}, "model": {"name": model}, **variant}
    experiment = read_experiment(merged(flags, settings))  # whatever a preset of dd's own says
    assert dataset is None or experiment.preset == name
    assert isinstance(experiment.encoder(200, num_nodes=10), ENCODERS[model])


@pytest.mark.parametrize(
    ("dataset", "protocol", "variant", "found"),
    [
        ("cora", "clean", None, "cora-nc-gat-clean"),
        ("cora", "planetoid", None, "cora-nc-gat"),
        ("disease", "clean", None, "disease-nc-gat"),  # the usual split, asked for or not
        ("disease", None, None, "disease-nc-gat"),
        ("disease", "clean", "clean", "disease-nc-gat-clean"),
        ("disease", "clean", "legacy", "disease-nc-gat"),
    ],
)
def test_a_split_that_is_not_the_usual_one_has_a_preset_of_its_own(dataset, protocol, variant, found):
    task = {"name": "nc"} | ({} if protocol is None else {"protocol": protocol})
    named = {} if variant is None else {"preset": variant}
    flags = {"data": {"dataset": dataset}, "task": task, "model": {"name": "gat"}, **named}
    assert read_experiment(flags).preset == found


@pytest.mark.parametrize("model", sorted(ENCODERS))
def test_the_split_is_that_of_the_dataset_and_the_task(model):
    usual = {("cora", "lp"): "legacy", ("cora", "nc"): "planetoid", ("enzymes", "gc"): "fair-comparison",
             ("disease", "lp"): "clean", ("dd", "gc"): "fair-comparison"}  # fmt: skip
    for (dataset, task), protocol in usual.items():
        if task in ENCODERS[model].tasks:
            flags = {"data": {"dataset": dataset}, "task": {"name": task}, "model": {"name": model}}
            assert read_experiment(flags).task.protocol == protocol
            assert read_experiment(merged(flags, {"task": {"protocol": "clean"}})).task.protocol == "clean"


def test_later_layers_win_option_by_option():
    assert merged({"a": {"x": 1, "y": 1}, "s": 1}, {"a": {"y": 2}, "s": 2}) == {"a": {"x": 1, "y": 2}, "s": 2}
