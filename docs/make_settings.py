"""Prints docs/settings.md: every option of tasks, training and models, from the docstrings.

python docs/make_settings.py > docs/settings.md
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

from h2hgcn.models import ENCODERS
from h2hgcn.models.encoder import FACTS, PLACEMENT
from h2hgcn.options import NONE
from h2hgcn.tasks import TASKS
from h2hgcn.training import TrainingSettings

_INTRODUCTION = """# Settings

Every option of `[task]`, `[model]` and `[training]`, as a configuration file and `--set section.option=value` take
them. `"none"` stands for nothing, where an option may be left out. Defaults are those of the code; the
settings that the first line of `h2hgcn train` names, or the winner of its search, override them. Written by
`python docs/make_settings.py > docs/settings.md`.
"""


def settings_page() -> str:
    parts = [_INTRODUCTION, _section("[training]", TrainingSettings)]
    parts += [_section(f'[task] name = "{name}"', task) for name, task in TASKS.items()]
    parts += [_section(f'[model] name = "{name}"', encoder) for name, encoder in ENCODERS.items()]
    return "\n".join(parts)


def _section(title: str, target: Callable[..., Any]) -> str:
    meanings: dict[str, str] = {}
    for each in reversed(inspect.getmro(target) if inspect.isclass(target) else (target,)):
        meanings |= _meanings(inspect.cleandoc(each.__doc__ or ""))
    settled = (*PLACEMENT, *FACTS) if title.startswith("[model]") else ()
    lines = [f"## {title}", "", "| option | default | what |", "|---|---|---|"]
    for name, parameter in inspect.signature(target).parameters.items():
        if name not in settled:
            lines.append(f"| `{name}` | {_default(parameter.default)} | {meanings.get(name, '')} |")
    return "\n".join([*lines, ""])


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "set by the defaults of the task"
    return f"`{NONE}`" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _meanings(text: str) -> dict[str, str]:
    """The entries below "Args:", one or several names before a colon, indented lines going on."""
    _, found, entries = text.partition("Args:\n")
    meanings = {}
    for entry in re.split(r"\n(?=    \w)", entries if found else ""):
        names, colon, meaning = entry.strip().partition(":")
        if colon:
            plain = " ".join(meaning.split()).replace("``", "`").replace("|", "\\|")
            meanings |= dict.fromkeys((name.strip() for name in names.split(",")), plain)
    return meanings


if __name__ == "__main__":
    print(settings_page(), end="")
