"""The points of a large graph, layer by layer and block by block into a file, with layers in files as well."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from h2hgcn.embeddings.coordinates import Points
from h2hgcn.embeddings.streams import stream_embeddings
from h2hgcn.models.row_blocks import Allocate, Progress, can_go_by_blocks, point_blocks
from h2hgcn.tasks.encoding import all_points
from h2hgcn.tasks.inference import encoder_inputs
from h2hgcn.training.artifacts import coordinates_of, labels_of
from h2hgcn.training.node_names import NodeNames
from h2hgcn.training.run import Run


def stream_points(
    run: Run, other: Any, path: Path, coordinates: str | None = None, progress: Progress = lambda done, total: None
) -> int:
    """Writes the points of the run's nodes, or of an ``other`` graph's, to a Parquet or NPY file; returns their number.

    Of memory it takes the edges and a block of rows; models whose layers cannot be taken apart take all points.
    """
    graph = run.data if other is None else other
    ids = NodeNames(graph).ids
    space = coordinates_of(run.model.encoder)
    stream_embeddings(
        path, _blocks(run, other, path.parent, progress), ids, labels_of(run, graph), coordinates, space=space
    )
    return len(ids)


@torch.no_grad()
def _blocks(run: Run, other: Any, folder: Path, progress: Progress) -> Iterator[Points]:
    model, nodes = run.model, None
    if other is None:
        problem: Any = run.problem
        features, adjacency = problem.features, problem.adjacency
    else:
        run.check_fits(other)
        nodes = run.known_nodes(other)
        features, adjacency = encoder_inputs(model, other, run.task.name, run.config["facts"]["in_features"])
    with run.threads(adjacency.num_nodes):
        if not can_go_by_blocks(model.encoder):
            yield all_points(model, features, adjacency, nodes).cpu().numpy()
            return
        encoder: Any = model.encoder
        allocate = _room_in_files(folder, encoder.log_curvature) if run.device.type == "cpu" else None
        found = point_blocks(
            encoder,
            lambda rows: features.rows(model.scaling, rows),
            adjacency,
            nodes=nodes,
            allocate=allocate,
            progress=progress,
        )
        yield from (part.cpu().numpy() for _, part in found)


def _room_in_files(folder: Path, like: Tensor) -> Allocate:
    """Layers in files without a name, which are gone with their arrays."""
    dtype = torch.empty(0, dtype=like.dtype).numpy().dtype

    def allocate(rows: int, width: int) -> Tensor:
        with tempfile.TemporaryFile(dir=folder) as file:
            return torch.from_numpy(np.memmap(file, dtype, "w+", shape=(rows, width)))

    return allocate
