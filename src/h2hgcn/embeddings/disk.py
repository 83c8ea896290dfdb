"""Points in the Poincaré disk: projection, geodesics, colors, and a figure."""

import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from h2hgcn.embeddings.coordinates import check_coordinates, check_points, lorentz_tensor
from h2hgcn.embeddings.files import label_column
from h2hgcn.embeddings.nearest import check_edges
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write
from h2hgcn.geometry import klein, lorentz
from h2hgcn.geometry.numerics import ball_gap, safe_norm, safe_reciprocal

Plane = NDArray[np.float64]


@dataclass(frozen=True)
class DiskProjection:
    """Points ``(n, 2)`` in the unit disk (``space="poincare"``) or in the unit square from 0 to 1 (``"euclidean"``).

    ``center`` is what a projection has in the middle, in Lorentz coordinates or Euclidean ones; ``keeps`` says what is
    true of the picture. ``method`` is how points were placed, see ``layout_in_disk``.
    """

    points: Plane
    space: Literal["poincare", "euclidean"]
    center: NDArray[np.float64]
    keeps: str
    method: Literal["projection", "neighbors", "tree"] = "projection"


def project_to_disk(points: Any, space: str = "lorentz", *, center: bool = True) -> DiskProjection:
    """Points in the plane; what is kept of them is in the result's ``keeps``, and why in this module's beginning.

    With ``center`` the middle of the disk is the points' Einstein midpoint, without it the origin of the space.
    Euclidean points are ccentered and turned to their two principal components, with one scale for both.
    """
    kind = check_coordinates(space)
    if kind == "euclidean":
        return _principal_components(check_points(points, "euclidean").astype(np.float64))
    with torch.no_grad():
        return _hyperbolic(lorentz_tensor(points, kind), center)


def _hyperbolic(points: Tensor, center: bool) -> DiskProjection:
    origin = torch.zeros_like(points[0])
    origin[0] = 1.0
    middle = klein.einstein_midpoint(points) if center else origin
    vectors = _vectors_from(middle, points)
    plane = vectors @ _principal_axes(vectors)
    # beyond a distance of about 36 the disk has no float64 numbers left: points stop short of the boundary
    radii = torch.tanh(lorentz.distance(middle, points) / 2).clamp_max(1 - 2 * ball_gap(points.dtype))
    disk = _unit(plane) * radii[:, None]
    return DiskProjection(disk.numpy(), "poincare", middle.numpy(), _what_is_kept(vectors.shape[1], center))


def _vectors_from(middle: Tensor, points: Tensor) -> Tensor:
    """Directions and distances as seen from a point: the logarithm there, transported to the origin."""
    tangents = lorentz.log(middle, points)
    return tangents[:, 1:] - tangents[:, :1] / (1 + middle[0]) * middle[1:]


def _principal_axes(vectors: Tensor) -> Tensor:
    """The two leading principal directions as columns, each with its largest entry positive."""
    dim = vectors.shape[1]
    if dim <= 2:
        return torch.eye(dim, 2, dtype=vectors.dtype)
    axes = torch.linalg.eigh(vectors.mT @ vectors).eigenvectors[:, [-1, -2]]
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    return axes * torch.where(largest < 0, -1.0, 1.0)


def _unit(plane: Tensor) -> Tensor:
    """Directions of length 1; a vector that the plane does not show points to the right."""
    norm = safe_norm(plane)
    right = torch.tensor([1.0, 0.0], dtype=plane.dtype)
    return torch.where(norm > 0, plane * safe_reciprocal(norm), right)


def _what_is_kept(dim: int, center: bool) -> str:
    middle = f"The middle of the disk is {'the midpoint of all points' if center else 'the origin of the space'}."
    if dim <= 2:
        return f"{middle} All hyperbolic distances are true."
    return (
        f"{middle} The hyperbolic distance of each point to it is true; distances between points are not: the angle "
        f"shows where a point's direction lies in the plane of the two leading principal directions (of {dim})."
    )


