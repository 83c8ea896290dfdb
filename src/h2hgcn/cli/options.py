"""The flags that several commands share, and what they open."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2hgcn.cli.console import say, starting, stderr
from h2hgcn.errors import DataError, DataWarning

if TYPE_CHECKING:
    from h2hgcn.datasets.tables import Table
    from h2hgcn.training import Run

DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder of the named datasets. Default: $H2HGCN_DATA, else the cache.")
]
Edges = Annotated[
    str | None,
    typer.Option(
        help="Edges of a graph of your own: CSV, Parquet, NPZ, GraphML, GEXF or MatrixMarket, or a folder of convert."
    ),
]
Graphs = Annotated[
    str | None,
    typer.Option(help="Folder of graphs to classify: one file a graph (any format of --edges), or a TU dataset."),
]
Features = Annotated[
    str | None,
    typer.Option(
        help="Features: a file with a node id and numbers, or with the columns id, feature, value; .npy/.npz; or node "
        "attributes a,b,c."
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        help="Labels: a file with an id (of a node or graph) and a label, and perhaps a column split (train, val, "
        "test); .npy/.npz; or a node attribute."
    ),
]
Weights = Annotated[str | None, typer.Option(help="Column of edge weights; 'none' to take no weights.")]
Directed = Annotated[
    bool | None, typer.Option("--directed/--undirected", help="Whether edges go one way. Default: as the file says.")
]
Source = Annotated[str | None, typer.Option(help="Column of edge sources.")]
Target = Annotated[str | None, typer.Option(help="Column of edge targets.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the edges file has a header. Default: find out.")
]
Delimiter = Annotated[
    str | None, typer.Option(help="What delimits fields of text files: a character, tab or space. Default: find out.")
]
Comment = Annotated[
    str | None,
    typer.Option(help="What comment lines of text files begin with; 'none' if all lines are data.", show_default="#"),
]
Unlinked = Annotated[
    str | None,
    typer.Option(help="Nodes with features or labels but no edge: error, keep or drop.", show_default="error"),
]

Search = Annotated[
    str,
    typer.Option(
        help="How settings are chosen on validation data: fast (a race of candidates), thorough (each trained in "
        "full), none, or auto: fast for a graph without tuned settings of its own."
    ),
]


def open_graph(graph: str, root: Path | None = None, **options: Any) -> Any:
    """A named dataset, the graph of a file, or a folder of graphs."""
    from h2hgcn.datasets import DATASETS, load_dataset
    from h2hgcn.datasets.graph_folder import load_graphs_by_text
    from h2hgcn.datasets.on_disk import is_converted

    if graph.lower() in DATASETS and not Path(graph).is_file():
        given = [f"--{name}" for name, value in options.items() if value is not None]
        if given:
            raise DataError(f"{', '.join(given)}: only for a graph of your own; {graph} is a named dataset")
        return load_dataset(graph, root)
    if not Path(graph).exists():
        raise DataError(f"{graph} is neither a file nor one of the datasets {', '.join(DATASETS)}")
    if Path(graph).is_dir() and not is_converted(graph):
        if options.pop("unlinked", None) is not None:
            raise DataError(f"--unlinked: only for one graph; {graph} is a folder of graphs")
        return load_graphs_by_text(graph, **options)
    return open_own_graph(graph, **options)


def open_own_graph(edges: str, **options: Any) -> Any:
    """The graph of a file of edges and what goes with it."""
    from h2hgcn.datasets.loading import load_graph_by_text

    return load_graph_by_text(edges, **options)


def given(**options: Any) -> dict[str, Any]:
    """The flags that were set."""
    return {name: value for name, value in options.items() if value is not None}


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
_SAME_WAY = ("weights", "directed", "source", "target", "delimiter", "comment")
_OF_NEW_EDGES = ("weights", "source", "target", "header", "delimiter", "comment")

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
    from h2hgcn.experiments.config import GraphChoice, open_graph

    if not run.task.of_collections:
        raise DataError(
            f"{path / 'graph.safetensors'} is not there; give the run's command again, which writes it again"
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
    of_run = [name for name in _OF_NEW_EDGES if name != "header"]  # ids of the run tell whether new edges have one
    before = {name: value for name, value in run.config["data"].items() if name in of_run}
    read = {**(before if new_edges is not None else {}), **flags}
    if ("source" in read) != ("target" in read):
        raise DataError("--source and --target belong together; give both or none")
    return run.with_new(
        None if new_edges is None else Path(new_edges),
        None if new_features is None else Path(new_features),
        weights=False if read.get("weights") == "none" else read.get("weights"),
        columns=(read["source"], read["target"]) if "source" in read else None,
        header=read.get("header"),
        delimiter=read.get("delimiter"),
        comment=read.get("comment"),
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
    from h2hgcn.datasets.graph_folder import load_graphs_by_text

    if not run.task.of_collections:
        raise DataError("--graphs: this run is about one graph; name another one with --edges")
    if edges is not None or "unlinked" in options:
        raise DataError(f"{'--edges' if edges is not None else '--unlinked'}: only for one graph, without --graphs")
    known = run.config["facts"].get("feature_names")
    return load_graphs_by_text(graphs, **{"labels": False, "features": known, **options})


def read_pairs(path: Path, known: Any) -> list[list[Any]]:
    """The sources and the targets of pairs of ``known`` ids, as two lists."""
    from h2hgcn.datasets.tables import EDGE_COLUMN_NAMES, end_columns

    table = _read(path, known, EDGE_COLUMN_NAMES)
    if len(table.columns) < 2:
        raise DataError(f"{path} has one column; a pair needs two nodes: delimit them by a comma or a tab")
    sources, targets = _known_ids(table, end_columns(table.columns), known, "node")
    alone = next((row for row, (a, b) in enumerate(zip(sources, targets, strict=True)) if a == b), None)
    if alone is not None:
        raise DataError(
            f"{table.where(alone)}: the pair is the node {sources[alone]!r} with itself; leave the row out, since "
            "a link joins two nodes"
        )
    return [sources, targets]


def read_ids(path: Path, known: Any, what: str) -> list[Any]:
    """Some of the ``known`` ids of nodes or graphs, as ``what`` says."""
    from h2hgcn.datasets.tables import id_column

    table = _read(path, known, frozenset({what}))
    return _known_ids(table, (id_column(table.columns),), known, what)[0]


def _read(path: Path, known: Any, names: frozenset[str]) -> "Table":
    from h2hgcn.datasets.nodes import read_node_table
    from h2hgcn.datasets.tables import TextFormat

    table, notes = read_node_table(path, known, TextFormat(), names)
    if names.isdisjoint(name.lower() for name in table.columns):
        for note in notes:
            warnings.warn(note, DataWarning, stacklevel=2)
    return table


def _known_ids(table: "Table", columns: tuple[int, ...], known: Any, what: str) -> list[list[Any]]:
    """Ids as the graph has them, found by what is written, so that 7 is 7 in a column of text, too."""
    from h2hgcn.datasets.arrays import unknown_nodes

    by_text = {str(node): node for node in known.tolist()}
    written = [table.ids(column).tolist() for column in columns]
    unknown = [
        (row, node) for row, ids in enumerate(zip(*written, strict=True)) for node in ids if str(node) not in by_text
    ]
    if unknown:
        row = unknown[0][0]
        said = unknown_nodes([node for _, node in unknown], known, what)
        raise DataError(f"{table.where(row)}: {said}{_hint(table, row)}")
    return [[by_text[str(node)] for node in ids] for ids in written]


def _hint(table: "Table", row: int) -> str:
    is_first = row == 0 and not table.has_header
    return "; if the line is a header, name its columns id, or source and target" if is_first else ""
