"""Configuration: which of several places decides, and what is said of mistakes."""

import inspect
from dataclasses import asdict, dataclass

import pytest

from h2hgcn.errors import DataError
from h2hgcn.experiments import config, read_experiment
from h2hgcn.experiments.config import absolute_paths, sections_of
from h2hgcn.experiments.presets import merged
from h2hgcn.models import ENCODERS, H2HGCN
from h2hgcn.tasks import LinkPrediction
from h2hgcn.training import TrainingSettings


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
    assert experiment.preset == "dai2021/disease.toml:lp.h2h-gcn"
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
    experiment = read_experiment(sections_of({}, [text]))
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
        read_experiment(sections_of({}, ["model.dropoot=1"]))


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


def test_the_digest_covers_defaults(monkeypatch):
    """A changed default of any section changes it; giving a default by name does not."""

    @dataclass(frozen=True)
    class Impatient(TrainingSettings):
        patience: int | None = 20

    @dataclass(frozen=True)
    class Harder(LinkPrediction):
        negatives: int = 5

    def digest(**sections):
        return read_experiment({"data": {"edges": "e.csv"}, **sections}).digest

    before = digest()
    given = {"task": {"negatives": 1}, "model": {"dropout": 0.0}, "training": {"patience": 100}}
    assert digest(**given) == before
    for name, value in {"TrainingSettings": Impatient, "TASKS": {"lp": Harder}}.items():
        with monkeypatch.context() as patch:
            patch.setattr(config, name, value)
            assert digest() != before
    signature = inspect.signature(H2HGCN)
    options = [each.replace(default=0.25) if each.name == "dropout" else each for each in signature.parameters.values()]
    monkeypatch.setattr(H2HGCN, "__signature__", signature.replace(parameters=options))
    assert digest() != before
    assert digest(model={"dropout": 0.0}) == before


def test_options_added_later_keep_digests_while_they_change_nothing(monkeypatch):
    @dataclass(frozen=True)
    class Longer(TrainingSettings):
        warmup: int = 0

    before = read_experiment({}).digest
    monkeypatch.setattr(config, "TrainingSettings", Longer)
    assert read_experiment({}).digest != before
    monkeypatch.setitem(config._NEUTRAL["training"], "warmup", 0)
    assert read_experiment({}).digest == before
    assert read_experiment({"training": {"warmup": 1}}).digest != before


@pytest.mark.parametrize(("option", "counts"), [("workers", False), ("threads", False), ("fanout", True)])
def test_what_leaves_the_result_alone_is_not_in_the_digest(option, counts):
    changed = read_experiment({"training": {option: "3"}}).digest
    assert (changed != read_experiment({}).digest) == counts


def test_the_seed_is_not_in_the_digest():
    assert read_experiment({"seed": 1}).digest == read_experiment({}).digest
