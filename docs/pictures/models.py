"""The hyperboloid, the Klein disk and the Poincaré disk: the same points, the same geodesic."""

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import NDArray
from scipy.spatial import ConvexHull
from torch import Tensor

from h2hgcn.geometry import klein, lorentz, poincare
from pictures.look import Look, caption, draw_disk, draw_dots, draw_line, rows

RIM = 1.72  # the radius at which the picture of the hyperboloid ends
ELEVATION = np.radians(17)
STEPS = 8  # dots along the geodesic, at equal distances

Array = NDArray[np.float64]


def draw(look: Look) -> Figure:
    figure = Figure(figsize=(11, 6.6), facecolor=look.ground)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.75, 1), wspace=0.02, hspace=0.3)
    ends = lorentz.exp_origin(rows((-1.4, -0.5), (0.8, -1.34)))
    line = walk(ends, 120)
    dots = walk(ends, STEPS)
    draw_hyperboloid(figure.add_subplot(grid[:, 0]), look, line, dots)
    for place, (name, model, color, words) in enumerate(
        (
            ("Klein disk", klein, look.green, "the geodesic is a chord"),
            ("Poincaré disk", poincare, look.orange, "the geodesic is an arc, and angles are true"),
        )
    ):
        axes = figure.add_subplot(grid[place, 1])
        draw_disk(axes, look, name, klein=model is klein)
        axes.patches[0].set(edgecolor=color, linewidth=2)
        draw_line(axes, model.from_lorentz(line), look.blue)
        mark_dots(axes, model.from_lorentz(dots), look)
        caption(axes, words, look)
    figure.subplots_adjust(left=0, right=0.99, bottom=0.05, top=0.94)
    return figure


def walk(ends: Tensor, steps: int) -> Tensor:
    """Points of the hyperboloid from one end to the other, by Eq. 3 and 4."""
    fractions = torch.linspace(0, 1, steps + 1, dtype=ends.dtype).unsqueeze(1)
    start = ends[:1].expand(steps + 1, 3)
    return lorentz.exp(start, fractions * lorentz.log(ends[:1], ends[1:]))


def mark_dots(axes: Any, dots: Tensor, look: Look) -> None:
    draw_dots(axes, dots[1:-1], look.blue, 14)
    draw_dots(axes, dots[[0, -1]], look.blue, 62, edgecolors=look.ground)


def on_paper(time: Any, x: Any, y: Any) -> Array:
    """Seen from far away and a little above; ``y`` goes into the picture."""
    return np.stack([np.asarray(x), time * np.cos(ELEVATION) + y * np.sin(ELEVATION)], axis=-1)


def circle(time: float, radius: float, begin: float = 0.0, end: float = 2 * np.pi) -> Array:
    angle = np.linspace(begin, end, 121)
    return on_paper(time, radius * np.cos(angle), radius * np.sin(angle))


def draw_hyperboloid(axes: Any, look: Look, line: Tensor, dots: Tensor) -> None:
    axes.set(aspect="equal", xlim=(-3.0, 3.5), ylim=(-1.3, 3.75))
    axes.axis("off")
    axes.set_title("Hyperboloid", color=look.text, fontsize=12, pad=8)
    draw_plate(axes, 0.0, look.orange, look, "Poincaré disk\nat time 0")
    draw_bowl(axes, look)
    draw_plate(axes, 1.0, look.green, look, "Klein disk\nat time 1")
    for point in dots[[0, -1]]:
        draw_ray(axes, 0.0, point, klein.from_lorentz(point), 1.0, look.green)
        draw_ray(axes, -1.0, point, poincare.from_lorentz(point), 0.0, look.orange)
    for time, model in ((0.0, poincare), (1.0, klein)):
        axes.plot(*on_paper(time, *model.from_lorentz(line).numpy().T).T, color=look.blue, linewidth=1.6, zorder=5)
    axes.plot(*on_paper(*line.numpy().T).T, color=look.blue, linewidth=2.6, zorder=6)
    mark_dots(axes, torch.from_numpy(on_paper(*dots.numpy().T)), look)
    for time in (0.0, -1.0):
        axes.plot(*on_paper(time, 0, 0), marker="o", markersize=4.5, color=look.text, zorder=7)
    axes.text(0.12, on_paper(-1.0, 0, 0)[1] - 0.1, "time −1", color=look.text, fontsize=9.5, va="center")


def draw_bowl(axes: Any, look: Look) -> None:
    radii = np.linspace(0, RIM, 30)
    outline = np.concatenate([circle(np.cosh(radius), np.sinh(radius)) for radius in radii])
    hull = outline[ConvexHull(outline).vertices]  # what lies above a hyperboloid is convex
    axes.add_patch(Polygon(hull, facecolor=look.blue, alpha=0.10, edgecolor="none", zorder=1))
    rim = circle(np.cosh(RIM), np.sinh(RIM))
    axes.add_patch(Polygon(rim, facecolor=look.blue, alpha=0.10, edgecolor="none", zorder=1))
    axes.plot(*rim.T, color=look.quiet, linewidth=1.1, zorder=2)
    axes.plot(*np.vstack([hull, hull[:1]]).T, color=look.quiet, linewidth=1.1, zorder=2)
    for radius in (0.5, 1.0, 1.5):
        axes.plot(*circle(np.cosh(radius), np.sinh(radius)).T, color=look.quiet, linewidth=0.5, alpha=0.6, zorder=2)


def draw_plate(axes: Any, time: float, color: str, look: Look, name: str) -> None:
    edge = circle(time, 1.0)
    axes.add_patch(Polygon(edge, facecolor=color, alpha=0.16, edgecolor="none", zorder=3))
    axes.plot(*edge.T, color=color, linewidth=1.6, zorder=3)
    axes.annotate(
        name, on_paper(time, 1.0, 0.0), on_paper(time - 0.28, 2.05, 0.0), color=color, fontsize=10, va="center",
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.8}, zorder=8,
    )  # fmt: skip


def draw_ray(axes: Any, apex: float, point: Tensor, image: Tensor, time: float, color: str) -> None:
    """From the point that is projected from, through the disk, to the hyperboloid."""
    ends = np.stack([on_paper(apex, 0, 0), on_paper(*point.numpy())])
    axes.plot(*ends.T, color=color, linewidth=1.1, linestyle=(0, (4, 2.5)), zorder=4)
    axes.plot(*on_paper(time, *image.numpy()), marker="o", markersize=5.5, color=color, zorder=6)
