"""A scene as a page gets it: a description in JSON, and everything long as flat buffers of little-endian numbers."""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2hgcn.embeddings.coloring import CATEGORIES, RADII
from h2hgcn.explorer.scene import Scene

# How JavaScript's typed arrays are called, by NumPy's kind and size.
_TYPES = {"f8": "float64", "f4": "float32", "u4": "uint32", "u2": "uint16", "u1": "uint8"}


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
    return {name: {"type": _TYPES[_code(array)], "length": len(array)} for name, array in buffers.items()}


def _about(scene: Scene, buffers: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {
        "title": scene.title,
        "version": version("h2hgcn"),
        "count": len(scene.points),
        "links": None if scene.links is None else scene.links.count,
        "dim": scene.dim,
        "note": scene.note,
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
