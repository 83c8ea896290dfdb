"""Settings to start from: frozen ones for the datasets of the paper, defaults for any other graph.

``dai2021/DATASET.toml`` holds the settings behind published numbers in the tables ``[TASK.MODEL]`` and, for the clean
protocol, ``[clean.TASK.MODEL]``. ``defaults/TASK.toml`` has a table ``[MODEL]`` for each model, ``[all]`` for all, and
``[[race]]`` for the settings among which a search chooses.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from h2hgcn.experiments.sections import Sections, merged

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
