"""Points in the Poincaré disk: projection, geodesics, colors, and a figure."""

import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
from h2hgcn.lazy import import_extra

Plane = NDArray[np.float64]


@dataclass(frozen=True)
class DiskProjection:
    """Points ``(n, 2)`` in the unit disk (``space="poincare"``) or in the unit square from 0 to 1 (``"euclidean"``).

    ``center`` is what a projection has in the middle, in Lorentz coordinates or Euclidean ones; ``keeps`` says what is
    true of the picture. ``method`` is how points were placed, see ``layout_in_disk``.
    """

    points: Plane
    space: Literal["poincare", "euclidean"]
    center: Plane
    keeps: str
    method: Literal["projection", "neighbors", "tree"] = "projection"


def project_to_disk(points: Any, space: str = "lorentz", *, center: bool = True) -> DiskProjection:
    """Points in the plane; what is kept of them is in the result's ``keeps``.

    With ``center`` the middle of the disk is the points' Einstein midpoint, without it the origin of the space.
    Euclidean points are centered and turned to their two principal components, with one scale for both.
    """
    kind = check_coordinates(space)
    if kind == "euclidean":
        array = check_points(points, "euclidean").astype(np.float64)
        mean = array.mean(0)
        flat = _principal_plane(torch.from_numpy(array - mean)).numpy()
        low, high = flat.min(0), flat.max(0)
        scaled = (flat - (low + high) / 2) / ((high - low).max() or 1.0) + 0.5
        keeps = f"The two leading principal components of {array.shape[1]} Euclidean dimensions, at one scale."
        return DiskProjection(scaled, "euclidean", mean, keeps)
    lifted = lorentz_tensor(points, kind)
    middle = klein.einstein_midpoint(lifted) if center else torch.eye(1, lifted.shape[1], dtype=lifted.dtype)[0]
    # directions and distances from the middle: the logarithm there, transported to the origin
    tangents = lorentz.log(middle, lifted)
    plane = _principal_plane(tangents[:, 1:] - tangents[:, :1] / (1 + middle[0]) * middle[1:])
    norm, right = safe_norm(plane), torch.eye(1, 2, dtype=plane.dtype)  # where the plane shows no direction
    # beyond a distance of about 36 the disk has no float64 numbers left: points stop short of the boundary
    radii = torch.tanh(lorentz.distance(middle, lifted) / 2).clamp_max(1 - 2 * ball_gap(lifted.dtype))
    disk = torch.where(norm > 0, plane * safe_reciprocal(norm), right) * radii[:, None]
    keeps, dim = "All hyperbolic distances are true.", lifted.shape[1] - 1
    if dim > 2:
        keeps = (
            "The hyperbolic distance of each point to it is true; distances between points are not: the angle shows "
            f"where a point's direction lies in the plane of the two leading principal directions (of {dim})."
        )
    where = "the midpoint of all points" if center else "the origin of the space"
    return DiskProjection(disk.numpy(), "poincare", middle.numpy(), f"The middle of the disk is {where}. {keeps}")


def _principal_plane(vectors: Tensor) -> Tensor:
    """Vectors along their two leading principal directions, each of which has its largest entry positive."""
    dim = vectors.shape[1]
    if dim <= 2:
        return vectors @ torch.eye(dim, 2, dtype=vectors.dtype)
    axes = torch.linalg.eigh(vectors.mT @ vectors).eigenvectors[:, [-1, -2]]
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    return vectors @ (axes * torch.where(largest < 0, -1.0, 1.0))


# From this radius of its circle on, an arc is drawn straight: within the unit disk it strays by less than 5e-5.
_STRAIGHT_RADIUS = 1e4

Complex = NDArray[np.complex128]


class Arcs(NamedTuple):
    """Arcs between complex numbers; ``radii`` are infinite for lines, whose ``centers`` mean nothing.

    ``turns`` is +1 where the arc runs counterclockwise about its circle's center, -1 where clockwise.
    """

    start: Complex
    end: Complex
    centers: Complex
    radii: Plane
    turns: Plane

    def sampled(self, steps: int = 24) -> Complex:
        """Numbers ``(arcs, steps + 1)`` along each arc, its ends among them."""
        fractions = np.linspace(0.0, 1.0, steps + 1)
        lines = np.outer(self.start, 1 - fractions) + np.outer(self.end, fractions)
        first = self.start - self.centers
        sweep = np.angle((self.end - self.centers) * first.conj())
        turned = self.centers[:, None] + first[:, None] * np.exp(1j * np.outer(sweep, fractions))
        return np.where(np.isinf(self.radii)[:, None], lines, turned)


