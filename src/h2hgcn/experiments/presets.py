"""Settings that come with the package: frozen ones of named datasets, defaults, and candidates of a search."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Sections = dict[str, Any]


def merged(*layers: Mapping[str, Any]) -> Sections:
    """Sections in which later layers win, option by option."""
    result: Sections = {}
    for layer in layers:
        for name, value in layer.items():
            result[name] = {**result.get(name, {}), **value} if isinstance(value, Mapping) else value
    return result


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


@cache
def read_packaged(place: str) -> Sections:
    """A TOML file of this folder; nothing if it does not exist."""
    file = files(__package__) / place
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def find_preset(dataset: str | None, task: str, model: str, variant: str | None = None) -> Preset:
    """The settings frozen for a dataset, for the protocol ``variant`` if there are any; else the defaults."""
    place = f"dai2021/{dataset}.toml"
    frozen = read_packaged(place)
    for prefix, tables in ((f"{variant}.", frozen.get(str(variant), {})), ("", frozen)):
        if model in tables.get(task, {}):
            table = tables[task][model]
            return Preset(f"{place}:{prefix}{task}.{model}", _settings(table), chosen_from(table["chosen"]))
    return Preset(f"defaults/{task}.toml:{model}", _defaults(task, model))


def candidates_for(task: str, model: str) -> dict[str, Sections]:
    """The settings among which a search chooses, by name: ``[[race]]`` entries, on top of the defaults."""
    entries = read_packaged(f"defaults/{task}.toml").get("race", ())
    return {entry["name"]: merged(_defaults(task, model), _settings(entry)) for entry in entries}


def _defaults(task: str, model: str) -> Sections:
    defaults = read_packaged(f"defaults/{task}.toml")
    return _settings(merged(defaults["all"], defaults.get(model, {})))


def _settings(table: Sections) -> Sections:
    return {section: table[section] for section in ("task", "model", "training") if section in table}


def chosen_from(chosen: Any) -> tuple[Chosen, ...]:
    """What ``chosen`` says in a file: one table, or a list of them."""
    return tuple(Chosen(**search) for search in (chosen if isinstance(chosen, list) else [chosen]))
