"""Pages that are one file: Jinja2 templates with their styles, scripts and policies inside."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(package: str, name: str, **values: object) -> str:
    """A template of a package; every text is escaped on its way into it."""
    return _templates(package).get_template(name).render(values)


@cache
def _templates(package: str) -> Environment:
    found = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return found


def asset(name: str) -> str:
    """The text of a file that ships with this package."""
    return files("h2hgcn.embeddings").joinpath("assets", name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """What a content security policy calls a script or style by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.-]+)";\n', re.MULTILINE)
_NAMES = re.compile(r"^(?:async )?(?:function\*?|class|const|let) (?:\{([^}]*)\}|(\w+))", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)


def bundle(modules: Mapping[str, str], entry: str) -> str:
    """The module ``entry`` after all that it imports, each once, in one function of its own.

    Modules import by name alone, ``import { a, b } from "./c.mjs";``, and export where they define, so that names mean
    the same in all of them: no two may call different things alike.
    """
    order: list[str] = []
    _visit(modules, entry, order, ())
    parts = [_EXPORT.sub("", _IMPORT.sub("", modules[name])) for name in order]
    for name, part in zip(order, parts, strict=True):
        if re.search(r"^(import|export)\b", part, re.MULTILINE):
            raise ValueError(f"{name} imports or exports in a way that cannot be bundled; see h2hgcn.embeddings.pages")
    _refuse_same_names(order, parts)
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def _visit(modules: Mapping[str, str], name: str, order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"modules import each other in a circle: {' → '.join((*above, name))}")
    if name in order:
        return
    for needed in _IMPORT.findall(modules[name]):
        _visit(modules, needed, order, (*above, name))
    order.append(name)


def _refuse_same_names(order: list[str], parts: list[str]) -> None:
    homes: dict[str, str] = {}
    for module, part in zip(order, parts, strict=True):
        for several, one in _NAMES.findall(part):
            for name in re.findall(r"\w+", several or one):
                if homes.setdefault(name, module) != module:
                    raise ValueError(f"{homes[name]} and {module} both define {name}; call one of them otherwise")
