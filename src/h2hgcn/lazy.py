"""What is imported when it is first asked for: public names, since PyTorch Geometric takes seconds, and extras."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from h2hgcn.errors import DataError


def lazy_names(package: str, homes: dict[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package; ``homes`` says which modules its names live in."""
    home_of = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


def import_extra(module: str, title: str, extra: str) -> Any:
    """A module that an extra of this package installs; where it is missing, the error names the command."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(f"{title} is not installed ({error}); pip install 'h2hgcn[{extra}]'") from error
