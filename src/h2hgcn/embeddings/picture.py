"""What is drawn of a projection, checked and counted once for every kind of picture."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from h2hgcn.embeddings.arcs import Arcs, geodesic_arcs
from h2hgcn.embeddings.coloring import Coloring, color_points
from h2hgcn.embeddings.columns import label_column
from h2hgcn.embeddings.coordinates import check_points
from h2hgcn.embeddings.neighbors import check_edges
from h2hgcn.embeddings.projection import DiskProjection
from h2hgcn.errors import DataError
from h2hgcn.geometry.numerics import ball_gap

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
