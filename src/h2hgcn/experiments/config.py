"""The configuration of a run: defaults < preset < files < flags."""

import hashlib
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from os import PathLike
from os.path import expanduser
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from torch import nn

from h2hgcn.datasets import DATASETS, load_dataset
from h2hgcn.datasets.graph_folder import load_graphs_by_text
from h2hgcn.datasets.loading import has_split, load_graph_by_text
from h2hgcn.datasets.on_disk import fingerprint, is_converted, is_graph
from h2hgcn.datasets.splits import brings_split, check_seed
from h2hgcn.datasets.table_files import TextFormat
from h2hgcn.errors import DataError, DataWarning
from h2hgcn.experiments.presets import Chosen, Sections, candidates_for, find_preset, merged
from h2hgcn.models import ENCODERS
from h2hgcn.models.encoder import FACTS, PLACEMENT
from h2hgcn.options import checked_options, default_options, option_types, suggestion
from h2hgcn.tasks import TASKS
from h2hgcn.training import TrainingSettings
from h2hgcn.training.building import DEFAULT_DIM, encoder_factory

SECTIONS = ("data", "task", "model", "training")
COMMAND_LINE = "command line"
DEFAULT_DATASET, DEFAULT_MODEL = "disease", "h2h-gcn"
# What a run's own config.toml holds beside its settings.
_RECORDS = ("format", "facts", "versions", "search", "final")
# Options of the task that decide on the split.
SPLIT = ("protocol", "val", "test", "split_seed", "num_folds", "fold")


class Layer(NamedTuple):
    """Settings by section, and where they were given, which errors name."""

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
    """The contents of a user's TOML file."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; name a TOML file, such as {path / 'config.toml'}") from None
    except (ValueError, RecursionError) as error:  # also of numbers too long, and of nesting too deep
        raise DataError(f"{path} is not TOML: {error}") from None


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
    given = [("", _FLAGS[name], value) for name, value in flags.items() if value is not None]
    if isinstance(settings, Mapping):
        given += [(f"settings {name}={value}", name, value) for name, value in settings.items()]
    else:
        for text in settings or ():
            name, equals, value = text.partition("=")
            given.append((f"--set {text}", name if equals else "", value.strip()))
    sections: Sections = {"data": absolute_paths(graph, Path()), "task": {}, "model": {}, "training": {}}
    for origin, name, value in given:
        section, _, option = (part.strip() for part in name.partition("."))
        if not option:
            raise DataError(f"{origin}: write it as section.option=value, such as model.dropout=0.5")
        if section == "data":
            raise DataError(f"{origin}: use the flags --dataset, --edges and so on, or the arguments of train()")
        if section not in SECTIONS:
            raise DataError(f"{origin}: there is no section {section!r}; {suggestion(section, SECTIONS[1:])}")
        sections[section][option] = value
    others = {"seed": seed, "search": search}
    return sections | {name: value for name, value in others.items() if value is not None}


def place_of(data: str | PathLike[str]) -> Sections:
    """A file, a folder of graphs, or the name of a dataset if there is no file of that name."""
    path = Path(expanduser(data))
    if isinstance(data, str) and data.lower() in DATASETS and not (path.is_file() or is_converted(path)):
        return {"dataset": data}
    if path.is_dir() and not is_converted(path):
        return {"graphs": str(path)}
    if path.exists() or not isinstance(data, str):
        return {"edges": str(path)}
    raise DataError(f"{data!r} is neither a file nor a named dataset; {suggestion(data.lower(), DATASETS)}")


def absolute_paths(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Absolute paths of the files of ``folder``, since a run may be resumed from elsewhere.

    What is no file may be the name of a node attribute, unless it stands for edges or graphs.
    """
    absolute = dict(data)
    for name in ("edges", "graphs", "features", "labels"):
        value = data.get(name)
        if isinstance(value, str) and value:
            path = folder / value
            if path.is_file() or (name == "graphs" and path.is_dir()):
                absolute[name] = str(path.resolve())
            elif name in ("edges", "graphs"):
                absolute[name] = str(path)
    return absolute


