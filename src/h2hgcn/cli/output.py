"""Where output goes: results to stdout, everything said beside them to stderr."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

# File names and messages are printed as they are: brackets in them are no markup, and :fire: is no picture.
stdout = Console(markup=False, emoji=False, highlight=False)
stderr = Console(stderr=True, markup=False, emoji=False, highlight=False)


def print_title(title: str) -> None:
    stdout.print(Text(title, style="bold"))


def say(kind: str, style: str, message: object) -> None:
    """An error or a note, in one line that terminals may break as they like."""
    stderr.print(Text.assemble((f"{kind}:", style), f" {message}"), soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def starting() -> Status:
    """Shown on a terminal while PyTorch is imported, which takes seconds."""
    return stderr.status("starting")


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shown on a terminal, and told how many of how many are done."""
    from rich.progress import Progress

    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_json(value: Any) -> None:
    """One JSON document and nothing else, so that it can be piped."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
