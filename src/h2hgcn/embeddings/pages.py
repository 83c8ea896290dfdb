"""Pages that are one file: Jinja2 templates with their styles, scripts and policies inside."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from h2hgcn.errors import DataError


def page_path(path: str | Path, what: str) -> Path:
    """The path, if it is that of a page."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise DataError(f"cannot write {what} into {path}; end the name with .html")
    return Path(path)


def render(package: str, name: str, **values: object) -> str:
    """A template of a package; every text is escaped on its way into it."""
    return _templates(package).get_template(name).render(values)


@cache
def _templates(package: str) -> Environment:
    loader = PackageLoader(package)
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return found


def asset(name: str) -> str:
    """The text of a file that ships with this package."""
    return files("h2hgcn.embeddings").joinpath("assets", name).read_text(encoding="utf-8")


def base64_of(data: bytes) -> str:
    """Bytes as a page holds them."""
    return base64.b64encode(data).decode()


def digest(text: str) -> str:
    """What a content security policy calls a script or style by."""
    return f"'sha256-{base64_of(hashlib.sha256(text.encode()).digest())}'"


_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.-]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)


def bundle(modules: Mapping[str, str], entry: str) -> str:
    """The module ``entry`` after all that it imports, each once and in a function of its own.

    Modules import by name, ``import { a, b } from "./c.mjs";``, and export constants, functions and classes where they
    define them.
    """
    parts: dict[str, str] = {}

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"modules import each other in a circle: {' → '.join((*above, name))}")
        if name in parts:
            return
        text, needed = modules[name], _IMPORT.findall(modules[name])
        for _, other in needed:
            add(other, (*above, name))
        body = _EXPORT.sub("", _IMPORT.sub("", text))
        if re.search(r"^(import|export)\b", body, re.MULTILINE):
            raise ValueError(f"{name} imports or exports in a way that cannot be bundled; see h2hgcn.embeddings.pages")
        imports = "".join(f"const {{{names}}} = {_variable(other)};\n" for names, other in needed)
        exports = f"return {{ {', '.join(_EXPORT.findall(text))} }};\n"
        parts[name] = f"const {_variable(name)} = (() => {{\n{imports}{body}{exports}}})();\n"

    add(entry, ())
    return '(() => {\n"use strict";\n' + "".join(parts.values()) + "})();\n"


def _variable(module: str) -> str:
    return "$" + re.sub(r"\W", "_", module)