_GRAPH_OPTIONS: dict[str, Any] = {
    "dataset": str, "edges": str, "graphs": str, "features": str, "labels": str, "weights": str, "directed": bool,
    "source": str, "target": str, "header": bool, "delimiter": str, "comment": str, "unlinked": str,
    "without_feature": int, "fingerprint": str, "memory": bool,
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

    def protocol(self, task: str) -> str | None:
        """The split that goes with the graph, if it is not the task's own default: the published one of a named
        dataset, or one of nodes that a graph of your own brings along.
        """
        if self.dataset is not None:
            return DATASETS[self.dataset].protocols.get(task)
        if task != "nc":
            return None
        if self.loaded is not None:
            return "given" if brings_split(self.loaded) else None
        text = TextFormat(None, self.options.get("delimiter"), self.options.get("comment"))
        return "given" if has_split(self.options.get("edges"), self.options.get("labels"), text) else None


def open_graph(choice: GraphChoice, root: Path | None = None) -> Any:
    """The graph or collection; a warning says if it is not what the configuration was written for."""
    if choice.loaded is not None:
        return choice.loaded
    options = dict(choice.options)
    left_out = options.pop("without_feature", None)
    if choice.dataset is not None:
        data = load_dataset(choice.dataset, root)
    else:
        data = load_graphs_by_text(**options) if "graphs" in options else load_graph_by_text(**options)
    if left_out is not None:
        width = data.x.shape[1]
        if not 1 <= left_out <= width:
            raise DataError(f"without_feature={left_out}: the features are numbered from 1 to {width}")
        kept = [column for column in range(width) if column != left_out - 1]
        data.x = data.x[:, kept]
        if getattr(data, "feature_names", None) is not None:
            data.feature_names = [data.feature_names[column] for column in kept]
    if choice.fingerprint not in (None, fingerprint(data)):
        note = f"{choice.name} is not what the configuration was written for: its data differ, and so will the result"
        warnings.warn(note, DataWarning, stacklevel=2)
    return data


def choose_graph(layers: Sequence[Layer]) -> GraphChoice:
    """The graph of the last layer that names one, with what that and later layers say of it."""
    chosen: dict[str, Any] = {}
    for layer in layers:
        origin, given = layer.origin, layer.options("data", _GRAPH_OPTIONS)
        places = [name for name in _PLACES if name in given]
        if len(places) > 1:
            named = " and ".join(f"the {name} {given[name]!r}" for name in places[:2])
            raise DataError(f"{origin}: {named} are both given; choose one")
        if given.get("memory"):
            raise DataError(
                f"{origin}: the data of that run came from memory, not from files; run it again from Python"
            )
        if "dataset" in given:
            name = given["dataset"].lower()
            if name not in DATASETS:
                raise DataError(f"{origin}: {given['dataset']!r} is not a named dataset; {suggestion(name, DATASETS)}")
            given["dataset"] = name
        chosen = given if places else {**chosen, **given}
        dash = "--" if origin == COMMAND_LINE else ""
        if "graphs" in chosen and (useless := [f"{dash}{name}" for name in _ONE_GRAPH if name in chosen]):
            raise DataError(f"{origin}: {', '.join(useless)}: only for one graph, not for {chosen['graphs']}")
        others = [f"{dash}{name}" for name in chosen if name not in (*_PLACES, "without_feature", *_GRAPH_RECORDS)]
        if others and "edges" not in chosen and "graphs" not in chosen:
            named = f"{chosen['dataset']} is a named dataset" if "dataset" in chosen else "name its edges, too"
            raise DataError(f"{origin}: {', '.join(others)}: only for a graph of your own; {named}")
    chosen = chosen or {"dataset": DEFAULT_DATASET}
    options = {name: value for name, value in chosen.items() if name not in _GRAPH_RECORDS}
    return GraphChoice(options, chosen.get("fingerprint"))


# Settings of training that change how fast a run is, but not its result, beyond rounding.
_WITHOUT_EFFECT = ("device", "threads", "workers", "checkpoint_seconds")

# Options that were added after results had been recorded, each with the value that leaves everything as it was before.
# A digest has no entry for an option that stands at this value, so those records stay valid.
_NEUTRAL: dict[str, dict[str, Any]] = {
    "task": {"decoder": "auto", "neighborhood_terms": False, "feature_terms": False, "calibrate": True, "final": False},
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

    @property
    def name(self) -> str:
        """A short name, for folders."""
        return f"{self.graph.name}-{self.task.name}-{self.model_name}-seed{self.seed}"

    @property
    def sections(self) -> dict[str, dict[str, Any]]:
        """All options of the task and the training, and those of the model that were given."""
        return {"task": asdict(self.task), "model": self.model_options, "training": asdict(self.settings)}

    @property
    def digest(self) -> str:
        """A hash of all settings except the seed: records of runs are found by it.

        It covers every option of the task, the model and the training with the value that the run has, given or
        default. So a changed default changes the digests of the runs that rest on it, and their records no longer
        count. Two kinds of options are left out: those without an effect on the result (``_WITHOUT_EFFECT``), and
        those that were added later and stand at their neutral value (``_NEUTRAL``). When you add an option that changes
        nothing at some value, list that value there.
        """
        types = known_options(self.task.name, self.model_name)["model"]
        defaults = {k: value for k, value in default_options(ENCODERS[self.model_name]).items() if k in types}
        sections = {**self.sections, "model": checked_options(defaults | self.model_options, types, "[model]")}
        covered = {}
        for section, options in sections.items():
            neutral, without_effect = _NEUTRAL[section], _WITHOUT_EFFECT if section == "training" else ()
            options = {name: value for name, value in options.items() if name not in without_effect}
            covered[section] = {name: value for name, value in options.items() if neutral.get(name, ...) != value}
        parts = (self.graph.options, self.task.name, self.model_name, covered)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def check_held_out(self) -> None:
        """Raises for a task without validation data, by which settings and models are chosen and compared."""
        if len(self.task.parts) < 2:
            raise DataError(f"--task {self.task.name} holds nothing out to compare by; use h2hgcn train for each model")

    def check_final(self) -> None:
        """Raises for a task that has no final fit."""
        if len(self.task.parts) < 2:
            raise DataError(f"--final: --task {self.task.name} holds nothing out and learns everything; leave it out")


# A table has thousands of experiments, each with the same few signatures.
_types: Callable[..., dict[str, Any]] = cache(option_types)


def known_options(task: str, model: str) -> dict[str, dict[str, Any]]:
    """The options of a task, a model and the training, with their types."""
    return {
        "task": _types(TASKS[task]),
        "model": _types(ENCODERS[model], (*PLACEMENT, *FACTS)),
        "training": _types(TrainingSettings),
    }


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
    given = [*files, Layer(origin, flags)]
    graph = choose_graph(given) if graph is None else graph
    task, model = _names(given, graph)
    usual = graph.protocol(task)
    variant = _variant(given, usual or TASKS[task].protocol)
    preset = find_preset(graph.dataset, task, model, variant)
    published = preset.frozen and variant is None and (usual is not None or graph.dataset in _CLEAN_SETTINGS)
    search = _search_mode(flags.get("search", "none"), task, published or bool(files))
    below = Layer("defaults", {"model": {"dim": DEFAULT_DIM}, "task": {} if usual is None else {"protocol": usual}})

    def experiment(place: str, origin: str, settings: Sections) -> Experiment:
        return _experiment(graph, task, model, [below, Layer(origin, settings), *given], place)

    candidates: dict[str, Experiment] = {}
    if search != "none":
        if preset.frozen:
            candidates["published"] = experiment(preset.name, "published", preset.settings)
        known = known_options(task, model)["model"]
        for name, settings in candidates_for(task, model).items():
            # candidates are for all models, which take the options that they have
            own = {option: value for option, value in settings.get("model", {}).items() if option in known}
            one = experiment(f"defaults/{task}.toml:{name}", name, {**settings, "model": own})
            if all(one.digest != other.digest for other in candidates.values()):
                candidates[name] = one
    found = experiment(preset.name, preset.name, preset.settings)
    return replace(found, chosen=preset.chosen, search=search, candidates=candidates)


def _experiment(graph: GraphChoice, task_name: str, model: str, layers: Sequence[Layer], preset: str) -> Experiment:
    """The experiment that these layers describe. Each is checked by itself, so that errors can say where they are."""
    options, seed = {}, 0
    for section, types in known_options(task_name, model).items():
        known = types if section == "training" else {"name": str, **types}
        options[section] = merged(*(layer.options(section, known) for layer in layers))
        options[section].pop("name", None)
    for layer in layers:
        if "seed" in layer.sections:
            seed = checked_options({"seed": layer.sections["seed"]}, {"seed": int}, f"{layer.origin}:")["seed"]
            check_seed(seed)
    task = TASKS[task_name](**options["task"])
    if not task.parts:
        raise DataError("task.final holds nothing out to choose settings and epochs by; train with --final instead")
    if getattr(task, "closure", False) and graph.dataset is None and graph.loaded is None:
        graph = replace(graph, options={"directed": True, **graph.options})
    return Experiment(graph, task, model, options["model"], TrainingSettings(**options["training"]), seed, preset)


def _names(layers: Sequence[Layer], graph: GraphChoice) -> tuple[str, str]:
    """The task and the model, which fit the graph and each other."""
    task = _last_name(layers, "task", TASKS, graph.tasks[0])
    if task not in graph.tasks:
        kind = "a collection of graphs" if "gc" in graph.tasks else "one graph"
        choices = " or ".join(graph.tasks)
        raise DataError(f"the task {task} does not fit {graph.name}, which is {kind}; choose {choices}")
    model = _last_name(layers, "model", ENCODERS, getattr(TASKS[task], "default_model", DEFAULT_MODEL))
    if task not in ENCODERS[model].tasks:
        others = ", ".join(other for other, encoder in ENCODERS.items() if task in encoder.tasks)
        raise DataError(f"the model {model} is for {', '.join(ENCODERS[model].tasks)}, not for {task}; use {others}")
    for layer in layers:
        for name in layer.sections.get("task", {}).keys() - {"name", *_types(TASKS[task])}:
            owners = [other for other in TASKS if name in _types(TASKS[other])]
            if owners:
                raise DataError(
                    f"{layer.origin}: {name} is an option of the task {' or '.join(owners)}, not of {task}; "
                    f"add --task {owners[0]}, or leave it out"
                )
    return task, model


def _last_name(layers: Sequence[Layer], section: str, known: Mapping[str, Any], default: str) -> str:
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


def _variant(layers: Sequence[Layer], usual: str) -> str | None:
    """Which of a data set's presets: the one that is named, or that of a split which is not the usual one."""
    for layer in reversed(layers):
        if "preset" in layer.sections:
            return str(layer.sections["preset"])
        protocol = layer.sections.get("task", {}).get("protocol")
        if protocol is not None:
            return None if protocol == usual else str(protocol)
    return None


def _search_mode(given: Any, task: str, settled: bool) -> SearchMode:
    """``"auto"`` searches unless settings are given in a file, or are those behind a published number."""
    held_out = len(TASKS[task].parts) > 1
    if given == "auto":
        return "none" if settled or not held_out else "fast"
    if given not in get_args(SearchMode):
        raise DataError(f"search={given!r} is not known; use auto, {', '.join(get_args(SearchMode))}")
    if given != "none" and not held_out:
        raise DataError(f"search={given!r}: the task {task} holds nothing out that could choose; leave it out")
    mode: SearchMode = given
    return mode
