"""A tree whose edges all have the same length: in the plane, in the disk, and how much room there is in each."""

from collections import Counter
from typing import Any

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor

from h2hgcn.embeddings.disk import RADII
from h2hgcn.geometry import poincare
from pictures.look import Look, caption, draw_disk, geodesic

DEPTH = 6
LENGTH = 1.1  # of every edge; from log(3) = 1.0986 on the branches keep apart for ever
TURN = 2 * np.pi / 3


def draw(look: Look) -> Figure:
    figure = Figure(figsize=(11.4, 4.6), facecolor=look.ground)
    plane, disk, room = figure.subplots(1, 3, width_ratios=(1, 1, 0.9))
    draw_plane(plane, look)
    draw_hyperbolic(disk, look)
    draw_room(room, look)
    figure.subplots_adjust(left=0.01, right=0.985, bottom=0.14, top=0.9, wspace=0.12)
    return figure


def branches() -> list[tuple[int, int]]:
    """Parent and depth of every node: three children of the root, two of all others."""
    nodes = [(-1, 0)]
    for parent, (_, depth) in enumerate(nodes):
        if depth < DEPTH:  # the list grows while it is walked
            nodes += [(parent, depth + 1)] * (2 if depth else 3)
    return nodes


def place(hyperbolic: bool) -> tuple[Tensor, list[tuple[int, int]]]:
    """Every node, one length away from its parent, at equal angles from its siblings and its grandparent."""
    nodes, placed = branches(), [torch.zeros(2, dtype=torch.float64)]
    born: Counter[int] = Counter()
    for parent, _ in nodes[1:]:
        born[parent] += 1
        origin = placed[parent]
        back = 0.0 if parent == 0 else _direction(origin, placed[nodes[parent][0]], hyperbolic)
        angle = torch.tensor(back + TURN * born[parent], dtype=torch.float64)
        step = torch.stack([angle.cos(), angle.sin()]) * (np.tanh(LENGTH / 2) if hyperbolic else 1.0)
        placed.append(poincare.mobius_add(origin, step) if hyperbolic else origin + step)
    return torch.stack(placed), nodes


def _direction(origin: Tensor, other: Tensor, hyperbolic: bool) -> float:
    """The angle at which another node is seen from the origin, once that is in the middle."""
    seen = poincare.mobius_add(-origin, other) if hyperbolic else other - origin
    return float(torch.atan2(seen[1], seen[0]))


def draw_plane(axes: Any, look: Look) -> None:
    points, nodes = place(hyperbolic=False)
    axes.set(aspect="equal", xlim=(-6.2, 6.2), ylim=(-6.2, 6.2))
    axes.axis("off")
    axes.set_title("The plane", color=look.text, fontsize=12, pad=8)
    lines = [points[[parent, child]].numpy() for child, (parent, _) in enumerate(nodes) if child]
    axes.add_collection(LineCollection(lines, colors=look.quiet, linewidths=0.8, alpha=0.6))
    shared = Counter((round(float(x), 6), round(float(y), 6)) for x, y in points)
    for count in sorted(set(shared.values())):
        spots = np.array([spot for spot, nodes_there in shared.items() if nodes_there == count])
        draw_markers(axes, spots, look.orange, 5.5 * count**0.5, look)
    caption(axes, f"{len(nodes)} nodes fall on {len(shared)} places, up to {max(shared.values())} on one", look)


def draw_hyperbolic(axes: Any, look: Look) -> None:
    points, nodes = place(hyperbolic=True)
    draw_disk(axes, look, "The Poincaré disk", rings=())
    lines = [geodesic(points[parent], points[child], 8).numpy() for child, (parent, _) in enumerate(nodes) if child]
    axes.add_collection(LineCollection(lines, colors=look.quiet, linewidths=0.8, alpha=0.7))
    depths = np.array([depth for _, depth in nodes])
    for depth in range(DEPTH + 1):
        there = points[depths == depth]
        shrink = float(1 - there[0].square().sum())
        draw_markers(axes, there.numpy(), RADII[max(0, depth - 1)], 1.2 + 8 * shrink**0.5, look)
    caption(axes, f"{len(nodes)} nodes, all apart; all edges equally long", look)


def draw_markers(axes: Any, spots: Any, color: str, size: float, look: Look) -> None:
    axes.plot(
        *spots.T, "o", color=color, markersize=size, markeredgecolor=look.ground, markeredgewidth=size / 14, zorder=3
    )


def draw_room(axes: Any, look: Look) -> None:
    depth = np.linspace(0.25, DEPTH, 60)
    axes.set_title("Room at a distance", color=look.text, fontsize=12, pad=8)
    axes.semilogy(depth, 2 * np.pi * depth * LENGTH, color=look.orange, linewidth=2)
    axes.semilogy(depth, 2 * np.pi * np.sinh(depth * LENGTH), color=look.blue, linewidth=2)
    counts = Counter(level for _, level in branches())
    levels = range(1, DEPTH + 1)
    axes.semilogy(list(levels), [counts[level] for level in levels], "o", color=look.text, markersize=6)
    for words, spot, color in (
        ("length of a circle,\nhyperbolic", (2.9, 260), look.blue),
        ("the same,\nEuclidean", (4.35, 15), look.orange),
        ("number of nodes", (1.4, 2.9), look.text),
    ):
        axes.text(*spot, words, color=color, fontsize=10, va="center", ha="right" if color == look.blue else "left")
    axes.set_xlabel("depth", color=look.quiet)
    axes.set(xlim=(0, DEPTH + 0.3), facecolor=look.ground)
    axes.tick_params(colors=look.quiet, which="both", labelsize=9)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for side, spine in axes.spines.items():
        spine.set(visible=side in ("left", "bottom"), color=look.rule)
    axes.grid(axis="y", color=look.rule, linewidth=0.5, alpha=0.7)
    axes.set_axisbelow(True)