def _principal_components(points: Plane) -> DiskProjection:
    mean = points.mean(0)
    vectors = torch.from_numpy(points - mean)
    plane = (vectors @ _principal_axes(vectors)).numpy()
    low, high = plane.min(0), plane.max(0)
    size = (high - low).max()
    scaled = (plane - (low + high) / 2) / (size if size > 0 else 1.0) + 0.5
    keeps = f"The two leading principal components of {points.shape[1]} Euclidean dimensions, at one scale."
    return DiskProjection(scaled, "euclidean", mean, keeps)


Array = NDArray[np.float64]

# From this radius of its circle on, an arc is drawn straight: within the unit disk it strays by less than 5e-5.
STRAIGHT_RADIUS = 1e4


@dataclass(frozen=True)
class Arcs:
    """``straight`` says which are lines; their ``centers`` and ``radii`` mean nothing.

    ``turns`` is +1 where the arc runs counterclockwise about its circle's center, -1 where clockwise.
    """

    start: Array
    end: Array
    centers: Array
    radii: Array
    turns: Array
    straight: NDArray[np.bool_]

    def sampled(self, steps: int = 24) -> Array:
        """Points ``(arcs, steps + 1, 2)`` along each arc, its ends among them."""
        fractions = np.linspace(0.0, 1.0, steps + 1)[:, None]
        lines = self.start[:, None] * (1 - fractions) + self.end[:, None] * fractions
        return np.where(self.straight[:, None, None], lines, self._on_circles(fractions))

    def _on_circles(self, fractions: Array) -> Array:
        first, last = self.start - self.centers, self.end - self.centers
        sweep = np.arctan2(_cross(first, last), (first * last).sum(1))[:, None] * fractions.T
        cos, sin = np.cos(sweep), np.sin(sweep)
        turned = np.stack([cos * first[:, :1] - sin * first[:, 1:], sin * first[:, :1] + cos * first[:, 1:]], axis=-1)
        return self.centers[:, None] + turned


def geodesic_arcs(start: Array, end: Array) -> Arcs:
    """Geodesics between points ``(arcs, 2)`` of the disk.

    A circle about ``c`` of radius ``r`` is orthogonal to the unit circle if ``|c|² = 1 + r²``, and then passes through
    ``p`` if ``2 c·p = 1 + |p|²``: two points make two linear equations for ``c``. On a line through the origin they
    have no solution.
    """
    cross = _cross(start, end)
    flat = cross == 0
    height_start, height_end = (1 + (start**2).sum(1)) / 2, (1 + (end**2).sum(1)) / 2
    across = np.stack(
        [height_start * end[:, 1] - height_end * start[:, 1], height_end * start[:, 0] - height_start * end[:, 0]], 1
    )
    with np.errstate(over="ignore", invalid="ignore"):
        centers = across / np.where(flat, 1.0, cross)[:, None]
        squares = (centers**2).sum(1) - 1
    straight = flat | ~((squares > 0) & (squares < STRAIGHT_RADIUS**2))
    centers[straight] = 0.0
    radii = np.sqrt(np.where(straight, 1.0, squares))
    turns = np.where(_cross(start - centers, end - centers) < 0, -1.0, 1.0)
    return Arcs(start, end, centers, radii, turns, straight)


def _cross(first: Array, second: Array) -> Array:
    return first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]


# Middle tones, to be seen on white and on black.
CATEGORIES = (
    "#2f78d0", "#d9581c", "#2a9155", "#c2468f", "#8059cc", "#a87a08", "#1590a4", "#cf3a44", "#74842a", "#94624a",
    "#5a94dc", "#dd8a34", "#4fa874", "#d672ae", "#a086dc", "#bf9c2e", "#42a8b8", "#dc6c6c", "#94a244", "#b5886c",
)  # fmt: skip
RADII = ("#5b4bb0", "#3b72b8", "#218f9c", "#2f9e6a", "#7d9c30", "#b98a1e")
PLAIN, UNLABELLED = "#2f78d0", "#8a8f98"


