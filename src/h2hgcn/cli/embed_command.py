"""``h2hgcn embed``: points of nodes in a file."""

from pathlib import Path
from typing import Annotated

import typer

from h2hgcn.cli.graph_options import DataFolder, Directed, Edges, Features, Labels, Unlinked, Weights
from h2hgcn.cli.output import stderr
from h2hgcn.cli.run_options import RunPath, open_other_graph, open_run


def embed(
    run: RunPath,
    out: Annotated[Path, typer.Option(help="File to write: .parquet, .npz or .csv.")],
    coordinates: Annotated[str | None, typer.Option(help="lorentz, poincare or klein.")] = None,
    edges: Edges = None,
    features: Features = None,
    labels: Labels = None,
    weights: Weights = None,
    directed: Directed = None,
    unlinked: Unlinked = "error",
    data: DataFolder = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write the embedding of the run's nodes, or of another graph's.

    Example: h2hgcn embed runs/disease-lp-h2h-gcn-seed0 --out disease.csv --coordinates poincare
    """
    from h2hgcn.training.artifacts import write_points

    opened = open_run(run, data, with_collection=edges is None)
    other = open_other_graph(
        opened, edges, features=features, labels=labels, weights=weights, directed=directed, unlinked=unlinked
    )
    points = opened.embeddings if other is None else opened.encode(other)
    write_points(opened, points, opened.data if other is None else other, out, coordinates, overwrite=force)
    stderr.print(f"{len(points):,} points: {out}", soft_wrap=True)
