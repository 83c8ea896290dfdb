"""The explorer in one file that needs neither a server nor a network."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.markup import Html, element, json_block
from h2hgcn.embeddings.scripts import bundle
from h2hgcn.errors import DataError
from h2hgcn.explorer.assets import assets
from h2hgcn.explorer.nearest import KINDS, Entry
from h2hgcn.explorer.payload import Payload, make_payload, with_buffers
from h2hgcn.explorer.scene import Scene
from h2hgcn.files import atomic_write

# Lists of neighbours are made for every node of so many; for more it would take minutes and megabytes.
MAX_LISTED = 20_000
LISTED = 10


def write_page(path: str | Path, scene: Scene) -> Path:
    """Writes the page with all of its data; a file that is there is replaced."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"cannot write a page into {path}; end the name with .html")
    page = build_page(_with_lists(scene, make_payload(scene)))
    with atomic_write(path) as file:
        file.write(page.encode("utf-8"))
    return path


def build_page(payload: Payload) -> str:
    """The served page with its files inside of it, and a policy that lets a browser fetch nothing."""
    files = assets()
    script = bundle({name: file.text for name, file in files.items() if name.endswith(".mjs")}, "main.mjs")
    style = files["theme.css"].text + files["explorer.css"].text
    icon = base64.b64encode(files["icon.svg"].content).decode()
    held = {"about": payload.about, "buffers": {name: _base64(array) for name, array in payload.buffers.items()}}
    head = [
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script, style)),
        f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">',
        element("style", Html(style)),
    ]
    page = re.sub(r"<link [^>]*>\n|<script [^>]*></script>\n", "", files["index.html"].text)
    page = _put_before(page, "</head>", "\n".join(head) + "\n")
    return _put_before(page, "</body>", f"{json_block(held, 'explorer-data')}\n<script>{script}</script>\n")


def _put_before(page: str, mark: str, text: str) -> str:
    before, after = page.split(mark)
    return f"{before}{text}{mark}{after}"


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


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
        }
    return with_buffers(payload, further, lists=LISTED)


def _filled(lists: list[list[Entry]], part: str, empty: float) -> NDArray[np.float64]:
    """Lists of one length, filled up where a node has fewer, one after the other."""
    filled = np.full((len(lists), LISTED), empty)
    for row, entries in zip(filled, lists, strict=True):
        row[: len(entries)] = [np.nan if entry[part] is None else entry[part] for entry in entries]
    return filled.ravel()