@dataclass(frozen=True)
class Coloring:
    """``shades`` holds for each point the place of its color in ``palette``; ``names`` says what each color means.

    ``names`` is empty if there is but one color.
    """

    shades: NDArray[np.int64]
    palette: tuple[str, ...]
    names: tuple[str, ...]
    heading: str


def color_points(labels: pa.Array | None, distances: NDArray[np.float64] | None, count: int) -> Coloring:
    """By label if there are at most 20 of them, else by distance to the middle if that means something."""
    if labels is not None and labels.null_count < count:
        different = pc.unique(labels.drop_null())
        if len(different) <= len(CATEGORIES):
            return _by_label(labels, different)
    if distances is not None:
        return _by_distance(distances)
    return Coloring(np.zeros(count, dtype=np.int64), (PLAIN,), (), "")


def _by_label(labels: pa.Array, different: pa.Array) -> Coloring:
    names = sorted(different.to_pylist(), key=natural_order)
    places = pc.fill_null(pc.index_in(labels, pa.array(names, pa.string())), len(names))
    palette = CATEGORIES[: len(names)]
    if labels.null_count:
        names, palette = [*names, "no label"], (*palette, UNLABELLED)
    return Coloring(places.to_numpy(zero_copy_only=False).astype(np.int64), palette, tuple(names), "Label")


def natural_order(name: str) -> tuple[bool, int, str]:
    """Numbers before words and in their own order: 9 comes before 10."""
    is_number = name.isascii() and name.isdigit() and len(name) < 19
    return not is_number, int(name) if is_number else 0, name


def _by_distance(distances: NDArray[np.float64]) -> Coloring:
    edges = np.linspace(distances.min(), distances.max(), len(RADII) + 1)
    names = tuple(f"{low:.1f} – {high:.1f}" for low, high in pairwise(edges))
    if len(set(names)) < len(names):
        return Coloring(np.zeros(len(distances), dtype=np.int64), (PLAIN,), (), "")
    shades = np.searchsorted(edges[1:-1], distances, side="right")
    return Coloring(shades.astype(np.int64), RADII, names, "Distance to the middle")


MAX_EDGES = 5_000


@dataclass(frozen=True)
class Picture:
    """Points ``(n, 2)`` between -1 and 1, in a disk or in a square; ``edges`` holds what is drawn of them."""

    points: NDArray[np.float64]
    round: bool
    coloring: Coloring
    labels: pa.Array | None
    edges: Arcs | None
    caption: tuple[str, ...]


def compose(disk: DiskProjection | Any, labels: Any = None, edges: Any = None) -> Picture:
    """A picture of a projection, or of an array ``(n, 2)`` of points of the Poincaré disk."""
    projection = disk if isinstance(disk, DiskProjection) else _given(disk)
    is_round = projection.space == "poincare"
    points = projection.points if is_round else 2 * projection.points - 1
    column = None if labels is None else label_column(labels, len(points))
    distances = (
        2 * np.arctanh(np.linalg.norm(points, axis=1).clip(max=1 - ball_gap(torch.float64))) if is_round else None
    )
    links = different_links(check_edges(edges if edges is not None else [], len(points)), len(points))
    caption = [projection.keeps] if projection.keeps else []
    if len(links) > MAX_EDGES:
        caption.append(f"The {len(links):,} edges are not drawn; up to {MAX_EDGES:,} are.")
    elif len(links) and is_round:
        caption.append("Edges are drawn as geodesics, the shortest ways of hyperbolic geometry.")
    drawn = _arcs(points, links, is_round) if 0 < len(links) <= MAX_EDGES else None
    return Picture(points, is_round, color_points(column, distances, len(points)), column, drawn, tuple(caption))


def _given(disk: Any) -> DiskProjection:
    points = check_points(disk, "poincare", "the points of the disk").astype(np.float64)
    if points.shape[1] != 2:
        raise DataError(f"the points of the disk have {points.shape[1]} coordinates; call project_to_disk first")
    return DiskProjection(points, "poincare", np.array([1.0, 0.0, 0.0]), "")