def geodesic_arcs(start: Complex, end: Complex) -> Arcs:
    """Geodesics between points of the disk.

    A circle about ``c`` of radius ``r`` is orthogonal to the unit circle if ``|c|² = 1 + r²``, and then passes through
    ``p`` if ``2 c·p = 1 + |p|²``: two points make two linear equations for ``c``. On a line through the origin they
    have no solution.
    """
    cross = (start.conj() * end).imag
    heights = [(1 + z.real**2 + z.imag**2) / 2 for z in (start, end)]
    with np.errstate(all="ignore"):
        centers = -1j * (heights[0] * end - heights[1] * start) / cross
        squares = centers.real**2 + centers.imag**2 - 1
        bent = (squares > 0) & (squares < _STRAIGHT_RADIUS**2)
    centers = np.where(bent, centers, 0.0)
    radii = np.sqrt(squares, where=bent, out=np.full(len(start), np.inf))
    turns = np.where(((start - centers).conj() * (end - centers)).imag < 0, -1.0, 1.0)
    return Arcs(start, end, centers, radii, turns)


# Middle tones, to be seen on white and on black.
CATEGORIES = (
    "#2f78d0", "#d9581c", "#2a9155", "#c2468f", "#8059cc", "#a87a08", "#1590a4", "#cf3a44", "#74842a", "#94624a",
    "#5a94dc", "#dd8a34", "#4fa874", "#d672ae", "#a086dc", "#bf9c2e", "#42a8b8", "#dc6c6c", "#94a244", "#b5886c",
)  # fmt: skip
RADII = ("#5b4bb0", "#3b72b8", "#218f9c", "#2f9e6a", "#7d9c30", "#b98a1e")
PLAIN, UNLABELLED = "#2f78d0", "#8a8f98"


class Coloring(NamedTuple):
    """``shades`` holds for each point the place of its color in ``palette``; ``names`` says what each color means.

    ``names`` is empty if there is but one color.
    """

    shades: NDArray[np.int64]
    palette: list[str]
    names: list[str]
    heading: str


def _color_points(labels: pa.Array | None, distances: Plane | None, count: int) -> Coloring:
    """By label if there are at most 20 of them, else by distance to the middle if that means something."""
    if labels is not None and 0 < len(different := pc.unique(labels.drop_null())) <= len(CATEGORIES):
        names = sorted(different.to_pylist(), key=natural_order)
        places = pc.fill_null(pc.index_in(labels, pa.array(names, pa.string())), len(names))
        palette = list(CATEGORIES[: len(names)])
        if labels.null_count:
            palette, names = [*palette, UNLABELLED], [*names, "no label"]
        return Coloring(places.to_numpy(zero_copy_only=False).astype(np.int64), palette, names, "Label")
    if distances is not None:
        edges = np.linspace(distances.min(), distances.max(), len(RADII) + 1)
        names = [f"{low:.1f} – {high:.1f}" for low, high in pairwise(edges)]
        if len(set(names)) == len(names):
            shades = np.searchsorted(edges[1:-1], distances, side="right").astype(np.int64)
            return Coloring(shades, list(RADII), names, "Distance to the middle")
    return Coloring(np.zeros(count, dtype=np.int64), [PLAIN], [], "")


def natural_order(name: str) -> tuple[bool, int, str]:
    """Numbers before words and in their own order: 9 comes before 10."""
    is_number = name.isascii() and name.isdigit() and len(name) < 19
    return not is_number, int(name) if is_number else 0, name


def radii_in_disk(points: Plane) -> Plane:
    """Hyperbolic distances to the middle of the disk."""
    return 2 * np.arctanh(np.linalg.norm(points, axis=1).clip(max=1 - ball_gap(torch.float64)))


MAX_EDGES = 5_000


class Picture(NamedTuple):
    """Points ``(n, 2)`` between -1 and 1, in a disk or in a square; ``edges`` holds what is drawn of them."""

    points: Plane
    round: bool
    coloring: Coloring
    labels: pa.Array | None
    edges: Arcs | None
    caption: list[str]


