"""HTML and SVG out of Python values, and pages that are one file."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from numbers import Integral, Real
from typing import Any

_VOID = frozenset({"meta"})  # elements that have no end


class Html(str):
    """Text that is markup already; every other text is escaped on its way into an element."""

    __slots__ = ()


def element(tag: str, /, *children: str, **attributes: object) -> Html:
    """An element; an attribute that is None is left out, and ``class_`` and ``aria_label`` lose their underscores."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{tag}{written}>" if tag in _VOID else f"<{tag}{written}>{joined(children)}</{tag}>")


def joined(parts: Iterable[str]) -> Html:
    """Parts one after the other, escaped unless they are markup."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table whose first column heads its rows. It scrolls by itself where the page is too narrow for it."""
    head = element("tr", *(element("th", text, scope="col") for text in headers))
    body = (
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    )
    content = element("caption", caption), element("thead", head), element("tbody", *body)
    return element("div", element("table", *content), class_="scroll")


def shown(value: Any, digits: int | None = None) -> str:
    """A value as a person reads it: a number with so many decimals unless it is tiny or huge, nothing as a dash."""
    if value is None or (isinstance(value, Real) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real) and digits is not None and not isinstance(value, Integral):
        usual = value == 0 or 10**-digits < abs(value) < 10**digits
        return f"{float(value):.{digits}{'f' if usual else 'g'}}"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(shown(item, digits) for item in value) or "–"
    return str(value)


def json_block(data: Any, id_: str) -> Html:
    """Data for a script. No text in it can end the block, since a JSON string may spell ``<`` as ``\\u003c``."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return element("script", Html(safe), type="application/json", id=id_)


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
            raise ValueError(f"{name} imports or exports in a way that cannot be bundled; see h2hgcn.embeddings.markup")
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


def build_page(title: str, sections: Sequence[Html], script: str | None) -> Html:
    """A page with nothing outside of itself, and a policy that lets a browser fetch and run nothing else."""
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(asset("theme.css") + asset("report.css"))),
    ]
    end = [element("script", Html(script))] if script else []
    body = element("body", element("header", element("h1", title)), element("main", *sections), *end)
    page = element("html", element("head", *head), body, lang="en")
    return Html(f"<!DOCTYPE html>\n{page}\n")


def _policy(script: str | None) -> str:
    """What a browser may do for this page: nothing but show its own style and pictures, and run this very script."""
    rules = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    if script is None:
        return rules
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{rules}; script-src 'sha256-{digest}'"


def asset(name: str) -> str:
    """The text of a file that ships with this room."""
    return files("h2hgcn.embeddings").joinpath("assets", name).read_text(encoding="utf-8")
