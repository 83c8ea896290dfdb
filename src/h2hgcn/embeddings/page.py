"""The frame of a report: head, style, and what a browser may do with it."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from h2hgcn.embeddings.markup import Html, element


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
