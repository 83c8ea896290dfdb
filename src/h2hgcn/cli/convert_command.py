"""``h2hgcn convert``: a graph of any size as a folder that is mapped into memory."""

from pathlib import Path
from typing import Annotated

import typer

from h2hgcn.cli.graph_options import Header, Source, Target, Weights
from h2hgcn.cli.output import starting, stdout
from h2hgcn.errors import DataError


def convert(
    edges: Annotated[Path, typer.Option(help="Edges: CSV, TSV or Parquet.")],
    out: Annotated[Path, typer.Option(help="The folder to write; one that convert wrote is replaced.")],
    features: Annotated[Path | None, typer.Option(help="Features: a file with a node id and numbers.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Labels: a file with a node id and a label.")] = None,
    weights: Weights = None,
    directed: Annotated[bool, typer.Option("--directed/--undirected", help="Whether edges go one way.")] = False,
    source: Source = None,
    target: Target = None,
    header: Header = None,
) -> None:
    """Convert a graph of any size, once, to a folder that train and others map into memory as --edges FOLDER.

    Example: h2hgcn convert --edges my.csv --features x.csv --out my-graph
    """
    with starting():
        from h2hgcn.datasets.own.conversion import convert_graph
        from h2hgcn.datasets.own.converted import load_converted
    if (source is None) != (target is None):
        raise DataError("--source and --target belong together; give both or none")
    columns = None if source is None or target is None else (source, target)
    column = False if weights == "none" else weights
    folder = convert_graph(edges, out, features, labels, column, directed, columns=columns, header=header)
    graph = load_converted(folder)
    count = graph.edge_index.shape[1] // (1 if directed else 2)
    stdout.print(f"{folder}: {graph.num_nodes:,} nodes, {count:,} edges, {graph.x.shape[1]} features", soft_wrap=True)
    for note in graph.notes:
        stdout.print(f"note: {note}", soft_wrap=True)
