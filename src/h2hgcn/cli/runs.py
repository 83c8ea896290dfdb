"""Finished runs: how commands open them, and ``h2hgcn evaluate``, ``embed`` and ``split``."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from h2hgcn.cli import console
from h2hgcn.cli import options as flags
from h2hgcn.errors import DataError, DataWarning

if TYPE_CHECKING:
    from h2hgcn.training import Run

# New edges are read as the run's edges were, unless flags say otherwise; so is another graph, which may be directed.
_OF_NEW_EDGES = ("weights", "source", "target", "header", "delimiter", "comment")
_SAME_WAY = ("weights", "directed", "source", "target", "delimiter", "comment")


def open_run(
    path: Path, root: Path | None = None, with_data: bool = True, final: bool = False, moved: flags.Given | None = None
) -> "Run":
    """A run with its data: one graph is in the run's folder, a collection is where it was, or where ``moved`` says.
    With ``final``, its final fit if there is one.
    """
    if not path.is_dir():
        raise DataError(f"{path} is not a folder; give the folder of a run")
    with console.starting():
        from h2hgcn.training.loading import load_final, load_run

        run = load_run(path)
        fitted, problem = load_final(run) if final else (None, None)
    if problem is not None:
        console.note(f"{problem}; the run itself is used")
    if fitted is not None:
        console.tell(f"using the final fit in {fitted.folder}; --no-final uses the run itself")
        run = fitted
    if run.data is None and with_data:
        run.data = _collection(run, path, root, moved or {})
    elif moved and "graphs" in moved and with_data:
        raise DataError(f"--graphs: {path} is about one graph, which it holds; leave it out")
    return run


def _collection(run: "Run", path: Path, root: Path | None, moved: flags.Given) -> Any:
    """The collection that the run was trained on; ``moved`` has its folder and labels, if they were moved."""
    from h2hgcn.datasets.on_disk import fingerprint
    from h2hgcn.experiments.config import GraphChoice, open_graph

    if not run.task.of_collections:
        raise DataError(f"{path / 'graph.safetensors'} is missing; give the run's command again, which writes it again")
    options = {name: value for name, value in run.config["data"].items() if name not in ("fingerprint", "memory")}
    if moved and "graphs" not in options:
        raise DataError(f"--{next(iter(moved))}: {path} was not trained on a folder of graphs; leave it out")
    if not options:
        raise DataError(f"{path} does not say where its graphs came from; use load_run(path, data=...) from Python")
    options |= moved
    for name in ("graphs", "labels"):
        if name in options and not Path(options[name]).exists():
            raise DataError(f"{options[name]}, which {path} was trained on, is missing; name its place with --{name}")
    choice = GraphChoice(options)
    with warnings.catch_warnings():  # printed when it was trained on
        warnings.simplefilter("ignore", DataWarning)
        data = open_graph(choice, root)
    if getattr(data, "y", None) is None or fingerprint(data) != run.config["data"]["fingerprint"]:
        where = options.get("graphs", choice.name)
        raise DataError(
            f"{where} is not what {path} was trained on: graphs, features or classes differ. Find the same data, or "
            "train again."
        )
    return data


def warn_of(run: "Run") -> None:
    """Prints the warnings that matter to anyone who uses the run's predictions."""
    from h2hgcn.training.result_warnings import serious_warnings

    for warning in serious_warnings(run.result):
        console.note(warning)


def add_new_nodes(run: "Run", new: flags.Given, graph: flags.Given) -> "Run":
    """The run with new nodes, if there are any."""
    if not new:
        return run
    from h2hgcn.datasets.loading import options_of

    if "edges" in graph:
        raise DataError("--edges is another graph, --new-edges and --new-features add to that of the run; choose one")
    if useless := [f"--{name}" for name in graph if name not in _OF_NEW_EDGES]:
        raise DataError(f"{', '.join(useless)}: not with --new-edges, which join the run's graph; leave it out")
    # ids of the run tell whether new edges have a header
    kept = [name for name in _OF_NEW_EDGES if name != "header" and "new_edges" in new]
    before = {name: value for name, value in run.config["data"].items() if name in kept}
    edges, features = (Path(new[name]) if name in new else None for name in flags.NEW_NODES)
    return run.with_new(edges, features, **options_of(**before | graph))


def open_other_graph(run: "Run", graph: flags.Given, graphs: str | None) -> Any:
    """A graph that the run has not seen, or a collection of other graphs; None if neither is given."""
    from h2hgcn.datasets.graph_folder import load_graphs_by_text
    from h2hgcn.datasets.loading import load_graph_by_text

    before = {name: value for name, value in run.config["data"].items() if name in _SAME_WAY}
    if graphs is not None:
        if not run.task.of_collections:
            raise DataError("--graphs: this run is about one graph; name another one with --edges")
        if useless := [name for name in ("edges", "unlinked") if name in graph]:
            raise DataError(f"--{useless[0]}: only for one graph; leave it out with --graphs")
        known = run.config["facts"].get("feature_names")
        return load_graphs_by_text(graphs, **{"labels": False, "features": known, **before, **graph})
    if "edges" not in graph:
        if graph:
            raise DataError(f"{', '.join(f'--{name}' for name in graph)}: only with --edges, for another graph")
        return None
    run.check_inductive()
    return load_graph_by_text(**{**before, **graph})


