"""The configuration of a run: defaults < preset < files < flags."""

import hashlib
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from torch import nn

from h2hgcn.datasets import DATASETS, load_dataset
from h2hgcn.datasets.graph_folder import load_graphs_by_text
from h2hgcn.datasets.loading import has_split, load_graph_by_text
from h2hgcn.datasets.on_disk import fingerprint, is_converted, is_graph
from h2hgcn.datasets.splits import brings_split, check_seed
from h2hgcn.datasets.table_files import TextFormat
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.models import ENCODERS
from h2hgcn.models.encoder import FACTS, PLACEMENT
from h2hgcn.options import checked_options, default_options, option_types, suggestion
from h2hgcn.tasks import TASKS
from h2hgcn.training import TrainingSettings
from h2hgcn.training.building import DEFAULT_DIM, encoder_factory

Sections = dict[str, Any]

SECTIONS = ("data", "task", "model", "training")
COMMAND_LINE = "command line"
# What a run's own config.toml holds beside its settings.
_RECORDS = ("format", "facts", "versions", "search", "final")
_PATHS = ("edges", "graphs", "features", "labels")


@dataclass(frozen=True)
class Layer:
    """Settings, and where they were said, which errors name."""

    origin: str
    sections: Sections

    def options(self, section: str, known: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a section, checked against the known ones."""
        return checked_options(self.sections.get(section, {}), known, f"{self.origin}: [{section}]")


def read_layer(path: Path) -> Layer:
    """A configuration file; also the ``config.toml`` of a run."""
    sections = read_toml(path)
    for name, value in sections.items():
        if name not in (*SECTIONS, *_RECORDS, "seed"):
            raise DataError(f"{path} has no section {name!r} to give; {suggestion(name, (*SECTIONS, 'seed'))}")
        if name in SECTIONS and not isinstance(value, dict):
            raise DataError(f"{path}: {name} is a section; write [{name}] and its options below")
    settings = {name: value for name, value in sections.items() if name not in _RECORDS}
    settings["data"] = absolute_paths(settings.get("data", {}), path.parent)
    return Layer(str(path), settings)


def read_toml(path: Path) -> Sections:
    """What a file of settings holds."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; name a TOML file, such as {path / 'config.toml'}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}") from None


def setting(name: str, value: Any, given: str) -> Sections:
    """An option that is named ``section.option``; ``given`` is how errors quote it."""
    section, dot, option = (part.strip() for part in name.partition("."))
    if not (dot and option):
        raise DataError(f"{given}: write it as section.option=value, such as model.dropout=0.5")
    if section == "data":
        raise DataError(f"{given}: use the flags --dataset, --edges and so on, or the arguments of train()")
    if section not in SECTIONS:
        raise DataError(f"{given}: there is no section {section!r}; {suggestion(section, SECTIONS[1:])}")
    return {section: {option: value}}


# Where the flags of ``h2hgcn train``, which are the keywords of ``h2hgcn.train``, belong in a configuration.
_FLAGS = {
    "task": "task.name", "closure": "task.closure", "protocol": "task.protocol",
    "model": "model.name", "dim": "model.dim", "layers": "model.num_layers",
    "epochs": "training.epochs", "lr": "training.lr", "device": "training.device",
    "batch_size": "training.batch_size", "fanout": "training.fanout", "workers": "training.workers",
}  # fmt: skip


def sections_of(
    graph: Mapping[str, Any],
    settings: Mapping[str, Any] | Sequence[str] | None = None,
    seed: int | None = None,
    search: str | None = None,
    **flags: Any,
) -> Sections:
    """Flags as the sections of a configuration; those that are None were not given. ``settings`` win over them."""
    sections: Sections = {"data": absolute_paths(graph, Path()), "task": {}, "model": {}, "training": {}}
    for name, value in flags.items():
        if value is not None:
            section, _, option = _FLAGS[name].partition(".")
            sections[section][option] = value
    if isinstance(settings, Mapping):
        others = [setting(name, value, f"settings {name}={value}") for name, value in settings.items()]
    else:
        parts = ((text, *text.partition("=")) for text in settings or ())
        others = [
            setting(name if equals else "", value.strip(), f"--set {text}") for text, name, equals, value in parts
        ]
    own = {name: value for name, value in (("seed", seed), ("search", search)) if value is not None}
    return merged(sections, own, *others)


