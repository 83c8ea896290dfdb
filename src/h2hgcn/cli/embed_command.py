"""``h2hgcn embed``: points of nodes in a file."""

from pathlib import Path
from typing import Annotated

import typer

from h2hgcn.cli.graph_options import (
    DataFolder,
    Directed,
    Edges,
    Features,
    Header,
    Labels,
    Source,
    Target,
    Unlinked,
    Weights,
)
from h2hgcn.cli.output import stderr
from h2hgcn.cli.output_files import Force, check_free
from h2hgcn.cli.run_options import RunPath, open_other_graph, open_run
from h2hgcn.errors import DataError


def embed(
    run: RunPath,
    out: Annotated[Path, typer.Option(help="File to write: .parquet, .npz or .csv.")],
    coordinates: Annotated[
        str | None,
        typer.Option(help="lorentz, poincare or klein; of Euclidean models euclidean.", show_default="of the model"),
    ] = None,
    edges: Edges = None,
    features: Features = None,
    labels: Labels = None,
    weights: Weights = None,
    directed: Directed = None,
    source: Source = None,
    target: Target = None,
    header: Header = None,
    unlinked: Unlinked = None,
    data: DataFolder = None,
    force: Force = False,
) -> None:
    """Write the points of the run's nodes (of its graphs, for a collection), or of another graph's nodes.

    Example: h2hgcn embed runs/disease-lp-h2h-gcn-seed0 --out disease.csv --coordinates poincare
    """
    check_free(out, force)
    opened = open_run(run, data, with_data=edges is None)
    if edges is not None and opened.task.name == "gc":
        raise DataError(
            f"--edges: {run} is about graphs of a collection; h2hgcn predict tells the class of another one"
        )
    other = open_other_graph(
        opened, edges, features=features, labels=labels, weights=weights, directed=directed, source=source,
        target=target, header=header, unlinked=unlinked,
    )  # fmt: skip
    from h2hgcn.training.artifacts import write_points

    points = opened.embeddings if other is None else opened.encode(other)
    write_points(opened, points, opened.data if other is None else other, out, coordinates, overwrite=force)
    stderr.print(f"{len(points):,} points: {out}", soft_wrap=True)
