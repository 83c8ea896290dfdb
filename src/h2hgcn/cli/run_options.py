"""A run by its folder, and another graph that it is to be used on."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2hgcn.cli.graph_options import given, open_own_graph
from h2hgcn.cli.output import say, starting, stderr
from h2hgcn.errors import DataError, DataWarning

if TYPE_CHECKING:
    from h2hgcn.training import Run

RunPath = Annotated[Path, typer.Argument(help="The folder of a finished run.")]

NoFinal = Annotated[bool, typer.Option("--no-final", help="Use the run itself, even if it has a final fit.")]
NewEdges = Annotated[
    str | None,
    typer.Option("--new-edges", help="Edges of new nodes, joined with the run's graph; a file as for its edges."),
]
NewFeatures = Annotated[
    str | None, typer.Option("--new-features", help="Features of new nodes: a file as for those of the run.")
]

# How a file of edges was read for the run: another one is read the same way, unless flags say otherwise.
_SAME_WAY = ("weights", "directed", "source", "target")
_OF_NEW_EDGES = ("weights", "source", "target", "header")

OtherGraphs = Annotated[
    str | None,
    typer.Option("--graphs", help="Folder of other graphs than those of the run, with the same features; no labels."),
]


def open_run(
    path: Path,
    root: Path | None = None,
    with_data: bool = True,
    final: bool = False,
    graphs: str | None = None,
    labels: str | None = None,
) -> "Run":
    """A run with its data: one graph is in the run's folder, a collection is opened where it was, or at ``graphs``.
    With ``final``, its final fit if there is one.
    """
    if not path.is_dir():
        raise DataError(f"{path} is not a folder; give the folder of a run")
    with starting():
        from h2hgcn.training import load_run

        run = load_run(path)
        if final:
            run = _final_of(run)
    if run.data is None and with_data:
        run.data = _collection(run, path, root, given(graphs=graphs, labels=labels))
    elif graphs is not None and with_data:
        raise DataError(f"--graphs: {path} is not about graphs of a folder, but about one graph, which it holds")
    return run


def _final_of(run: "Run") -> "Run":
    """The final fit of a run, or the run itself; a line says so where there is a final fit."""
    from h2hgcn.training.final import load_final

    found, problem = load_final(run)
    if problem is not None:
        say("note", "bold yellow", f"{problem}; the run itself is used")
    if found is None:
        return run
    stderr.print(f"using the final fit in {found.folder}; --no-final uses the run itself", soft_wrap=True)
    return found


def warn_of(run: "Run") -> None:
    """Prints the warnings that matter to anyone who uses the run's predictions."""
    from h2hgcn.training.result_warnings import serious_warnings

    for warning in serious_warnings(run.result):
        say("note", "bold yellow", warning)


def _collection(run: "Run", path: Path, root: Path | None, moved: dict[str, str]) -> Any:
    """The collection that the run was trained on; ``moved`` are the folder of graphs and the labels, if they were."""
    from h2hgcn.datasets.graph_file import fingerprint
    from h2hgcn.experiments.graph_choice import GraphChoice, open_graph

    if run.task.name != "gc":
        raise DataError(
            f"{path / 'graph.safetensors'} is not there; give the run's command again, which writes it anew"
        )
    options = {name: value for name, value in run.config["data"].items() if name not in ("fingerprint", "memory")}
    if moved and "graphs" not in options:
        raise DataError(f"--{next(iter(moved))}: {path} was not trained on a folder of graphs; leave it out")
    if not options:
        raise DataError(f"{path} does not say where its graphs came from; use load_run(path, data=...) from Python")
    options |= moved
    for name in ("graphs", "labels"):
        if name in options and not Path(options[name]).exists():
            raise DataError(
                f"{options[name]}, which {path} was trained on, is not there; say where it is now with --{name}"
            )
    choice = GraphChoice(options)
    with warnings.catch_warnings():  # its notes were printed when it was trained on
        warnings.simplefilter("ignore", DataWarning)
        data = open_graph(choice, root)
    if getattr(data, "y", None) is None or fingerprint(data) != run.config["data"]["fingerprint"]:
        where = options.get("graphs", choice.name)
        raise DataError(
            f"{where} is not what {path} was trained on: graphs, features or classes differ; find the same ones, or "
            "train again"
        )
    return data


def add_new_nodes(
    run: "Run", new_edges: str | None, new_features: str | None, edges: str | None = None, **options: Any
) -> "Run":
    """The run with new nodes, if there are any."""
    if new_edges is None and new_features is None:
        return run
    flags = given(**options)
    if edges is not None:
        raise DataError("--edges is another graph, --new-edges and --new-features add to that of the run; choose one")
    useless = [f"--{name}" for name in flags if name not in _OF_NEW_EDGES]
    if useless:
        raise DataError(f"{', '.join(useless)}: not with --new-edges, which are joined with the graph of the run")
    before = {name: value for name, value in run.config["data"].items() if name in _OF_NEW_EDGES}
    read = {**(before if new_edges is not None else {}), **flags}
    if ("source" in read) != ("target" in read):
        raise DataError("--source and --target belong together; give both or none")
    return run.with_new(
        None if new_edges is None else Path(new_edges),
        None if new_features is None else Path(new_features),
        weights=False if read.get("weights") == "none" else read.get("weights"),
        columns=(read["source"], read["target"]) if "source" in read else None,
        header=read.get("header"),
    )


def open_other_graph(run: "Run", edges: str | None, graphs: str | None = None, **options: Any) -> Any:
    """A graph with nodes that the run has not seen, or a collection of other graphs; None if neither is given."""
    flags = given(**options)
    if edges is None and graphs is None:
        if flags:
            named = ", ".join(f"--{name}" for name in flags)
            raise DataError(f"{named}: only with --edges, for another graph than that of the run")
        return None
    before = {name: value for name, value in run.config["data"].items() if name in _SAME_WAY}
    if graphs is not None:
        return _other_graphs(run, edges, graphs, before | flags)
    run.check_inductive()
    return open_own_graph(str(edges), **{**before, **flags})


def _other_graphs(run: "Run", edges: str | None, graphs: str, options: dict[str, Any]) -> Any:
    """The graphs of a folder, with the columns of features that the run knows."""
    from h2hgcn.datasets.own.graphs import load_graphs_by_text

    if run.task.name != "gc":
        raise DataError("--graphs: this run is about one graph; name another one with --edges")
    if edges is not None or "unlinked" in options:
        raise DataError(f"{'--edges' if edges is not None else '--unlinked'}: only for one graph, without --graphs")
    known = run.config["facts"].get("feature_names")
    return load_graphs_by_text(graphs, **{"labels": False, "features": known, **options})
