"""Settings to start from, as TOML files: one for a task, and one for a data set and a task."""

import tomllib
from importlib.resources import files
from typing import Any


def preset(dataset: str | None, task: str, model: str) -> tuple[str | None, dict[str, Any]]:
    """The name and the settings of the preset for a data set, else for any graph, if there is one for the model."""
    names = [] if dataset is None else [f"{dataset}-{task}-{model}"]
    for name in (*names, f"{task}-{model}"):
        file = files(__name__) / f"{name}.toml"
        if file.is_file():
            return name, tomllib.loads(file.read_text(encoding="utf-8"))
    return None, {}
