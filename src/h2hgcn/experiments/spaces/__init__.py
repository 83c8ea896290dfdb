"""What ``h2hgcn tune`` searches, as TOML files: one for a task, and one for a model, which goes before it.

An option is a list of values to choose from, or a table with ``low`` and ``high`` (whole numbers stay whole) and, for a
logarithmic scale, ``log = true``.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2hgcn.errors import DataError
from h2hgcn.experiments.config import SPLIT, Sections, known_options, merged, read_toml
from h2hgcn.options import checked_options, suggestion

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


# Options of the task that say what is measured: trials which differ in them cannot be compared.
_MEASURES = ("selection", *SPLIT)

# By section and option, such as "model.dim".
Space = dict[str, "BaseDistribution"]


def search_space(task: str, model: str, path: Path | None = None) -> Space:
    """What a file asks for; without one, what is known of the task and the model."""
    known = known_options(task, model)
    if path is not None:
        return dict(_dimensions(read_toml(path), known, str(path)))
    built_in = merged(_built_in(task), _built_in(model))
    fitting = {
        section: {name: value for name, value in options.items() if name in known[section]}
        for section, options in built_in.items()
    }
    return dict(_dimensions(fitting, known, f"the space of {task} and {model}"))


def _built_in(name: str) -> Sections:
    file = files(__name__) / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _dimensions(
    sections: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], origin: str
) -> Iterator[tuple[str, "BaseDistribution"]]:
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
            for value in ends_of(dimension):
                checked_options({name: value}, known[section], where)
            yield f"{section}.{name}", dimension


def _dimension(values: Any, where: str) -> "BaseDistribution":
    distributions = load_optuna().distributions
    if isinstance(values, list) and values:
        if not all(isinstance(value, bool | int | float | str) for value in values):
            raise DataError(f"{where}: choices are texts, numbers, true or false")
        if not all(math.isfinite(value) for value in values if isinstance(value, float)):
            raise DataError(f"{where}: numbers must be finite")
        return distributions.CategoricalDistribution(values)
    if not isinstance(values, dict) or not {"low", "high"} <= set(values) <= {"low", "high", "log"}:
        raise DataError(f"{where}: give a list of values, or a table such as {{ low = 0.001, high = 0.1, log = true }}")
    ends, log = (values["low"], values["high"]), values.get("log", False)
    if not all(type(end) in (int, float) and math.isfinite(end) for end in ends):
        raise DataError(f"{where}: low and high must be numbers, and finite")
    if not isinstance(log, bool):
        raise DataError(f"{where}: log is true or false")
    is_whole = all(isinstance(end, int) for end in ends)
    kind = distributions.IntDistribution if is_whole else distributions.FloatDistribution
    try:
        return kind(*ends, log=log)
    except ValueError as error:  # low above high, or a logarithmic scale from 0
        raise DataError(f"{where}: {error}") from error


def ends_of(dimension: "BaseDistribution") -> tuple[Any, ...]:
    """All choices, or both ends of a range."""
    return dimension.choices if hasattr(dimension, "choices") else (dimension.low, dimension.high)


def load_optuna() -> Any:
    """Optuna, which is an extra."""
    try:
        import optuna
    except ImportError as error:
        raise DataError("tuning needs Optuna; install it with: pip install h2hgcn[tune]") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
