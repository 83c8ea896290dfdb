"""HTML and SVG out of Python values. Text is escaped here and nowhere else, so none can be forgotten."""

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
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
