"""The Einstein midpoint: what it is, and what sets it apart from other means."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from h2hgcn.geometry import klein, lorentz, poincare
from pictures.look import Look, caption, draw_disk, draw_dots, rows

WEIGHTS = rows((1.0, 2.0, 1.0)).squeeze(0)
SHIFT = rows((-0.58, -0.17))


def einstein(points: Tensor) -> Tensor:
    return klein.einstein_midpoint(points, WEIGHTS)


def tangent_mean(points: Tensor) -> Tensor:
    """The mean of tangent vectors at the origin, as other hyperbolic networks take it."""
    return lorentz.exp_origin(WEIGHTS @ lorentz.log_origin(points) / WEIGHTS.sum())


def coordinate_mean(points: Tensor) -> Tensor:
    """The Euclidean mean of coordinates of the Poincaré ball."""
    return poincare.to_lorentz(WEIGHTS @ poincare.from_lorentz(points) / WEIGHTS.sum())


def draw(look: Look) -> Figure:
    figure = Figure(figsize=(11.4, 4.5), facecolor=look.ground)
    profile, before, after = figure.subplots(1, 3, width_ratios=(1.12, 1, 1))
    draw_profile(profile, look)
    means = {
        "Einstein midpoint": (einstein, "o", look.blue),
        "tangent-space mean": (tangent_mean, "s", look.orange),
        "Euclidean mean": (coordinate_mean, "D", look.pink),
    }
    disk = rows((0.38, -0.51), (0.36, 0.83), (0.79, -0.18))
    points = poincare.to_lorentz(disk)
    moved = poincare.mobius_add(SHIFT, disk)
    draw_disk(before, look, "Three means of three points")
    draw_disk(after, look, "The same, translated")
    draw_points(before, disk, look)
    draw_points(after, moved, look)
    for name, (mean, marker, color) in means.items():
        found = poincare.from_lorentz(mean(points))
        carried = poincare.mobius_add(SHIFT, found)
        again = poincare.from_lorentz(mean(poincare.to_lorentz(moved)))
        draw_dots(before, found, color, 62, marker=marker, edgecolors=look.ground, zorder=6, label=name)
        draw_dots(after, again, color, 62, marker=marker, edgecolors=look.ground, zorder=6)
        after.scatter(*carried.squeeze(0), s=190, marker=marker, facecolors="none", edgecolors=color, zorder=5)
    caption(before, "the larger point counts twice", look)
    caption(after, "outlines: where the means are carried", look)
    legend = figure.legend(
        *before.get_legend_handles_labels(), loc="lower right", ncols=3, frameon=False, bbox_to_anchor=(0.985, 0.0)
    )
    for text in legend.get_texts():
        text.set_color(look.text)
    figure.subplots_adjust(left=0.03, right=0.99, bottom=0.17, top=0.9, wspace=0.08)
    return figure


def draw_points(axes: Any, disk: Tensor, look: Look) -> None:
    draw_dots(axes, disk, look.text, (WEIGHTS * 42).numpy(), edgecolors=look.ground)


def draw_profile(axes: Any, look: Look) -> None:
    """The hyperbola, two points with their weights, and their midpoint three times: mean, Klein point, midpoint."""
    begin, end = -1.7, 2.95
    space = np.linspace(begin, end, 201)
    axes.set(xlim=(begin, end), ylim=(-0.25, 3.1), aspect="equal")
    axes.axis("off")
    axes.set_title("The midpoint, from the side", color=look.text, fontsize=12, pad=8)
    axes.plot(space, np.sqrt(1 + space**2), color=look.text, linewidth=1.8)
    axes.plot((begin, end), (1, 1), color=look.green, linewidth=1.4)
    axes.plot((-1, 1), (1, 1), color=look.green, linewidth=3)
    points, weights = lorentz.exp_origin(rows((-0.6,), (1.7,))), rows((1.0, 2.0)).squeeze(0)
    mean, midpoint = weights @ points / weights.sum(), klein.einstein_midpoint(points, weights)
    on_klein = klein.from_lorentz(midpoint)
    draw_vectors(axes, points, mean, look)
    axes.plot(points[:, 1], points[:, 0], color=look.quiet, linewidth=1, linestyle=(0, (4, 2.5)))
    dots = axes.scatter
    dots(points[:, 1], points[:, 0], s=(60, 110), color=look.text, zorder=5, edgecolors=look.ground)
    dots(mean[1], mean[0], s=34, color=look.quiet, zorder=5)
    dots(midpoint[1], midpoint[0], s=74, color=look.blue, zorder=6, edgecolors=look.ground)
    dots(on_klein, 1, s=46, color=look.green, zorder=6, edgecolors=look.ground)
    dots(0, 0, s=16, color=look.text, zorder=5)
    for words, place, shift, color, side in (
        ("weighted mean", (mean[1], mean[0]), (-10, 9), look.quiet, "right"),
        ("midpoint", (midpoint[1], midpoint[0]), (-10, 5), look.blue, "right"),
        ("in the Klein model", (on_klein[0], 1), (12, -13), look.green, "left"),
        ("origin", (0, 0), (8, 0), look.quiet, "left"),
    ):
        axes.annotate(
            words, place, shift, textcoords="offset points", color=color, fontsize=10, ha=side, va="center",
        )  # fmt: skip
    caption(axes, "the larger point counts twice", look)


def draw_vectors(axes: Any, points: Tensor, mean: Tensor, look: Look) -> None:
    for point in points:
        axes.plot((0, point[1]), (0, point[0]), color=look.rule, linewidth=1.2)
    axes.plot((0, mean[1]), (0, mean[0]), color=look.blue, linewidth=1.2, linestyle=(0, (4, 2.5)))