def different_links(edges: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Pairs ``(k, 2)`` of different nodes, each once whichever way it goes."""
    low, high = edges.min(0), edges.max(0)
    # np.unique hashes, which takes several times as long as to sort; rows instead of numbers take longer still
    codes = np.sort((low * num_nodes + high)[low < high])
    return np.column_stack(np.divmod(codes[np.diff(codes, prepend=-1) > 0], num_nodes))


def _arcs(points: NDArray[np.float64], links: NDArray[np.int64], is_round: bool) -> Arcs:
    start, end = points[links[:, 0]], points[links[:, 1]]
    if is_round:
        return geodesic_arcs(start, end)
    zeros, lines = np.zeros_like(start), np.ones(len(start), dtype=bool)
    return Arcs(start, end, zeros, np.ones(len(start)), np.ones(len(start)), lines)


FORMATS = (".pdf", ".png", ".svg")


def plot_disk(
    path: str | Path, disk_points: Any, labels: Any = None, edges: Any = None, title: str | None = None
) -> Path:
    """Draws a projection, or points ``(n, 2)`` of the Poincaré disk, into a file whose ending says the format.

    A file that is there is replaced. Up to 5,000 edges (2 × edges, both directions counting once) are drawn.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise DataError(f"cannot draw into {path}; end the name with one of {', '.join(FORMATS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DataError("drawing needs matplotlib; install it with: pip install h2hgcn[plot]") from error
    picture = compose(disk_points, labels, edges)
    figure = Figure(figsize=(7.5, 6.5), layout="constrained", facecolor="white")
    axes = figure.subplots()
    _draw_frame(axes, picture)
    _draw_edges(axes, picture)
    _draw_points(axes, picture)
    _write_texts(figure, axes, picture, title)
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=150)
    return path


def _draw_frame(axes: Any, picture: Picture) -> None:
    from matplotlib.patches import Circle

    if picture.round:
        axes.add_patch(Circle((0, 0), 1, facecolor="#f7f8fa", edgecolor="#5c6470", linewidth=1.0, zorder=0))
    axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal")
    axes.axis("off")


def _draw_edges(axes: Any, picture: Picture) -> None:
    from matplotlib.collections import LineCollection

    if picture.edges is not None:
        axes.add_collection(LineCollection(list(picture.edges.sampled()), colors="#5c6470", linewidths=0.5, alpha=0.35))


def _draw_points(axes: Any, picture: Picture) -> None:
    coloring = picture.coloring
    size = min(40.0, max(2.0, 8_000 / len(picture.points)))
    for shade, color in enumerate(coloring.palette):
        chosen = picture.points[coloring.shades == shade]
        axes.scatter(*chosen.T, s=size, color=color, linewidths=0, zorder=2, rasterized=len(picture.points) > 20_000)


def _write_texts(figure: Any, axes: Any, picture: Picture, title: str | None) -> None:
    from matplotlib.lines import Line2D

    coloring = picture.coloring
    written = [axes.set_title(title)] if title else []
    if coloring.names:
        handles = [Line2D([], [], linestyle="", marker="o", color=color) for color in coloring.palette]
        legend = figure.legend(handles, [" "] * len(handles), title=coloring.heading, loc="outside right center")
        legend.set_frame_on(False)
        # set afterwards, since a legend leaves out names that begin with an underscore
        for text, name in zip(legend.get_texts(), coloring.names, strict=True):
            text.set_text(textwrap.shorten(name, 32, placeholder="…") or " ")
        written += legend.get_texts()
    if picture.caption:
        caption = "\n".join(textwrap.wrap(" ".join(picture.caption), 110))
        written.append(figure.supxlabel(caption, fontsize=7, color="#5c6470"))
    for text in written:
        text.set_parse_math(False)  # a dollar sign in a label is a dollar sign
