"""The disk as a figure for papers and slides."""

import textwrap
from pathlib import Path
from typing import Any

from h2hgcn.embeddings.picture import Picture, compose
from h2hgcn.errors import DataError
from h2hgcn.files import atomic_write

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
