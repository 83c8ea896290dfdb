"""Settings as sections of plain values, each layer of them with the place that it came from."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2hgcn.errors import DataError
from h2hgcn.options import checked_options, suggestion

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


def setting(text: str) -> Sections:
    """``section.option=value`` as sections, for flags."""
    name, equals, value = text.partition("=")
    if not equals:
        raise DataError(f"--set {text}: write it as section.option=value, such as model.dropout=0.5")
    return named_setting(name, value.strip(), f"--set {text}")


def named_setting(name: str, value: Any, given: str) -> Sections:
    """An option that is named ``section.option``; ``given`` is how errors quote it."""
    section, dot, option = (part.strip() for part in name.partition("."))
    if not (dot and option):
        raise DataError(f"{given}: write it as section.option=value, such as model.dropout=0.5")
    if section == "data":
        raise DataError(f"{given}: use the flags --dataset, --edges, --graphs and so on")
    if section not in SECTIONS:
        raise DataError(f"{given}: there is no section {section!r}; {suggestion(section, SECTIONS[1:])}")
    return {section: {option: value}}


def merged(*layers: Mapping[str, Any]) -> Sections:
    """Sections in which later layers win, option by option."""
    result: Sections = {}
    for layer in layers:
        for name, value in layer.items():
            result[name] = {**result.get(name, {}), **value} if isinstance(value, Mapping) else value
    return result


def absolute_paths(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Files as they are found from ``folder``, since a run may be gone on with from elsewhere.

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
