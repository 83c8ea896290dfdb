"""The configuration of a run: defaults < presets < a file < flags, each as sections of plain values."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from h2hgcn.errors import DataError
from h2hgcn.experiments.presets import preset
from h2hgcn.options import checked_options, suggestion
from h2hgcn.training import TrainingSettings
from h2hgcn.training.description import encoder_factory, settings_from, task_from

Sections = dict[str, Any]

_SECTIONS = ("data", "task", "model", "training")
# What a run's own config.toml holds beside its settings.
_RECORDS = ("format", "facts", "versions")
_DATA_RECORDS = ("fingerprint",)

DATA_OPTIONS: dict[str, Any] = {
    "dataset": str, "edges": str, "features": str, "labels": str, "weights": str, "directed": bool, "source": str,
    "target": str, "header": bool, "unlinked": str,
}  # fmt: skip

DEFAULT_DATASET = "disease"
DEFAULT_MODEL = "h2h-gcn"


@dataclass(frozen=True)
class Experiment:
    """What is to be run, out of names."""

    data: dict[str, Any]
    task: Any
    model_name: str
    encoder: Callable[[int], nn.Module]
    settings: TrainingSettings
    seed: int
    preset: str | None

    @property
    def data_name(self) -> str:
        """A short name of the data, for folders and titles."""
        return str(self.data.get("dataset") or Path(self.data["edges"]).name.split(".")[0])


def read_experiment(flags: Sections, path: Path | None = None, default_task: str = "lp") -> Experiment:
    """The experiment that a file and flags ask for. ``default_task`` is that of the data set."""
    file = {} if path is None else read_sections(path)
    given = merged(file, flags)
    data = checked_options(given.get("data", {}), DATA_OPTIONS, "[data]")
    if not data:
        data = {"dataset": DEFAULT_DATASET}
    if "dataset" in data and "edges" in data:
        raise DataError(f"the dataset {data['dataset']!r} and the edges {data['edges']!r} are both given; choose one")
    if "dataset" not in data and "edges" not in data:
        raise DataError(f"{', '.join(data)}: only for a graph of your own; say which with edges")
    task_name = given.get("task", {}).get("name", default_task)
    model_name = given.get("model", {}).get("name", DEFAULT_MODEL)
    name, known = preset(data.get("dataset"), task_name, model_name)
    sections = merged(known, given)
    seed = sections.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise DataError(f"seed={seed!r} must be a whole number from 0 to {2**32 - 1}")
    return Experiment(
        data,
        task_from({"name": task_name, **sections.get("task", {})}),
        model_name,
        encoder_factory({"name": model_name, **sections.get("model", {})}),
        settings_from(sections.get("training", {})),
        seed,
        name,
    )


def read_sections(path: Path) -> Sections:
    """A configuration file; also the ``config.toml`` of a run."""
    try:
        with path.open("rb") as file:
            sections = tomllib.load(file)
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not TOML: {error}") from None
    for name, value in sections.items():
        if name not in (*_SECTIONS, *_RECORDS, "seed"):
            raise DataError(f"{path} has no section {name!r} to give; {suggestion(name, (*_SECTIONS, 'seed'))}")
        if name in _SECTIONS and not isinstance(value, dict):
            raise DataError(f"{path}: {name} is a section; write [{name}] and its options below")
    data = sections.get("data", {})
    if data.pop("memory", False):
        raise DataError(f"{path}: the data of that run came from memory, not from files; run it again from Python")
    return {
        name: {key: item for key, item in value.items() if key not in _DATA_RECORDS} if name == "data" else value
        for name, value in sections.items()
        if name not in _RECORDS
    }


def setting(text: str) -> Sections:
    """``section.option=value`` as sections, for flags."""
    name, equals, value = text.partition("=")
    section, dot, option = name.strip().partition(".")
    if not equals or not dot or section not in _SECTIONS:
        raise DataError(f"--set {text}: write it as section.option=value, such as model.dropout=0.5")
    return {section: {option: value.strip()}}


def merged(*layers: Mapping[str, Any]) -> Sections:
    """Sections in which later layers win, option by option."""
    result: Sections = {}
    for layer in layers:
        for name, value in layer.items():
            if isinstance(value, Mapping):
                result[name] = {**result.get(name, {}), **value}
            else:
                result[name] = value
    return result