def compose(disk: DiskProjection | Any, labels: Any = None, edges: Any = None) -> Picture:
    """A picture of a projection, or of an array ``(n, 2)`` of points of the Poincaré disk."""
    if isinstance(disk, DiskProjection):
        is_round, caption = disk.space == "poincare", [disk.keeps]
        points = disk.points if is_round else 2 * disk.points - 1
    else:
        is_round, caption = True, []
        points = check_points(disk, "poincare", "the points of the disk").astype(np.float64)
        if points.shape[1] != 2:
            raise DataError(f"the points of the disk have {points.shape[1]} coordinates; call project_to_disk first")
    column = None if labels is None else label_column(labels, len(points))
    links = different_links(check_edges([] if edges is None else edges, len(points)), len(points))
    drawn = None
    if len(links) > MAX_EDGES:
        caption.append(f"The {len(links):,} edges are not drawn; up to {MAX_EDGES:,} are.")
    elif len(links):
        start, end = (points @ [1, 1j])[links.T]
        if is_round:
            caption.append("Edges are drawn as geodesics, the shortest ways of hyperbolic geometry.")
            drawn = geodesic_arcs(start, end)
        else:
            drawn = Arcs(start, end, 0 * start, np.full(len(start), np.inf), np.ones(len(start)))
    coloring = _color_points(column, radii_in_disk(points) if is_round else None, len(points))
    return Picture(points, is_round, coloring, column, drawn, caption)


def different_links(edges: NDArray[np.int64], num_nodes: int) -> NDArray[np.int64]:
    """Pairs ``(k, 2)`` of different nodes, each once whichever way it goes."""
    low, high = edges.min(0), edges.max(0)
    # np.unique hashes, which takes several times as long as to sort; rows instead of numbers take longer still
    codes = np.sort((low * num_nodes + high)[low < high])
    return np.column_stack(np.divmod(codes[np.diff(codes, prepend=-1) > 0], num_nodes))


_FORMATS = (".pdf", ".png", ".svg")


def plot_disk(
    path: str | Path, disk_points: Any, labels: Any = None, edges: Any = None, title: str | None = None
) -> Path:
    """Draws a projection, or points ``(n, 2)`` of the Poincaré disk, into a file whose ending says the format.

    A file that is there is replaced. Up to 5,000 edges (2 × edges, both directions counting once) are drawn.
    """
    path = Path(path)
    if path.suffix.lower() not in _FORMATS:
        raise DataError(f"cannot draw into {path}; end the name with one of {', '.join(_FORMATS)}")
    import_extra("matplotlib", "matplotlib", "plot")
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle

    points, is_round, coloring, _, arcs, caption = compose(disk_points, labels, edges)
    figure = Figure(figsize=(7.5, 6.5), layout="constrained", facecolor="white")
    axes: Any = figure.subplots()
    axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal")
    axes.axis("off")
    if is_round:
        axes.add_patch(Circle((0, 0), 1, facecolor="#f7f8fa", edgecolor="#5c6470", linewidth=1.0, zorder=0))
    if arcs is not None:
        sampled = arcs.sampled()
        lines = list(np.stack([sampled.real, sampled.imag], axis=-1))
        axes.add_collection(LineCollection(lines, colors="#5c6470", linewidths=0.5, alpha=0.35))
    size = min(40.0, max(2.0, 8_000 / len(points)))
    for shade, color in enumerate(coloring.palette):
        chosen = points[coloring.shades == shade]
        axes.scatter(*chosen.T, s=size, color=color, linewidths=0, zorder=2, rasterized=len(points) > 20_000)
    written = [axes.set_title(title)] if title else []
    if coloring.names:
        handles = [Line2D([], [], linestyle="", marker="o", color=color) for color in coloring.palette]
        legend = figure.legend(handles, [" "] * len(handles), title=coloring.heading, loc="outside right center")
        legend.set_frame_on(False)
        # set afterwards, since a legend leaves out names that begin with an underscore
        for text, name in zip(legend.get_texts(), coloring.names, strict=True):
            text.set_text(textwrap.shorten(name, 32, placeholder="…") or " ")
        written += legend.get_texts()
    if caption:
        wrapped = "\n".join(textwrap.wrap(" ".join(caption), 110))
        written.append(figure.supxlabel(wrapped, fontsize=7, color="#5c6470"))
    for text in written:
        text.set_parse_math(False)  # a dollar sign in a label is a dollar sign
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=150)
    return path
