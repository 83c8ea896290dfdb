"""``h2hgcn embed``: points of nodes in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from h2hgcn.cli.output import progress_bar, stderr
from h2hgcn.cli.output_files import Force, check_free
from h2hgcn.cli.run_options import (
    NewEdges,
    NewFeatures,
    NoFinal,
    OtherGraphs,
    RunPath,
    add_new_nodes,
    open_other_graph,
    open_run,
)
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.training import Run


def embed(
    run: RunPath,
    out: Annotated[Path, typer.Option(help="File to write: .parquet, .npz, .csv, or .npy for points alone.")],
    coordinates: Annotated[
        str | None,
        typer.Option(
            help="lorentz, poincare, klein or tangent (at the origin, for Euclidean methods); of Euclidean models "
            "euclidean.",
            show_default="of the model",
        ),
    ] = None,
    new_edges: NewEdges = None,
    new_features: NewFeatures = None,
    edges: Edges = None,
    graphs: OtherGraphs = None,
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
    no_final: NoFinal = False,
) -> None:
    """Write the points of the run's nodes (of its graphs, for a collection), or of other graphs.

    With --new-edges (and --new-features) new nodes join the graph of the run; their points come last.

    Example: h2hgcn embed runs/disease-lp-h2h-gcn-seed0 --out disease.csv --coordinates poincare
    """
    check_free(out, force)
    opened = open_run(run, data, edges is None and graphs is None, not no_final)
    if edges is not None and opened.task.name == "gc":
        raise DataError(
            f"--edges: {run} is about graphs of a collection; h2hgcn predict tells the class of another one"
        )
    options: dict[str, Any] = {
        "features": features, "labels": labels, "weights": weights, "directed": directed, "source": source,
        "target": target, "header": header, "unlinked": unlinked,
    }  # fmt: skip
    extended = add_new_nodes(opened, new_edges, new_features, edges, **options)
    other = open_other_graph(opened, edges, graphs, **options) if extended is opened else extended.data
    count = (_stream if _is_large(opened, other, out) else _write)(opened, other, out, coordinates)
    stderr.print(f"{count:,} points: {out}", soft_wrap=True)


def _is_large(opened: "Run", other: Any, out: Path) -> bool:
    """Whether points go to the file block by block: those of converted graphs, where the file allows for it."""
    from h2hgcn.datasets.graph_file import FOLDER
    from h2hgcn.embeddings.streams import STREAMED

    if opened.task.name == "gc":
        return False
    suffix, graph = out.suffix.lower(), opened.data if other is None else other
    return suffix == ".npy" or (suffix in STREAMED and FOLDER in graph)


def _stream(opened: "Run", other: Any, out: Path, coordinates: str | None) -> int:
    from h2hgcn.training.artifacts import stream_points

    with progress_bar("rows of layers") as progress:
        return stream_points(opened, other, out, coordinates, progress)


def _write(opened: "Run", other: Any, out: Path, coordinates: str | None) -> int:
    from h2hgcn.training.artifacts import write_points

    points = opened.embeddings if other is None else opened.encode(other)
    write_points(opened, points, opened.data if other is None else other, out, coordinates, overwrite=True)
    return len(points)
