"""The flags that say which graph, the same for every command."""

from pathlib import Path
from typing import Annotated, Any

import typer

from h2hgcn.datasets import DATASETS, DataError, load_dataset, load_graph

DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder of the named datasets. Default: $H2HGCN_DATA, else the cache.")
]
Features = Annotated[Path | None, typer.Option(help="Features: a file with a node id and numbers, or .npy/.npz.")]
Labels = Annotated[Path | None, typer.Option(help="Labels: a file with a node id and a label, or .npy/.npz.")]
Weights = Annotated[str | None, typer.Option(help="Column of edge weights; 'none' to take no weights.")]
Directed = Annotated[
    bool | None, typer.Option("--directed/--undirected", help="Whether edges go one way. Default: as the file says.")
]
Source = Annotated[str | None, typer.Option(help="Column of edge sources.")]
Target = Annotated[str | None, typer.Option(help="Column of edge targets.")]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the edges file has a header. Default: find out.")
]
Unlinked = Annotated[str, typer.Option(help="Nodes with features or labels but no edge: error, keep or drop.")]


def open_graph(
    graph: str,
    data: Path | None = None,
    features: Path | None = None,
    labels: Path | None = None,
    weights: str | None = None,
    directed: bool | None = None,
    source: str | None = None,
    target: str | None = None,
    header: bool | None = None,
    unlinked: str = "error",
) -> Any:
    """A named dataset or the graph of a file."""
    own = {"--features": features, "--labels": labels, "--weights": weights, "--directed": directed, "--source": source,
           "--target": target, "--header": header}  # fmt: skip
    if graph in DATASETS and not Path(graph).is_file():
        given = [flag for flag, value in own.items() if value is not None]
        if given:
            raise DataError(f"{', '.join(given)} are for a graph of your own; {graph} is a named dataset")
        return load_dataset(graph, data)
    if not Path(graph).exists():
        raise DataError(f"{graph} is neither a file nor one of the datasets {', '.join(DATASETS)}")
    if (source is None) != (target is None):
        raise DataError("--source and --target belong together; give both or none")
    columns = None if source is None or target is None else (source, target)
    return load_graph(
        Path(graph), features, labels, False if weights == "none" else weights, directed,
        columns=columns, header=header, unlinked=unlinked,  # type: ignore[arg-type]  # checked there
    )  # fmt: skip
