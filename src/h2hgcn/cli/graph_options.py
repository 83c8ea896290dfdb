"""The flags that say which graph, the same for every command."""

from pathlib import Path
from typing import Annotated, Any

import typer

from h2hgcn.errors import DataError

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
    from h2hgcn.datasets.own.converted import is_converted
    from h2hgcn.datasets.own.graphs import load_graphs_by_text

    if graph in DATASETS and not Path(graph).is_file():
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
    from h2hgcn.datasets.own.by_text import load_graph_by_text

    return load_graph_by_text(edges, **options)


def given(**options: Any) -> dict[str, Any]:
    """The flags that were set."""
    return {name: value for name, value in options.items() if value is not None}
