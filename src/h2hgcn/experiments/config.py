"""The configuration of a run: defaults < preset < files < flags."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from torch import nn

from h2hgcn.datasets.splits.splits import check_seed
from h2hgcn.errors import DataError
from h2hgcn.experiments.graph_choice import GraphChoice, choose_graph
from h2hgcn.experiments.presets import Chosen, candidates_for, find_preset
from h2hgcn.experiments.sections import COMMAND_LINE, Layer, Sections, merged, read_layer
from h2hgcn.models import ENCODERS
from h2hgcn.models.encoder import FACTS, PLACEMENT
from h2hgcn.options import checked_options, default_options, option_types, suggestion
from h2hgcn.tasks import TASKS
from h2hgcn.training import TrainingSettings
from h2hgcn.training.building import DEFAULT_DIM, encoder_factory

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
        types = option_types(encoder, (*PLACEMENT, *FACTS))
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
    usual = graph.protocol(task_name)
    variant = _variant(said, usual or TASKS[task_name].protocol)
    preset = find_preset(graph.dataset, task_name, model_name, variant)
    defaults: Sections = {"model": {"dim": DEFAULT_DIM}, "task": {} if usual is None else {"protocol": usual}}
    task_types = {"name": str, **option_types(TASKS[task_name])}
    _check_owner(said, task_name)
    model_types = {"name": str, **option_types(ENCODERS[model_name], (*PLACEMENT, *FACTS))}
    published = preset.frozen and variant is None and (usual is not None or graph.dataset in _CLEAN_SETTINGS)
    held_out = len(TASKS[task_name].parts) > 1
    search = _search_mode(flags, published or not held_out, bool(files))
    if search != "none" and not held_out:
        raise DataError(f"search={search!r}: the task {task_name} holds nothing out that could choose; leave it out")

    def experiment(name: str, settings: Sections, **more: Any) -> Experiment:
        layers = [Layer("defaults", defaults), Layer(name, settings), *said]
        task = TASKS[task_name](**_options(layers, "task", task_types))
        if not task.parts:
            raise DataError("task.final holds nothing out to choose settings and epochs by; train with --final instead")
        return Experiment(
            graph.with_direction() if getattr(task, "closure", False) else graph,
            task,
            model_name,
            _options(layers, "model", model_types),
            TrainingSettings(**_options(layers, "training", option_types(TrainingSettings))),
            _seed(layers),
            **more,
        )

    candidates: dict[str, Experiment] = {}
    if search != "none":
        settings = {"published": preset.settings} if preset.frozen else {}

        def origin_of(name: str) -> str:
            return preset.name if name in settings else f"defaults/{task_name}.toml:{name}"

        for name, entry in (settings | candidates_for(task_name, model_name)).items():
            # candidates are for all models, which take the options that they have
            known = {
                **entry,
                "model": {key: value for key, value in entry.get("model", {}).items() if key in model_types},
            }
            one = experiment(name, known, preset=origin_of(name))
            if all(one.digest != other.digest for other in candidates.values()):
                candidates[name] = one
    return experiment(
        preset.name, preset.settings, preset=preset.name, chosen=preset.chosen, search=search, candidates=candidates
    )


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


def _search_mode(flags: Sections, published: bool, has_files: bool) -> SearchMode:
    """``"auto"`` searches unless settings are given in a file, or are those behind a published number."""
    given = flags.get("search", "none")
    if given == "auto":
        return "none" if published or has_files else "fast"
    for known in get_args(SearchMode):
        if given == known:
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
    options = merged(*(layer.options(section, types) for layer in layers))
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
