"""The data of the explorer's page, and the page in one file that needs neither a server nor a network."""

from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.disk import CATEGORIES, RADII
from h2hgcn.embeddings.pages import asset, base64_of, bundle, digest, page_path, render
from h2hgcn.explorer.scene import KINDS, Scene
from h2hgcn.files import atomic_write

MEDIA_TYPES = {".css": "text/css", ".mjs": "text/javascript", ".svg": "image/svg+xml"}

# Lists of neighbors are made for every node of so many; for more it would take minutes and megabytes.
MAX_LISTED = 20_000
LISTED = 10


@cache
def assets() -> dict[str, str]:
    """The texts of all files of the page by name; two are shared with reports."""
    own = files("h2hgcn.explorer").joinpath("static").iterdir()
    texts = {file.name: file.read_text("utf-8") for file in own if Path(file.name).suffix in MEDIA_TYPES}
    return texts | {name: asset(name) for name in ("theme.css", "geodesic.mjs")}


class Payload(NamedTuple):
    """``about`` names the buffers with their types, which are those of JavaScript's typed arrays, and lengths."""

    about: dict[str, Any]
    buffers: dict[str, NDArray[Any]]


def make_payload(scene: Scene, further: dict[str, NDArray[Any]] | None = None) -> Payload:
    """Coordinates keep float64, since a walk may lead to where float32 tells no points apart."""
    layout, links = scene.layout, scene.links
    # all ids one after the other in UTF-8, and where each begins: a million texts as two arrays
    texts = [str(name).encode("utf-8", "replace") for name in scene.ids.tolist()]
    ends = np.cumsum([0, *map(len, texts)])
    buffers: dict[str, NDArray[Any]] = {
        "points": scene.points.ravel(),
        "id_text": np.frombuffer(b"".join(texts), np.uint8),
    }
    buffers["id_offsets"] = ends.astype(np.uint32)
    if layout is not None:
        buffers["layout"] = layout.points.ravel()
    if links is not None:
        buffers |= {"link_offsets": links.indptr.astype(np.uint32), "link_targets": links.indices.astype(np.uint32)}
    buffers |= {f"column_{place}": column.values for place, column in enumerate(scene.columns)} | (further or {})
    packed = {name: np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("<")) for name, x in buffers.items()}
    about = {
        "title": scene.title,
        "version": version("h2hgcn"),
        "count": len(scene.points),
        "links": None if links is None else links.nnz // 2,
        "dim": scene.dim,
        "note": scene.note,
        "layout": None if layout is None else {"method": layout.method, "note": layout.keeps},
        "missing_links": scene.nearest.knows_links,
        "directed_links": scene.nearest.directed,
        "columns": [column.described() for column in scene.columns],
        "palette": list(CATEGORIES),
        "ramp": list(RADII),
        "buffers": {name: {"type": array.dtype.name, "length": len(array)} for name, array in packed.items()},
    }
    return Payload(about | ({"lists": LISTED} if further else {}), packed)


def write_page(path: str | Path, scene: Scene) -> Path:
    """Writes the page with all of its data; a file that is there is replaced."""
    path, texts = page_path(path, "a page"), assets()
    script = bundle({name: text for name, text in texts.items() if name.endswith(".mjs")}, "main.mjs")
    style = texts["theme.css"] + texts["explorer.css"]
    payload = make_payload(scene, _lists(scene))
    inside = {
        # a browser may fetch nothing
        "policy": f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
        "icon": base64_of(texts["icon.svg"].encode()),
        "style": style,
        "script": script,
        "data": {
            "about": payload.about,
            "buffers": {name: base64_of(array.tobytes()) for name, array in payload.buffers.items()},
        },
    }
    page = render("h2hgcn.explorer", "index.html", inside=inside)
    with atomic_write(path) as file:
        file.write(page.encode("utf-8"))
    return path


def _lists(scene: Scene) -> dict[str, NDArray[Any]]:
    """The lists that a server would make when asked, if there are not too many nodes."""
    found: dict[str, NDArray[Any]] = {}
    if len(scene.points) > MAX_LISTED:
        return found
    parts = (("node", 0, "u4"), ("distance", np.nan, "f4"), ("probability", np.nan, "f4"), ("linked", 0, "u1"))
    for kind in KINDS if scene.nearest.knows_links else KINDS[:1]:
        lists = scene.nearest.all_near(kind, range(len(scene.points)), LISTED)
        for part, empty, dtype in parts:
            filled = np.full((len(lists), LISTED), empty, dtype)  # where a node has fewer
            for row, entries in zip(filled, lists, strict=True):
                row[: len(entries)] = [np.nan if entry[part] is None else entry[part] for entry in entries]
            found[f"{kind}_{part}"] = filled.ravel()
    return found