def evaluate(
    run: flags.RunPath,
    graphs: Annotated[str | None, typer.Option(help="New place of the run's folder of graphs, if it moved.")] = None,
    labels: Annotated[str | None, typer.Option(help="New place of the labels of these graphs, if they moved.")] = None,
    data: flags.DataFolder = None,
    json: flags.Json = False,
) -> None:
    """Compute a run's metrics again, on validation and test data. For classes, also precision, recall and F1 of each
    on the test data, and the confusion matrix.

    The metrics are those of the run itself, even if it has a final fit. A final fit (RUN/final) holds nothing out; for
    it, the metrics of its run are shown.

    Example: h2hgcn evaluate runs/disease-lp-h2h-gcn-seed0
    """
    moved = {name: value for name, value in (("graphs", graphs), ("labels", labels)) if value is not None}
    opened = open_run(run, data, moved=moved)
    selection = opened.result["selection"]
    metrics = {part: opened.evaluate(part) for part in opened.task.parts}
    details = opened.details() if metrics else {}
    if json:
        more = {"details": details} if metrics else {"of_run": opened.result["of_run"]}
        console.print_json({"run": str(run), "selection": selection, "metrics": metrics, **more})
    elif metrics:
        console.stdout.print(console.metrics_table(metrics, selection))
        console.print_classes(details)
    else:
        print_held_out(opened)


def print_held_out(final: "Run") -> None:
    """The metrics of the run that a final fit comes from."""
    from h2hgcn.training.artifacts import scores_of_baselines

    of_run, selection = final.result["of_run"], final.result["selection"]
    if of_run is not None:
        where = final.config["final"]["run"]
        console.stdout.print(f"Nothing was held out. Metrics of its run, {where}:", soft_wrap=True)
        table = console.metrics_table(of_run["metrics"], selection, scores_of_baselines(of_run, selection))
        console.stdout.print(table)


@flags.with_flags(new=flags.NEW_NODES, graph=("edges", *flags.READING))
def embed(
    run: flags.RunPath,
    new: flags.Given,
    graph: flags.Given,
    out: Annotated[Path, typer.Option(help="File to write: .parquet, .npz, .csv, .h5ad, or .npy for points alone.")],
    coordinates: Annotated[
        Literal["lorentz", "poincare", "klein", "tangent", "euclidean"] | None,
        typer.Option(
            help="tangent (at the origin) suits Euclidean methods; Euclidean models have euclidean only.",
            show_default="of the model",
        ),
    ] = None,
    graphs: flags.OtherGraphs = None,
    data: flags.DataFolder = None,
    force: flags.Force = False,
    no_final: flags.NoFinal = False,
) -> None:
    """Write the points of the run's nodes (of its graphs, for a collection), or of other graphs.

    With --new-edges (and --new-features) new nodes join the graph of the run; their points come last.
    A .h5ad file is the one that the graph came from, if it is there, with the points in obsm["X_h2hgcn"].

    Example: h2hgcn embed runs/disease-lp-h2h-gcn-seed0 --out disease.csv --coordinates poincare
    """
    console.check_free(out, force)
    opened = open_run(run, data, "edges" not in graph and graphs is None, not no_final)
    if "edges" in graph and opened.task.of_collections:
        raise DataError(f"--edges: {run} is about graphs of a collection; use h2hgcn predict for the class of another")
    extended = add_new_nodes(opened, new, graph)
    other = open_other_graph(opened, graph, graphs) if extended is opened else extended.data
    from h2hgcn.datasets.on_disk import FOLDER
    from h2hgcn.embeddings.files import STREAMED
    from h2hgcn.training.artifacts import stream_points, write_h5ad, write_points

    suffix, embedded = out.suffix.lower(), opened.data if other is None else other
    one_graph = not opened.task.of_collections
    if one_graph and (suffix == ".npy" or (suffix in STREAMED and FOLDER in embedded)):  # block by block
        with console.progress_bar("rows of layers") as progress:
            count = stream_points(opened, other, out, coordinates, progress)
    else:
        points = opened.embeddings if other is None else opened.encode(other)
        count = len(points)
        if suffix == ".h5ad":
            edges = Path(graph.get("edges") or opened.config["data"].get("edges", ""))
            has_source = edges.suffix.lower() == ".h5ad" and edges.is_file() and extended is opened
            write_h5ad(opened, points, embedded, edges if has_source else None, out, coordinates)
        else:
            write_points(opened, points, embedded, out, coordinates)
    console.tell(f"{count:,} points: {out}")


def split(
    run: flags.RunPath,
    out: Annotated[Path, typer.Option(help="File to write: .csv or .parquet.")],
    data: flags.DataFolder = None,
    safe_csv: flags.SafeCsv = False,
    force: flags.Force = False,
) -> None:
    """Write the links, nodes or graphs that a run was trained, validated and tested on.

    Columns for links: source, target, split (train, val or test), label (1, or 0 for a pair without a link). For nodes
    or graphs: node or graph, label, split. A file of nodes can be used as --labels, with the same split.

    Example: h2hgcn split runs/disease-lp-h2h-gcn-seed0 --out split.csv
    """
    console.check_free(out, force, console.TABLES)
    columns = open_run(run, data).split_table()
    console.write_table(out, columns, safe_csv)
    console.tell(f"{len(columns['split']):,} rows: {out}")
