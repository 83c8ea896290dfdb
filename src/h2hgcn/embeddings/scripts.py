"""Small JavaScript modules as one script, for pages that have to be one file."""

import re
from collections.abc import Mapping

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
            raise ValueError(
                f"{name} imports or exports in a way that cannot be bundled; see h2hgcn.embeddings.scripts"
            )
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
