"""Models from what a caller names, and a run in plain values, as config.toml has it, and back."""

import inspect
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from h2hgcn.datasets.on_disk import fingerprint, is_graph
from h2hgcn.errors import DataError
from h2hgcn.layers.inputs import node_vectors_of
from h2hgcn.layers.spaces import check_space
from h2hgcn.models import ENCODERS, H2HGCN, Encoder
from h2hgcn.models.encoder import FACTS, PLACEMENT
from h2hgcn.options import checked_options, option_types, plain_options, suggestion
from h2hgcn.tasks import TASKS
from h2hgcn.tasks.base import Problem
from h2hgcn.tasks.model import Model
from h2hgcn.training.folder import FORMAT
from h2hgcn.training.settings import TrainingSettings, torch_seeded

# Called with the number of features and, if it has such an argument, of nodes: `num_nodes`.
EncoderFactory = Callable[..., nn.Module]

DEFAULT_DIM = 64


def build_model(
    model: EncoderFactory | nn.Module | None, problem: Problem, settings: TrainingSettings, seed: int
) -> Model:
    """The model of a problem, its weights drawn from the seed; the problem goes to the same device."""
    device, default = settings.torch_device(), torch.get_default_dtype()
    with torch_seeded(seed):
        torch.set_default_dtype(settings.torch_dtype())  # orthonormal weights do not become so by conversion
        try:
            built = problem.build(_encoder(model, problem))
        except (ValueError, TypeError) as error:
            raise DataError(f"the model cannot be made: {error}") from error
        finally:
            torch.set_default_dtype(default)
    if node_vectors_of(built.encoder) is not None and problem.task.items == "graphs":
        raise DataError("node vectors belong to the nodes of one graph; leave node_vectors out for a collection")
    problem.to(device)
    return built.to(device, settings.torch_dtype())


def make_encoder(factory: EncoderFactory, in_features: int, num_nodes: int | None) -> nn.Module:
    """An encoder for so many features and, if the factory asks for that, nodes."""
    try:
        asks = "num_nodes" in inspect.signature(factory).parameters
    except (ValueError, TypeError):  # no Python function
        asks = False
    encoder = factory(in_features, num_nodes=num_nodes) if asks else factory(in_features)
    for name, module in list(sys.modules.items()):  # sources that PyG writes to the temporary folder and has imported
        if name.startswith("torch_geometric.") and name.endswith(("_propagate", "_edge_updater")):
            Path(module.__file__ or "").unlink(missing_ok=True)
    return encoder


def _encoder(model: Any, problem: Problem) -> nn.Module:
    model = getattr(problem.task, "default_encoder", None) if model is None else model
    if model is None:
        return H2HGCN(problem.in_features, DEFAULT_DIM)
    if not callable(model):
        raise DataError(f"model is {model!r}; pass an encoder, or what makes one, such as partial(H2HGCN, dim=16)")
    built = isinstance(model, nn.Module)
    encoder = model if built else make_encoder(model, problem.in_features, problem.num_nodes)
    if not isinstance(encoder, nn.Module) or not all(hasattr(encoder, name) for name in ("space", "dim")):
        raise DataError(
            f"the encoder is a {type(encoder).__name__}; it has to be a module that says in which `space` its points "
            "lie ('lorentz', 'ball' or 'euclidean') and of which dimension (`dim`)"
        )
    check_space(encoder.space)  # type: ignore[arg-type]
    return encoder


_PACKAGES = ("h2hgcn", "torch", "torch-geometric", "geoopt", "numpy", "scipy")


def describe(
    task: Any, encoder: nn.Module, settings: TrainingSettings, seed: int, problem: Problem, data: Any, source: Any
) -> dict[str, Any]:
    """Everything needed to run it again, as TOML can hold it."""
    facts: dict[str, Any] = {"in_features": problem.in_features}
    if getattr(encoder, "config", {}).get("num_nodes") is not None:
        facts["num_nodes"] = problem.num_nodes
    if problem.num_classes is not None:
        facts |= {"num_classes": problem.num_classes, "classes": class_names(data, problem.num_classes)}
    if not is_graph(data) and getattr(data, "feature_names", None) is not None:
        facts["feature_names"] = list(data.feature_names)  # a collection is not in the folder, new graphs need them
    origin = {
        name: value if isinstance(value, str | bool | int | float) else str(value)
        for name, value in plain_options(source).items()
    }
    model: dict[str, Any] = {"name": type(encoder).__name__, "own": True}  # has something of the user's own
    if isinstance(encoder, Encoder) and type(encoder) in ENCODERS.values() and encoder.is_plain():
        options = plain_options(encoder.plain_config())
        model = {"name": encoder.name, **{name: value for name, value in options.items() if name not in FACTS}}
    return {
        "format": FORMAT,
        "seed": seed,
        "data": {**origin, "fingerprint": fingerprint(data)},
        "task": {"name": task.name, **plain_options(asdict(task))},
        "model": model,
        "training": plain_options(asdict(settings)),
        "facts": facts,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
    }


def class_names(data: Any, num_classes: int) -> list[str]:
    """The names of the classes as the labels came, or their numbers."""
    names = getattr(data, "label_names", None)
    if names is None:
        return [str(k) for k in range(num_classes)]
    if len(names) < num_classes:
        raise DataError(f"label_names has {len(names)} names for {num_classes} classes; name each of them, or none")
    return [str(name) for name in names]


def task_from(section: dict[str, Any], where: str) -> Any:
    """A task from its section."""
    name, options = _kind_of(section, where, TASKS, "task")
    return TASKS[name](**checked_options(options, option_types(TASKS[name]), where))


def encoder_factory(section: dict[str, Any], where: str = "[model]") -> Callable[..., Encoder]:
    """What makes an encoder for a number of features and, if it asks for that, of nodes, from its section."""
    if section.get("own"):
        name = section.get("name")
        raise DataError(f"the model {name} has something of your own; pass what makes it as model= to load the run")
    name, options = _kind_of(section, where, ENCODERS, "model")
    kind = ENCODERS[name]
    checked = checked_options(options, option_types(kind, (*PLACEMENT, *FACTS)), where)

    def build(in_features: int, num_nodes: int | None = None) -> Encoder:
        facts = {"num_nodes": num_nodes} if "num_nodes" in option_types(kind) else {}
        try:
            return kind(in_features, **checked, **facts)
        except (ValueError, TypeError) as error:
            raise DataError(f"{where} {error}") from error

    return build


def _kind_of(section: dict[str, Any], where: str, known: Iterable[str], what: str) -> tuple[str, dict[str, Any]]:
    """The name in a section, and its options."""
    options = dict(section)
    name = options.pop("name", None)
    if name not in known:
        raise DataError(f"{where} name={name!r} is not a {what}; {suggestion(str(name), known)}")
    return name, options


def settings_from(section: dict[str, Any], where: str = "[training]") -> TrainingSettings:
    return TrainingSettings(**checked_options(section, option_types(TrainingSettings), where))
