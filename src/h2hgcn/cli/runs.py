"""``h2hgcn evaluate``, ``embed`` and ``split``: what a finished run holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2hgcn.cli.console import (
    Force,
    check_free,
    check_table,
    metrics_table,
    print_classes,
    print_json,
    progress_bar,
    stderr,
    stdout,
    write_table,
)
from h2hgcn.cli.options import (
    Comment,
    DataFolder,
    Delimiter,
    Directed,
    Edges,
    Features,
    Header,
    Labels,
    NewEdges,
    NewFeatures,
    NoFinal,
    OtherGraphs,
    RunPath,
    Source,
    Target,
    Unlinked,
    Weights,
    add_new_nodes,
    open_other_graph,
    open_run,
)
from h2hgcn.cli.train import print_held_out
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.training import Run


def evaluate(
    run: RunPath,
    graphs: Annotated[
        str | None, typer.Option(help="Where the folder of graphs is that the run was trained on, if it was moved.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Where the labels of these graphs are, if they were moved.")
    ] = None,
    data: DataFolder = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute a run's metrics again, on the parts of its data: validation and test. Of classes, the precision, recall
    and F1 of each on the test part, and the confusion matrix.

    These are of the run itself, also if it has a final fit. Nothing was held out of a final fit, RUN/final: it has the
    metrics of the run that it comes from.

    Example: h2hgcn evaluate runs/disease-lp-h2h-gcn-seed0
    """
    opened = open_run(run, data, graphs=graphs, labels=labels)
    selection = opened.result["selection"]
    if not opened.task.parts:
        if json:
            print_json({"run": str(run), "selection": selection, "metrics": {}, "of_run": opened.result["of_run"]})
        else:
            print_held_out(opened)
        return
    metrics = {part: opened.evaluate(part) for part in opened.task.parts}
    details = opened.details()
    if json:
        print_json({"run": str(run), "selection": selection, "metrics": metrics, "details": details})
    else:
        stdout.print(metrics_table(metrics, selection))
        print_classes(details)


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
    delimiter: Delimiter = None,
    comment: Comment = None,
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
    if edges is not None and opened.task.of_collections:
        raise DataError(
            f"--edges: {run} is about graphs of a collection; h2hgcn predict tells the class of another one"
        )
    options: dict[str, Any] = {
        "features": features, "labels": labels, "weights": weights, "directed": directed, "source": source,
        "target": target, "header": header, "delimiter": delimiter, "comment": comment,
        "unlinked": unlinked,
    }  # fmt: skip
    extended = add_new_nodes(opened, new_edges, new_features, edges, **options)
    other = open_other_graph(opened, edges, graphs, **options) if extended is opened else extended.data
    count = (_stream if _is_large(opened, other, out) else _write)(opened, other, out, coordinates)
    stderr.print(f"{count:,} points: {out}", soft_wrap=True)


def _is_large(opened: "Run", other: Any, out: Path) -> bool:
    """Whether points go to the file block by block: those of converted graphs, where the file allows for it."""
    from h2hgcn.datasets.graph_file import FOLDER
    from h2hgcn.embeddings.files import STREAMED

    if opened.task.of_collections:
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


def split(
    run: RunPath,
    out: Annotated[Path, typer.Option(help="File to write: .csv or .parquet.")],
    data: DataFolder = None,
    force: Force = False,
) -> None:
    """Write which links, nodes or graphs a run was trained, validated and tested on.

    Of links: source, target, split (train, val or test), label (1, or 0 for a pair without a link). Of nodes or graphs:
    node or graph, label, split; such a file of nodes can be used as --labels, with the same split.

    Example: h2hgcn split runs/disease-lp-h2h-gcn-seed0 --out split.csv
    """
    check_table(out, force)
    columns = open_run(run, data).split_table()
    write_table(out, columns)
    stderr.print(f"{len(columns['split']):,} rows: {out}", soft_wrap=True)
