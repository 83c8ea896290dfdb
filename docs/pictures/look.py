"""Colors and strokes that all pictures share, for light and for dark pages."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.patches import Circle
from torch import Tensor

from h2hgcn.geometry import poincare

SETTINGS = {
    "svg.hashsalt": "h2hgcn",  # the same picture is the same file
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 11,
    "lines.solid_capstyle": "round",
}


@dataclass(frozen=True)
class Look:
    """Colors of a page, as the explorer has them; blue, orange, green and pink are those of its points."""

    ground: str
    raised: str
    text: str
    quiet: str
    rule: str
    blue: str = "#2f78d0"
    orange: str = "#d9581c"
    green: str = "#2a9155"
    pink: str = "#c2468f"


LOOKS = {
    "light": Look(ground="#ffffff", raised="#f6f7f9", text="#1b1f24", quiet="#57606a", rule="#c9d0d8"),
    "dark": Look(
        ground="#1e2129", raised="#262a33", text="#e4e8ec", quiet="#9aa4af", rule="#454d58",
        blue="#5a94dc", orange="#ee8550", green="#4fb07e", pink="#dd7db6",
    ),
}  # fmt: skip


def rows(*points: tuple[float, ...]) -> Tensor:
    return torch.tensor(points, dtype=torch.float64)


def draw_disk(axes: Any, look: Look, title: str, rings: tuple[float, ...] = (1, 2, 3), klein: bool = False) -> None:
    """The unit disk with circles at hyperbolic distances from its middle."""
    axes.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal")
    axes.axis("off")
    axes.add_patch(Circle((0, 0), 1, facecolor=look.raised, edgecolor=look.quiet, linewidth=1.2, zorder=0))
    for radius in rings:
        size = np.tanh(radius) if klein else np.tanh(radius / 2)
        axes.add_patch(Circle((0, 0), size, fill=False, edgecolor=look.rule, linewidth=0.7, zorder=0.5))
        if size < 0.97:  # there is room for its number
            axes.text(0, size, f"{radius:g}", color=look.quiet, fontsize=8, ha="center", va="center", zorder=1,
                      bbox={"facecolor": look.raised, "edgecolor": "none", "pad": 0.6})  # fmt: skip
    axes.set_title(title, color=look.text, fontsize=12, pad=8)


def draw_line(axes: Any, line: Tensor, color: str, **options: Any) -> None:
    given = {"linewidth": 2.0, "zorder": 2}
    axes.plot(*line.numpy().T, color=color, **given | options)


def draw_dots(axes: Any, points: Tensor, color: Any, size: Any = 46, **options: Any) -> None:
    given = {"zorder": 4, "linewidths": 0.9}
    axes.scatter(*points.reshape(-1, 2).numpy().T, s=size, color=color, **given | options)


def geodesic(start: Tensor, end: Tensor, steps: int = 40) -> Tensor:
    """Points of the disk along the geodesic, at equal hyperbolic distances."""
    return poincare.geodesic(start, end, torch.linspace(0, 1, steps + 1, dtype=start.dtype))


def caption(axes: Any, text: str, look: Look, y: float = -0.02) -> None:
    axes.text(0.5, y, text, color=look.quiet, fontsize=10, ha="center", va="top", transform=axes.transAxes)
