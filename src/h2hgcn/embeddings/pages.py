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


_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.-]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


def bundle(modules: Mapping[str, str], entry: str) -> str:
    """The module ``entry`` after all that it imports, each once and in a function of its own.

    Modules import by name, ``import { a, b } from "./c.mjs";``, and export constants, functions and classes where they
    define them.
    """
    order: list[str] = []
    _visit(modules, entry, order, ())
    return '(() => {\n"use strict";\n' + "".join(_in_function(name, modules[name]) for name in order) + "})();\n"


def _in_function(name: str, text: str) -> str:
    imports = [f"const {{{names}}} = {_variable(needed)};\n" for names, needed in _IMPORT.findall(text)]
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name} imports or exports in a way that cannot be bundled; see h2hgcn.embeddings.pages")
    exports = ", ".join(_EXPORT.findall(text))
    return f"const {_variable(name)} = (() => {{\n{''.join(imports)}{body}return {{ {exports} }};\n}})();\n"


def _variable(module: str) -> str:
    return "$" + re.sub(r"\W", "_", module)


def _visit(modules: Mapping[str, str], name: str, order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ValueError(f"modules import each other in a circle: {' → '.join((*above, name))}")
    if name in order:
        return
    for _, needed in _IMPORT.findall(modules[name]):
        _visit(modules, needed, order, (*above, name))
    order.append(name)
