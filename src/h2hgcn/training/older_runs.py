"""Settings of a run that an older version of the package began."""

from collections.abc import Callable
from typing import Any

from h2hgcn.models import ENCODERS
from h2hgcn.options import default_options, plain_options
from h2hgcn.tasks import TASKS
from h2hgcn.training.settings import TrainingSettings


def completed(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration with the options that it does not know yet, at their defaults, or at what was done without them
    (``earlier`` of a task).
    """
    sections: dict[str, Callable[..., Any] | None] = {
        "task": TASKS.get(_name(config, "task")),
        "model": ENCODERS.get(_name(config, "model")),
        "training": TrainingSettings,
    }
    filled = dict(config)
    for section, target in sections.items():
        if target is not None and isinstance(config.get(section), dict):
            missing = default_options(target).keys() - config[section].keys()
            defaults = plain_options(default_options(target)) | getattr(target, "earlier", {})
            filled[section] = config[section] | {name: defaults[name] for name in sorted(missing)}
    return filled


def _name(config: dict[str, Any], section: str) -> str:
    options = config.get(section)
    return str(options.get("name")) if isinstance(options, dict) else ""