def place_of(data: str | PathLike[str]) -> Sections:
    """A file, a folder of graphs, or the name of a dataset if there is no file of that name."""
    path = Path(data).expanduser()
    if isinstance(data, str) and data.lower() in DATASETS and not (path.is_file() or is_converted(path)):
        return {"dataset": data}
    if path.is_dir() and not is_converted(path):
        return {"graphs": str(path)}
    if path.exists() or not isinstance(data, str):
        return {"edges": str(path)}
    raise DataError(f"{data!r} is neither a file nor a named dataset; {suggestion(data.lower(), DATASETS)}")


def merged(*layers: Mapping[str, Any]) -> Sections:
    """Sections in which later layers win, option by option."""
    result: Sections = {}
    for layer in layers:
        for name, value in layer.items():
            result[name] = {**result.get(name, {}), **value} if isinstance(value, Mapping) else value
    return result


def absolute_paths(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Files as they are found from ``folder``, since a run may be resumed from elsewhere.

    What is no file there may be the name of a node attribute, unless it stands for edges or graphs.
    """

    def absolute(name: str, value: Any) -> Any:
        if name not in _PATHS or not isinstance(value, str) or not value:
            return value
        path = folder / value
        if path.is_file() or (name == "graphs" and path.is_dir()):
            return str(path.resolve())
        return str(path) if name in ("edges", "graphs") else value

    return {name: absolute(name, value) for name, value in data.items()}


_SECTIONS = ("task", "model", "training")


@dataclass(frozen=True)
class Chosen:
    """How settings were chosen: one search, scored on validation data.

    Args:
        by: ``"tune"`` (trials of ``h2hgcn tune``), ``"random"`` (random settings), ``"hand"`` (settings that a person
            picked), or ``"copied"`` (no search: the settings of ``source``).
        trials: How many settings were tried; 0 if it is not recorded.
        seeds: Runs of each, whose mean counted.
        metric: The validation metric.
        source: What the settings were copied from.
        note: What the other fields leave out.
    """

    by: Literal["tune", "random", "hand", "copied"]
    trials: int = 0
    seeds: int = 0
    metric: str = ""
    source: str = ""
    note: str = ""


@dataclass(frozen=True)
class Preset:
    """Settings by section, the file and the table they come from, and the searches that led to them, in their order."""

    name: str
    settings: Sections
    chosen: tuple[Chosen, ...] = ()

    @property
    def frozen(self) -> bool:
        """Whether these are the settings behind a published number."""
        return self.name.startswith("dai2021/")


def find_preset(dataset: str | None, task: str, model: str, variant: str | None = None) -> Preset:
    """The settings frozen for a dataset, for the protocol ``variant`` if there are any; else the defaults."""
    place = f"dai2021/{dataset}.toml"
    frozen = {} if dataset is None else _read(place)
    for prefix, tables in ((f"{variant}.", frozen.get(str(variant), {})), ("", frozen)):
        if model in tables.get(task, {}):
            return _preset(f"{place}:{prefix}{task}.{model}", tables[task][model])
    place = f"defaults/{task}.toml"
    defaults = _read(place)
    return _preset(f"{place}:{model}", merged(defaults["all"], defaults.get(model, {})))


def candidates_for(task: str, model: str) -> dict[str, Sections]:
    """The settings among which a search chooses, by name, each on top of the defaults of a task and a model."""
    defaults = _read(f"defaults/{task}.toml")
    base = _preset("", merged(defaults["all"], defaults.get(model, {}))).settings
    return {entry["name"]: merged(base, _preset("", entry).settings) for entry in defaults.get("race", ())}


def chosen_from(chosen: Any) -> tuple[Chosen, ...]:
    """What ``chosen`` says in a file: one table, or a list of them."""
    return tuple(Chosen(**search) for search in (chosen if isinstance(chosen, list) else [chosen]))


def _preset(name: str, table: dict[str, Any]) -> Preset:
    settings = {section: table[section] for section in _SECTIONS if section in table}
    return Preset(name, settings, chosen_from(table.get("chosen", [])))


@cache
def _read(place: str) -> dict[str, Any]:
    file = files(__package__) / place
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


DEFAULT_DATASET = "disease"

_OPTIONS: dict[str, Any] = {
    "dataset": str, "edges": str, "graphs": str, "features": str, "labels": str, "weights": str, "directed": bool,
    "source": str, "target": str, "header": bool, "delimiter": str, "comment": str, "unlinked": str,
    "without_feature": int,
    "fingerprint": str, "memory": bool,
}  # fmt: skip
_GRAPH_RECORDS = ("fingerprint", "memory")
# What names the data; a layer that has one of these replaces the whole section.
_PLACES = ("dataset", "edges", "graphs")
# What a collection of graphs in files has no use for.
_ONE_GRAPH = ("unlinked", "without_feature")


@dataclass(frozen=True)
class GraphChoice:
    """``options`` is what ``config.toml`` keeps; ``fingerprint`` is that of the data of the run that it comes from.

    ``loaded`` is a graph or a collection from memory, which no options can describe.
    """

    options: dict[str, Any]
    fingerprint: str | None = None
    loaded: Any = field(default=None, compare=False, repr=False)

    @property
    def dataset(self) -> str | None:
        """The name of a named dataset."""
        return self.options.get("dataset")

    @property
    def name(self) -> str:
        """A short name, for folders and titles."""
        if self.loaded is not None:
            return str(getattr(self.loaded, "name", None) or "graph")
        if "graphs" in self.options:
            return Path(self.options["graphs"]).name or "graphs"
        return self.dataset or Path(self.options["edges"]).name.split(".")[0] or "graph"

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it is for, the default first."""
        if "graphs" in self.options or (self.loaded is not None and not is_graph(self.loaded)):
            return ("gc",)
        tasks = ("lp", "nc") if self.dataset is None else DATASETS[self.dataset].tasks
        tasks = tasks if "gc" in tasks else (*tasks, "embed")
        return tuple(sorted(tasks, key=lambda task: task != "lp"))

    def with_direction(self) -> "GraphChoice":
        """The same graph, whose edges have a direction unless it was said that they have none."""
        return (
            self
            if self.dataset or self.loaded is not None
            else replace(self, options={"directed": True, **self.options})
        )

    def protocol(self, task: str) -> str | None:
        """The split that goes with the graph, if it is not the task's own default: the published one of a named
        dataset, or one of nodes that a graph of your own brings along.
        """
        if self.dataset is not None:
            return DATASETS[self.dataset].protocols.get(task)
        return "given" if task == "nc" and self._brings_split() else None

    def _brings_split(self) -> bool:
        if self.loaded is not None:
            return brings_split(self.loaded)
        text = TextFormat(None, self.options.get("delimiter"), self.options.get("comment"))
        return has_split(self.options.get("edges"), self.options.get("labels"), text)


def open_graph(choice: GraphChoice, root: Path | None = None) -> Any:
    """The graph or collection; a warning says if it is not what the configuration was written for."""
    if choice.loaded is not None:
        return choice.loaded
    options = {name: value for name, value in choice.options.items() if name != "without_feature"}
    if choice.dataset is not None:
        data = load_dataset(choice.dataset, root)
    else:
        data = load_graphs_by_text(**options) if "graphs" in options else load_graph_by_text(**options)
    if "without_feature" in choice.options:
        _leave_out(data, choice.options["without_feature"])
    if choice.fingerprint not in (None, fingerprint(data)):
        note = f"{choice.name} is not what the configuration was written for: its data differ, and so will the result"
        warnings.warn(note, DataWarning, stacklevel=2)
    return data


def _leave_out(data: Any, number: int) -> None:
    """Drops one column of the features, counted from 1."""
    width = data.x.shape[1]
    if not 1 <= number <= width:
        raise DataError(f"without_feature={number}: the features are numbered from 1 to {width}")
    kept = [column for column in range(width) if column != number - 1]
    data.x = data.x[:, kept]
    if getattr(data, "feature_names", None) is not None:
        data.feature_names = [data.feature_names[column] for column in kept]


def choose_graph(layers: Sequence[Layer]) -> GraphChoice:
    """The graph of the last layer that names one, with what that and later layers say of it."""
    chosen: dict[str, Any] = {}
    for layer in layers:
        given = layer.options("data", _OPTIONS)
        places = [name for name in _PLACES if name in given]
        if len(places) > 1:
            named = " and ".join(f"the {name} {given[name]!r}" for name in places[:2])
            raise DataError(f"{layer.origin}: {named} are both given; choose one")
        if given.get("memory"):
            raise DataError(
                f"{layer.origin}: the data of that run came from memory, not from files; run it again from Python"
            )
        if "dataset" in given:
            given["dataset"] = _known(given["dataset"], layer.origin)
        chosen = given if places else {**chosen, **given}
        _check_own(chosen, layer.origin)
    chosen = chosen or {"dataset": DEFAULT_DATASET}
    options = {name: value for name, value in chosen.items() if name not in _GRAPH_RECORDS}
    return GraphChoice(options, chosen.get("fingerprint"))


def _known(name: str, origin: str) -> str:
    if name.lower() not in DATASETS:
        raise DataError(f"{origin}: {name!r} is not a named dataset; {suggestion(name.lower(), DATASETS)}")
    return name.lower()


def _check_own(chosen: dict[str, Any], origin: str) -> None:
    """Raises for options that the data have no use for: files and columns belong to a graph of your own."""
    dash = "--" if origin == COMMAND_LINE else ""
    if "graphs" in chosen and (useless := [f"{dash}{name}" for name in _ONE_GRAPH if name in chosen]):
        raise DataError(f"{origin}: {', '.join(useless)}: only for one graph, not for {chosen['graphs']}")
    others = [f"{dash}{name}" for name in chosen if name not in (*_PLACES, "without_feature", *_GRAPH_RECORDS)]
    if others and "edges" not in chosen and "graphs" not in chosen:
        named = f"{chosen['dataset']} is a named dataset" if "dataset" in chosen else "name its edges, too"
        raise DataError(f"{origin}: {', '.join(others)}: only for a graph of your own; {named}")


# What decides on the split.
SPLIT = ("protocol", "val", "test", "split_seed", "num_folds", "fold")


def check_models(files: Sequence[Layer], models: Sequence[str]) -> None:
    """Raises if a file is about a model that is not compared."""
    for file in files:
        name = _model_of(file)
        if name is not None and name not in models:
            raise DataError(f"{file.origin} is for the model {name}, which is not among --models {','.join(models)}")


def files_for(model: str, files: Sequence[Layer]) -> tuple[Layer, ...]:
    """The files that hold for a model: those that name it, and those that name none."""
    return tuple(file for file in files if _model_of(file) in (None, model))


def shared_settings(flags: Sections, files: Sequence[Layer]) -> Sections:
    """The graph, the task and the split, as flags say it, or else files, which must agree."""
    graph = _graph(flags, files)
    task = {
        name: _agreed(name, [file for file in files if name in file.sections.get("task", {})])
        for name in ("name", *SPLIT)
        if name not in flags.get("task", {})
    }
    return {"data": graph, "task": {name: value for name, value in task.items() if value is not None}}


def _graph(flags: Sections, files: Sequence[Layer]) -> dict[str, Any]:
    said = Layer(COMMAND_LINE, flags)
    graph = choose_graph([*files, said])
    for file in files:
        if {"dataset", "edges"} & set(file.sections.get("data", {})):
            other = choose_graph([file, said])
            if other.options != graph.options:
                raise DataError(
                    f"{file.origin} is about the graph {other.name}, another file about {graph.name}; models are "
                    "compared on one graph: say which, with --dataset or --edges"
                )
    return graph.options if graph.fingerprint is None else {**graph.options, "fingerprint": graph.fingerprint}


def _agreed(name: str, files: Sequence[Layer]) -> Any:
    """What files say of an option of the task; None if none does."""
    values = [file.sections["task"][name] for file in files]
    for file, value in zip(files, values, strict=True):
        if value != values[0]:
            flag = {"name": "--task", "protocol": "--protocol"}.get(name, f"--set task.{name}=...")
            raise DataError(
                f"task.{name} is {values[0]} in {files[0].origin} and {value} in {file.origin}; models are compared on "
                f"one split: say which, with {flag}"
            )
    return values[0] if values else None


def _model_of(file: Layer) -> str | None:
    name = file.sections.get("model", {}).get("name")
    return None if name is None else str(name)


DEFAULT_MODEL = "h2h-gcn"

# Settings of training that change how fast a run is, but not its result, beyond rounding.
_WITHOUT_EFFECT = ("device", "threads", "workers", "checkpoint_seconds")

# Options that were added after results had been recorded, each with the value that leaves everything as it was before.
# A digest has no entry for an option that stands at this value, so those records stay valid.
_NEUTRAL: dict[str, dict[str, Any]] = {
    "task": {
        "decoder": "auto",
        "neighborhood_terms": False,
        "feature_terms": False,
        "calibrate": True,
        "final": False,
    },
    "model": {"node_vectors": False, "vector_dropout": 0.0, "use_features": True, "points": "ball"},
    "training": {"vector_lr": None, "vector_weight_decay": None, "stop_after": None},
}

# Datasets whose frozen settings were made for the clean split; those of others belong to the split of the paper.
_CLEAN_SETTINGS = ("disease", "synthetic")

# How settings are searched for: not at all, in a race of a minute, or with every candidate trained in full.
SearchMode = Literal["none", "fast", "thorough"]


@dataclass(frozen=True)
class Experiment:
    """A run: graph, task, model and settings.

    ``preset`` names the file and the table that the settings start from, ``chosen`` the searches that led to them.
    If ``search`` is not ``"none"``, ``candidates`` are the experiments to choose from on validation data.
    """

    graph: GraphChoice
    task: Any
    model_name: str
    model_options: dict[str, Any]
    settings: TrainingSettings
    seed: int
    preset: str
    chosen: tuple[Chosen, ...] = ()
    search: SearchMode = "none"
    candidates: dict[str, "Experiment"] = field(default_factory=dict, compare=False, repr=False)

    @property
    def encoder(self) -> Callable[..., nn.Module]:
        """What makes the encoder."""
        return encoder_factory({"name": self.model_name, **self.model_options})

    def check_held_out(self) -> None:
        """Raises for a task without validation data, by which settings and models are chosen and compared."""
        if len(self.task.parts) < 2:
            raise DataError(f"--task {self.task.name} holds nothing out to compare by; use h2hgcn train for each model")

    def check_final(self) -> None:
        """Raises for a task that has no final fit."""
        if len(self.task.parts) < 2:
            raise DataError(f"--final: --task {self.task.name} holds nothing out and learns everything; leave it out")

    @property
    def digest(self) -> str:
        """A hash of all settings except the seed: records of runs are found by it.

        It covers every option of the task, the model and the training with the value that the run has, given or
        default. So a changed default changes the digests of the runs that rest on it, and their records no longer
        count. Two kinds of options are left out: those without an effect on the result (``_WITHOUT_EFFECT``), and
        those that were added later and stand at their neutral value (``_NEUTRAL``). When you add an option that changes
        nothing at some value, list that value there.
        """
        encoder = ENCODERS[self.model_name]
        types = known_options(self.task.name, self.model_name)["model"]
        defaults = {name: value for name, value in default_options(encoder).items() if name in types}
        sections = {
            "task": asdict(self.task),
            "model": checked_options(defaults | self.model_options, types, "[model]"),
            "training": {name: value for name, value in asdict(self.settings).items() if name not in _WITHOUT_EFFECT},
        }
        covered = {section: _without_neutral(section, options) for section, options in sections.items()}
        parts = (self.graph.options, self.task.name, self.model_name, covered)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """A short name, for folders."""
        return f"{self.graph.name}-{self.task.name}-{self.model_name}-seed{self.seed}"


def read_experiment(
    flags: Sections,
    config: Path | Sequence[Layer] | None = None,
    graph: GraphChoice | None = None,
    origin: str = COMMAND_LINE,
) -> Experiment:
    """The experiment that flags ask for, and below them a file, or files that were read before.

    ``graph`` replaces the graph that these name; ``origin`` is what error messages call the flags.
    """
    files = [read_layer(config)] if isinstance(config, Path) else list(config or ())
    said = [*files, Layer(origin, flags)]
    graph = choose_graph(said) if graph is None else graph
    task_name = _task_name(said, graph)
    model_name = _model_name(said, task_name)
    _check_owner(said, task_name)
    usual = graph.protocol(task_name)
    variant = _variant(said, usual or TASKS[task_name].protocol)
    preset = find_preset(graph.dataset, task_name, model_name, variant)
    published = preset.frozen and variant is None and (usual is not None or graph.dataset in _CLEAN_SETTINGS)
    search = _search_mode(flags, task_name, published or bool(files))
    defaults: Sections = {"model": {"dim": DEFAULT_DIM}, "task": {} if usual is None else {"protocol": usual}}
    below = Layer("defaults", defaults)
    candidates: dict[str, Experiment] = {}
    for name, (place, settings) in _candidates(preset, task_name, model_name).items() if search != "none" else ():
        one = _experiment(graph, task_name, model_name, [below, Layer(name, settings), *said], place)
        if all(one.digest != other.digest for other in candidates.values()):
            candidates[name] = one
    layers = [below, Layer(preset.name, preset.settings), *said]
    found = _experiment(graph, task_name, model_name, layers, preset.name)
    return replace(found, chosen=preset.chosen, search=search, candidates=candidates)


def _experiment(
    graph: GraphChoice, task_name: str, model_name: str, layers: Sequence[Layer], preset: str
) -> Experiment:
    """The experiment that these layers describe, of which later ones win."""
    known = known_options(task_name, model_name)
    options = {section: _options(layers, section, types) for section, types in known.items()}
    task = TASKS[task_name](**options["task"])
    if not task.parts:
        raise DataError("task.final holds nothing out to choose settings and epochs by; train with --final instead")
    directed = graph.with_direction() if getattr(task, "closure", False) else graph
    settings = TrainingSettings(**options["training"])
    return Experiment(directed, task, model_name, options["model"], settings, _seed(layers), preset)


def _candidates(preset: Preset, task: str, model: str) -> dict[str, tuple[str, Sections]]:
    """What a search chooses from: where settings come from, and the settings, by name."""
    found = {"published": (preset.name, preset.settings)} if preset.frozen else {}
    known = known_options(task, model)["model"]
    for name, entry in candidates_for(task, model).items():
        # candidates are for all models, which take the options that they have
        own = {option: value for option, value in entry.get("model", {}).items() if option in known}
        found[name] = (f"defaults/{task}.toml:{name}", {**entry, "model": own})
    return found


def known_options(task: str, model: str) -> dict[str, dict[str, Any]]:
    """The options of a task, a model and the training, with their types."""
    return {
        "task": option_types(TASKS[task]),
        "model": option_types(ENCODERS[model], (*PLACEMENT, *FACTS)),
        "training": option_types(TrainingSettings),
    }


def _check_owner(layers: Sequence[Layer], task_name: str) -> None:
    """Raises for an option that another task has, such as ``closure``."""
    for layer in layers:
        for name in layer.sections.get("task", {}).keys() - {"name", *option_types(TASKS[task_name])}:
            owners = [other for other, task in TASKS.items() if name in option_types(task)]
            if owners:
                raise DataError(
                    f"{layer.origin}: {name} is an option of the task {' or '.join(owners)}, not of {task_name}; "
                    f"add --task {owners[0]}, or leave it out"
                )


def _search_mode(flags: Sections, task: str, settled: bool) -> SearchMode:
    """``"auto"`` searches unless settings are given in a file, or are those behind a published number."""
    given, held_out = flags.get("search", "none"), len(TASKS[task].parts) > 1
    if given == "auto":
        return "none" if settled or not held_out else "fast"
    for known in get_args(SearchMode):
        if given == known:
            if known != "none" and not held_out:
                raise DataError(f"search={known!r}: the task {task} holds nothing out that could choose; leave it out")
            return known
    raise DataError(f"search={given!r} is not known; use auto, {', '.join(get_args(SearchMode))}")


def _without_neutral(section: str, options: Mapping[str, Any]) -> dict[str, Any]:
    neutral = _NEUTRAL[section]
    return {name: value for name, value in options.items() if name not in neutral or value != neutral[name]}


def _variant(layers: Sequence[Layer], usual: str) -> str | None:
    """Which of a data set's presets: the one that is named, or that of a split which is not the usual one."""
    for layer in reversed(layers):
        if "preset" in layer.sections:
            return str(layer.sections["preset"])
        protocol = layer.sections.get("task", {}).get("protocol")
        if protocol is not None:
            return None if protocol == usual else str(protocol)
    return None


def _options(layers: Sequence[Layer], section: str, types: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a section, each layer checked by itself, so that errors can say where they were given."""
    known = types if section == "training" else {"name": str, **types}
    options = merged(*(layer.options(section, known) for layer in layers))
    options.pop("name", None)
    return options


def _task_name(layers: Sequence[Layer], graph: GraphChoice) -> str:
    name = _chosen_name(layers, "task", TASKS, graph.tasks[0])
    if name not in graph.tasks:
        raise DataError(
            f"the task {name} does not fit {graph.name}, which is {_kind(graph)}; choose {' or '.join(graph.tasks)}"
        )
    return name


def _kind(graph: GraphChoice) -> str:
    return "a collection of graphs" if "gc" in graph.tasks else "one graph"


def _model_name(layers: Sequence[Layer], task_name: str) -> str:
    usual = getattr(TASKS[task_name], "default_model", DEFAULT_MODEL)
    name = _chosen_name(layers, "model", ENCODERS, usual)
    if task_name not in ENCODERS[name].tasks:
        others = ", ".join(other for other, encoder in ENCODERS.items() if task_name in encoder.tasks)
        raise DataError(f"the model {name} is for {', '.join(ENCODERS[name].tasks)}, not for {task_name}; use {others}")
    return name


def _chosen_name(layers: Sequence[Layer], section: str, known: Mapping[str, Any], default: str) -> str:
    for layer in reversed(layers):
        given = layer.sections.get(section, {})
        if given.get("own"):
            raise DataError(
                f"{layer.origin}: the model {given.get('name')} is a class of your own; run it again from Python"
            )
        name = str(given.get("name", default))
        if name not in known:
            choices = f"there are: {', '.join(known)}" if section == "task" else suggestion(name, known)
            raise DataError(f"{layer.origin}: {name!r} is not a {section}; {choices}")
        if "name" in given:
            return name
    return default


def _seed(layers: Sequence[Layer]) -> int:
    seed = 0
    for layer in layers:
        given = {name: value for name, value in layer.sections.items() if name == "seed"}
        seed = checked_options(given, {"seed": int}, f"{layer.origin}:").get("seed", seed)
        check_seed(seed)
    return seed
