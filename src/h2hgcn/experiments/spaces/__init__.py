"""What ``h2hgcn tune`` searches, as TOML files: one for a task, and one for a model, which goes before it.

An option is a list of values to choose from, or a table with ``low`` and ``high`` (whole numbers stay whole) and, for a
logarithmic scale, ``log = true``.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.config import SPLIT, Sections, merged, read_toml
from h2hgcn.models import ENCODERS
from h2hgcn.models.encoder import FACTS, PLACEMENT
from h2hgcn.options import checked_options, option_types, suggestion
from h2hgcn.tasks import TASKS
from h2hgcn.training import TrainingSettings


@dataclass(frozen=True)
class Choice:
    """One of these values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Range:
    """A number between two others, both included."""

    low: float
    high: float
    log: bool = False

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


# Options of the task that say what is measured: trials which differ in them cannot be compared.
_MEASURES = ("selection", *SPLIT)

# By section and option.
Space = dict[tuple[str, str], Choice | Range]


def search_space(task: str, model: str, path: Path | None = None) -> Space:
    """What a file asks for; without one, what is known of the task and the model."""
    known = _known_options(task, model)
    if path is not None:
        return dict(_dimensions(read_toml(path), known, str(path)))
    built_in = merged(_built_in(task), _built_in(model))
    fitting = {
        section: {name: value for name, value in options.items() if name in known[section]}
        for section, options in built_in.items()
    }
    return dict(_dimensions(fitting, known, f"the space of {task} and {model}"))


def _known_options(task: str, model: str) -> dict[str, dict[str, Any]]:
    return {
        "task": option_types(TASKS[task]),
        "model": option_types(ENCODERS[model], (*PLACEMENT, *FACTS)),
        "training": option_types(TrainingSettings),
    }


def _built_in(name: str) -> Sections:
    file = files(__name__) / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _dimensions(
    sections: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], origin: str
) -> Iterator[tuple[tuple[str, str], Choice | Range]]:
    for section, options in sections.items():
        if section not in known:
            raise DataError(f"{origin} has a section {section!r}; {suggestion(section, known)}")
        if not isinstance(options, dict):
            raise DataError(f"{origin}: {section} is a section; write [{section}] and its options below")
        for name, values in options.items():
            where = f"{origin}: [{section}]"
            if section == "task" and name in _MEASURES:
                raise DataError(f"{where} {name}: all trials must have the same; give it with --set task.{name}=VALUE")
            dimension = _dimension(values, f"{where} {name}")
            ends = dimension.values if isinstance(dimension, Choice) else (dimension.low, dimension.high)
            for value in ends:
                checked_options({name: value}, known[section], where)
            yield (section, name), dimension


def _dimension(values: Any, where: str) -> Choice | Range:
    if isinstance(values, list) and values:
        if not all(isinstance(value, bool | int | float | str) for value in values):
            raise DataError(f"{where}: choices are texts, numbers, true or false")
        if not all(map(_is_finite, values)):
            raise DataError(f"{where}: numbers must be finite")
        return Choice(tuple(values))
    if not isinstance(values, dict) or not {"low", "high"} <= set(values) <= {"low", "high", "log"}:
        raise DataError(f"{where}: give a list of values, or a table such as {{ low = 0.001, high = 0.1, log = true }}")
    low, high, log = values["low"], values["high"], values.get("log", False)
    ends = (low, high)
    if not all(isinstance(end, int | float) and not isinstance(end, bool) and _is_finite(end) for end in ends):
        raise DataError(f"{where}: low and high must be numbers, and finite")
    if low > high:
        raise DataError(f"{where}: low comes first")
    if not isinstance(log, bool) or (log and low <= 0):
        raise DataError(f"{where}: log is true or false, and needs a low above 0")
    return Range(low, high, log)


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)
