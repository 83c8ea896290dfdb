"""The explorer in one file that needs neither a server nor a network."""

import base64
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.disk import CATEGORIES, RADII
from h2hgcn.embeddings.pages import bundle, digest, render
from h2hgcn.errors import DataError
from h2hgcn.explorer.scene import KINDS, Entry, Scene
from h2hgcn.files import atomic_write

_TYPES = {".css": "text/css", ".mjs": "text/javascript", ".svg": "image/svg+xml"}

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


# How JavaScript's typed arrays are called, by NumPy's kind and size.
_NUMBER_TYPES = {"f8": "float64", "f4": "float32", "u4": "uint32", "u2": "uint16", "u1": "uint8"}


@dataclass(frozen=True)
class Payload:
    """``about`` names the buffers with their types and lengths."""

    about: dict[str, Any]
    buffers: dict[str, NDArray[Any]]

    def part(self, name: str, start: int, count: int) -> bytes:
        return self.buffers[name][start : start + count].tobytes()


def make_payload(scene: Scene) -> Payload:
    """Coordinates keep float64, since a walk may lead to where float32 tells no points apart."""
    text, offsets = _joined_texts(scene.ids)
    buffers: dict[str, NDArray[Any]] = {"points": scene.points.ravel(), "id_text": text, "id_offsets": offsets}
    if scene.layout is not None:
        buffers["layout"] = scene.layout.points.ravel()
    if scene.links is not None:
        buffers |= {"link_offsets": scene.links.offsets, "link_targets": scene.links.targets}
    buffers |= {f"column_{place}": column.values for place, column in enumerate(scene.columns)}
    packed = {name: _little_endian(array) for name, array in buffers.items()}
    return Payload(_about(scene, packed), packed)


def with_buffers(payload: Payload, further: dict[str, NDArray[Any]], **facts: Any) -> Payload:
    """The payload with more buffers, and more said about it."""
    packed = {name: _little_endian(array) for name, array in further.items()}
    described = payload.about["buffers"] | _described(packed)
    return Payload(payload.about | facts | {"buffers": described}, payload.buffers | packed)


def _described(buffers: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {name: {"type": _NUMBER_TYPES[_code(array)], "length": len(array)} for name, array in buffers.items()}


def _about(scene: Scene, buffers: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {
        "title": scene.title,
        "version": version("h2hgcn"),
        "count": len(scene.points),
        "links": None if scene.links is None else scene.links.count,
        "dim": scene.dim,
        "note": scene.note,
        "layout": None if scene.layout is None else {"method": scene.layout.method, "note": scene.layout.keeps},
        "missing_links": scene.nearest.knows_links,
        "directed_links": scene.nearest.directed,
        "columns": [column.described() for column in scene.columns],
        "palette": list(CATEGORIES),
        "ramp": list(RADII),
        "buffers": _described(buffers),
    }


def _joined_texts(ids: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """All ids one after the other in UTF-8, and where each begins: a million texts as two arrays."""
    parts = [str(name).encode("utf-8", "replace") for name in ids.tolist()]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.uint32)
    return np.frombuffer(b"".join(parts), dtype=np.uint8), offsets


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _code(array: NDArray[Any]) -> str:
    return f"{array.dtype.kind}{array.dtype.itemsize}"


# Lists of neighbors are made for every node of so many; for more it would take minutes and megabytes.
MAX_LISTED = 20_000
LISTED = 10


def write_page(path: str | Path, scene: Scene) -> Path:
    """Writes the page with all of its data; a file that is there is replaced."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"cannot write a page into {path}; end the name with .html")
    page = _whole_page(_with_lists(scene, make_payload(scene)))
    with atomic_write(path) as file:
        file.write(page.encode("utf-8"))
    return path


def served_page() -> str:
    """The page that asks a server for its files and data."""
    return render("h2hgcn.explorer", "index.html", inside=None)


def _whole_page(payload: Payload) -> str:
    """The page with its files and data inside of it, and a policy that lets a browser fetch nothing."""
    files = assets()
    script = bundle({name: file.text for name, file in files.items() if name.endswith(".mjs")}, "main.mjs")
    style = files["theme.css"].text + files["explorer.css"].text
    inside = {
        "policy": f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
        "icon": base64.b64encode(files["icon.svg"].content).decode(),
        "style": style,
        "script": script,
        "data": {"about": payload.about, "buffers": {name: _base64(array) for name, array in payload.buffers.items()}},
    }
    return render("h2hgcn.explorer", "index.html", inside=inside)


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _with_lists(scene: Scene, payload: Payload) -> Payload:
    """With the lists that a server would make when asked, if there are not too many nodes."""
    if len(scene.points) > MAX_LISTED:
        return payload
    further: dict[str, NDArray[Any]] = {}
    for kind in KINDS:
        if kind == "links" and not scene.nearest.knows_links:
            continue
        lists = scene.nearest.all_near(kind, range(len(scene.points)), LISTED)
        further |= {
            f"{kind}_node": _filled(lists, "node", 0).astype(np.uint32),
            f"{kind}_distance": _filled(lists, "distance", np.nan).astype(np.float32),
            f"{kind}_probability": _filled(lists, "probability", np.nan).astype(np.float32),
            f"{kind}_linked": _filled(lists, "linked", 0).astype(np.uint8),
        }
    return with_buffers(payload, further, lists=LISTED)


def _filled(lists: list[list[Entry]], part: str, empty: float) -> NDArray[np.float64]:
    """Lists of one length, filled up where a node has fewer, one after the other."""
    filled = np.full((len(lists), LISTED), empty)
    for row, entries in zip(filled, lists, strict=True):
        row[: len(entries)] = [np.nan if entry[part] is None else entry[part] for entry in entries]
    return filled.ravel()
