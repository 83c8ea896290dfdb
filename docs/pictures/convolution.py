"""One H2H convolution, step by step."""

from typing import Any

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from h2hgcn.embeddings.disk import CATEGORIES
from h2hgcn.geometry import klein, lorentz, poincare
from h2hgcn.layers import H2HConv
from pictures.look import Look, caption, draw_disk, draw_dots, draw_line, geodesic, rows

EDGES = torch.tensor([[0, 0, 0, 1, 1, 2], [1, 2, 3, 4, 5, 6]])
SPOTS = rows((0.05, -0.1), (-0.5, -0.95), (1.2, -0.35), (-0.35, 1.35), (-0.3, -1.95), (-1.9, -0.25), (2.1, 0.35))
SHOWN = 1  # the node whose neighborhood is drawn
TURN = torch.tensor(1.15, dtype=torch.float64)


def draw(look: Look) -> Figure:
    figure = Figure(figsize=(11.4, 3.7), facecolor=look.ground)
    steps = follow_layer()
    names = ("Points of the nodes", "1  Rotate", "2  Take midpoints", "3  Activate")
    words = ("a graph on the disk", "distances stay (Eq. 11)", "of each neighborhood (Eq. 12)", "in the ball (Eq. 13)")
    panels = figure.subplots(1, 4)
    for place, (axes, name, told) in enumerate(zip(panels, names, words, strict=True)):
        draw_disk(axes, look, name)
        caption(axes, told, look)
        if place:
            draw_ways(axes, steps[place - 1], steps[place], look)
        draw_nodes(axes, steps[place], look)
    draw_neighborhood(panels[2], steps[1], steps[2], look)
    shade_rest(panels[3], look)
    figure.subplots_adjust(left=0.005, right=0.995, bottom=0.1, top=0.9, wspace=0.04)
    return figure


def follow_layer() -> list[Tensor]:
    """The points of the disk before the layer and after each of its steps; the layer itself agrees on the last."""
    both_ways = torch.cat([EDGES, EDGES.flip(0)], dim=1)
    layer = H2HConv(2, 2, activation="relu", neighbor_weights="uniform", dtype=torch.float64)
    with torch.no_grad():
        layer.linear.weight.copy_(torch.stack([TURN.cos(), -TURN.sin(), TURN.sin(), TURN.cos()]).view(2, 2))
        points = lorentz.exp_origin(SPOTS)
        rotated = layer.linear(points)
        midpoints = klein.einstein_midpoint(rotated, near(both_ways))
        activated = poincare.from_lorentz(midpoints).relu()
        torch.testing.assert_close(poincare.from_lorentz(layer(points, both_ways)), activated)
    return [*(poincare.from_lorentz(step) for step in (points, rotated, midpoints)), activated]


def near(edges: Tensor) -> Tensor:
    """Weights (n, n): 1 for each neighbor and for the node itself."""
    weights = torch.eye(len(SPOTS), dtype=torch.float64)
    weights[edges[0], edges[1]] = 1
    return weights


def draw_nodes(axes: Any, disk: Tensor, look: Look) -> None:
    for source, target in EDGES.T:
        draw_line(axes, geodesic(disk[source], disk[target]), look.quiet, linewidth=1.0, alpha=0.75)
    draw_dots(axes, disk, CATEGORIES[: len(disk)], 58, edgecolors=look.ground)


def draw_ways(axes: Any, before: Tensor, after: Tensor, look: Look) -> None:
    """Where each node came from."""
    draw_dots(axes, before, look.ground, 24, zorder=1.5, edgecolors=look.quiet, linewidths=0.8, alpha=0.8)
    turned = torch.allclose(before.norm(dim=1), after.norm(dim=1))
    for start, end in zip(before, after, strict=True):
        way = turning(start) if turned else torch.stack([start, end])
        draw_line(axes, way, look.quiet, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1.4)


def turning(point: Tensor) -> Tensor:
    """The arc that a rotation takes a point along."""
    angles = torch.atan2(point[1], point[0]) + TURN * torch.linspace(0, 1, 25, dtype=torch.float64)
    return point.norm() * torch.stack([angles.cos(), angles.sin()], dim=1)


def draw_neighborhood(axes: Any, before: Tensor, after: Tensor, look: Look) -> None:
    """The points that one node takes the midpoint of."""
    color = CATEGORIES[SHOWN]
    around = [*EDGES[1][EDGES[0] == SHOWN].tolist(), *EDGES[0][EDGES[1] == SHOWN].tolist(), SHOWN]
    for other in around:
        draw_line(axes, geodesic(before[other], after[SHOWN]), color, linewidth=1.8, zorder=3)
    draw_dots(axes, before[around], look.ground, 30, zorder=3.5, edgecolors=color, linewidths=1.6)


def shade_rest(axes: Any, look: Look) -> None:
    """Where ReLU leaves nothing: all but one quadrant."""
    for corner, width, height in (((-1.06, -1.06), 1.06, 2.12), ((0, -1.06), 1.06, 1.06)):
        shade = Rectangle(corner, width, height, color=look.quiet, alpha=0.13, linewidth=0, zorder=0.8)
        axes.add_patch(shade)
        shade.set_clip_path(axes.patches[0])
