"""The files of the page, read once: what is not among them cannot be asked for."""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

_TYPES = {".html": "text/html", ".css": "text/css", ".mjs": "text/javascript", ".svg": "image/svg+xml"}

# What the explorer has in common with reports lies with these.
_SHARED = ("theme.css", "geodesic.mjs")


class Asset(NamedTuple):
    content: bytes
    media_type: str

    @property
    def text(self) -> str:
        return self.content.decode("utf-8")


@cache
def assets() -> dict[str, Asset]:
    """All files of the page by name."""
    own = list(files("h2hgcn.explorer").joinpath("static").iterdir())
    shared = [files("h2hgcn.embeddings").joinpath("assets", name) for name in _SHARED]
    return {
        file.name: Asset(file.read_bytes(), _TYPES[suffix])
        for file in (*own, *shared)
        if (suffix := "." + file.name.rpartition(".")[2]) in _TYPES
    }
