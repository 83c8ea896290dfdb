"""Settings to start from, as TOML files: for a model and a task, for a data set, too, and for one of its protocols."""

import tomllib
from importlib.resources import files
from typing import Any


def preset(dataset: str | None, task: str, model: str, variant: str | None = None) -> tuple[str | None, dict[str, Any]]:
    """The name and the settings of the preset that fits best; ``variant`` is the protocol it was tuned for, if any."""
    names = [f"{task}-{model}"]
    if dataset is not None:
        names = [f"{dataset}-{task}-{model}-{variant}", f"{dataset}-{task}-{model}", *names]
    for name in names:
        file = files(__name__) / f"{name}.toml"
        if file.is_file():
            return name, tomllib.loads(file.read_text(encoding="utf-8"))
    return None, {}
