"""``h2hgcn predict`` and ``h2hgcn recommend``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from h2hgcn.cli.console import (
    Force,
    check_table,
    print_json,
    print_title,
    progress_bar,
    say,
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
    read_ids,
    read_pairs,
    warn_of,
)
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.training import Run

Columns = dict[str, list[Any]]

# So many rows and columns fit a screen; all of them go to a file or to JSON.
_SHOWN_ROWS = 20
_SHOWN_COLUMNS = 8


def predict(
    run: RunPath,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Pairs of nodes (lp), nodes (nc) or graphs (gc), by id. Default: all nodes or graphs, with "
            "--new-edges the new nodes."
        ),
    ] = None,
    new_edges: NewEdges = None,
    new_features: NewFeatures = None,
    edges: Edges = None,
    graphs: OtherGraphs = None,
    features: Features = None,
    weights: Weights = None,
    directed: Directed = None,
    source: Source = None,
    target: Target = None,
    header: Header = None,
    delimiter: Delimiter = None,
    comment: Comment = None,
    unlinked: Unlinked = None,
    data: DataFolder = None,
    out: Annotated[Path | None, typer.Option(help="File to write: .csv or .parquet.")] = None,
    force: Force = False,
    no_final: NoFinal = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Predict links, classes of nodes, or classes of graphs, with probabilities.

    With --new-edges (and --new-features) new nodes join the graph of the run. With --edges (and --features) the model
    is used on another graph, whose nodes it need not have seen; with --graphs on the graphs of a folder.

    Examples: h2hgcn predict runs/disease-lp-h2h-gcn-seed0 pairs.csv --out scores.csv;
    h2hgcn predict runs/my-nc-h2h-gcn-seed0 --new-edges new.csv;
    h2hgcn predict runs/shapes-gc-h2h-gcn-seed0 --graphs new-shapes --out classes.csv
    """
    if out is not None:
        check_table(out, force)
    options: dict[str, Any] = {
        "features": features, "weights": weights, "directed": directed, "source": source, "target": target,
        "header": header, "delimiter": delimiter, "comment": comment,
        "unlinked": unlinked,
    }  # fmt: skip
    trained = open_run(run, data, edges is None and graphs is None, not no_final)
    opened = add_new_nodes(trained, new_edges, new_features, edges, **options)
    other = open_other_graph(opened, edges, graphs, **options) if opened is trained else None
    columns = _PREDICT[opened.task.name](opened, file, other)
    warn_of(opened)
    if out is not None:
        write_table(out, columns)
        stderr.print(f"{_length(columns):,} rows: {out}", soft_wrap=True)
    if json:
        print_json([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    elif out is None:
        _print(columns)


def _links(run: "Run", file: Path | None, other: Any) -> Columns:
    if file is None:
        raise DataError("say which pairs: give a file with two nodes in each row, or use h2hgcn recommend")
    sources, targets = read_pairs(file, _node_ids(run, other))
    probabilities = run.predict(list(zip(sources, targets, strict=True)), other)
    return {"source": sources, "target": targets, "probability": probabilities.tolist()}


def _nodes(run: "Run", file: Path | None, other: Any) -> Columns:
    known = _node_ids(run, other)
    new = getattr(run, "new_nodes", known[:0])
    nodes = (new if len(new) else known).tolist() if file is None else read_ids(file, known, "node")
    return _classes(run, "node", nodes, run.predict(nodes, other))


def _graphs(run: "Run", file: Path | None, other: Any) -> Columns:
    from h2hgcn.datasets.graph_file import is_graph
    from h2hgcn.training.artifacts import ids_of

    if is_graph(other):
        if file is not None:
            raise DataError(f"{file}: --edges gives one graph, whose class is predicted; leave the file out")
        return _classes(run, "graph", [other.name], run.predict(other))
    collection = run.data if other is None else other
    known = ids_of(collection)
    chosen = known.tolist() if file is None else read_ids(file, known, "graph")
    return _classes(run, "graph", chosen, run.predict(chosen, collection))


def _embedding(run: "Run", file: Path | None, other: Any) -> Columns:
    raise DataError("a run of --task embed has distances, no probabilities; use h2hgcn recommend or h2hgcn embed")


_PREDICT = {"lp": _links, "nc": _nodes, "gc": _graphs, "embed": _embedding}


def _node_ids(run: "Run", other: Any) -> Any:
    from h2hgcn.training.names import NodeNames

    return NodeNames(run.data if other is None else other).ids


def _classes(run: "Run", what: str, names: list[Any], probabilities: Any) -> Columns:
    classes = run.classes or []
    columns: Columns = {
        what: names,
        "class": [classes[k] for k in probabilities.argmax(1).tolist()],
        "probability": probabilities.amax(1).tolist(),
    }
    return columns | {f"p({name})": probabilities[:, k].tolist() for k, name in enumerate(classes)}


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _print(columns: Columns) -> None:
    shown = list(columns)[:_SHOWN_COLUMNS]
    table = Table(*shown, box=None, header_style="bold", pad_edge=False)
    for row in list(zip(*(columns[name] for name in shown), strict=True))[:_SHOWN_ROWS]:
        table.add_row(*(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row))
    stdout.print(table)
    if _length(columns) > _SHOWN_ROWS or len(columns) > len(shown):
        size = f"{_length(columns):,} rows and {len(columns)} columns"
        stderr.print(f"{size} in all; --out FILE or --json has the others")


_SHOWN_LINKS = 20


def recommend(
    run: RunPath,
    node: Annotated[str | None, typer.Option(help="The id of a node.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="A file of node ids.")] = None,
    all_nodes: Annotated[bool, typer.Option("--all", help="All nodes.")] = False,
    new_edges: NewEdges = None,
    new_features: NewFeatures = None,
    header: Header = None,
    top: Annotated[
        int | None, typer.Option(metavar="K", help="The K likeliest links of the whole graph.", min=1)
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", "--count", help="How many of each node.", min=1, show_default="10")
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(help="Of a directed graph: out, links from the node, or in, links to it. Default: out."),
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(
            help="exact, or hnsw or ivf (extra scale), kept in the run's folder. Default: by the graph's size."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write: .csv or .parquet.")] = None,
    force: Force = False,
    no_final: NoFinal = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the likeliest missing links of a node, of a file of nodes, of all nodes, or of the whole graph.

    In a directed graph these are links from the node, the likeliest first; --direction in lists links to it. --top
    ranks all pairs of nodes that are not linked. Nodes with fewer missing links than asked for get fewer rows. With
    --new-edges (and --new-features) new nodes join the graph of the run, and can be asked for.

    Examples: h2hgcn recommend runs/disease-lp-h2h-gcn-seed0 --node 7 -k 5;
    h2hgcn recommend runs/disease-lp-h2h-gcn-seed0 --all --out links.parquet;
    h2hgcn recommend runs/disease-lp-h2h-gcn-seed0 --top 1000 --out top.csv;
    h2hgcn recommend runs/my-nc-h2h-gcn-seed0 --node new1 --new-edges new.csv
    """
    if (node is not None) + (nodes is not None) + all_nodes + (top is not None) != 1:
        raise DataError("say whose links: --node ID, --nodes FILE, --all or --top K, one of these")
    if top is not None and direction is not None:
        raise DataError("--direction: only with --node, --nodes or --all; --top ranks links from all nodes to all")
    if top is not None and k is not None:
        raise DataError("--top says how many links of the whole graph, -k how many of each node; give one of them")
    k = 10 if k is None else k
    if out is not None:
        check_table(out, force)
    if header is not None and new_edges is None:
        raise DataError("--header and --no-header are about the file of --new-edges, which is not given")
    opened = open_run(run, with_data=False, final=not no_final)
    opened = add_new_nodes(opened, new_edges, new_features, header=header)
    warn_of(opened)
    if opened.classes is not None and opened.link_decoder is not None:
        say(
            "note",
            "bold yellow",
            "this run learned classes: its link probabilities are not calibrated; use their order",
        )
    if node is not None and out is None and index is None:
        _one(opened, node, k, direction, json)
        return
    if top is not None:
        _top(opened, top, index, out, json)
        return
    _many(opened, node, nodes, k, index, direction, out, json)


def _one(opened: "Run", node: str, k: int, direction: str | None, json: bool) -> None:
    rows = opened.recommend(node, k, direction)
    if json:
        print_json([row._asdict() for row in rows])
        return
    preposition = {"out": "from", "in": "to", None: "of"}[opened.link_order(direction)[0]]
    print_title(f"likeliest missing links {preposition} {node}")
    table = Table("node", "probability", "distance", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        probability = "-" if row.probability is None else f"{row.probability:.4f}"
        table.add_row(str(row.node), probability, f"{row.distance:.4f}")
    stdout.print(table)


def _many(
    opened: "Run",
    node: str | None,
    nodes: Path | None,
    k: int,
    index: str | None,
    direction: str | None,
    out: Path | None,
    json: bool,
) -> None:
    from h2hgcn.training.names import NodeNames
    from h2hgcn.training.recommending import recommend_links_of

    wanted: Any = None if node is None else [node]
    if nodes is not None and opened.data is not None:
        wanted = read_ids(nodes, NodeNames(opened.data).ids, "node")
    with progress_bar("nodes") as progress:
        columns = recommend_links_of(opened, wanted, k, index, direction, progress, _say)
    _write(columns, out, json)


def _top(opened: "Run", top: int, index: str | None, out: Path | None, json: bool) -> None:
    from h2hgcn.training.recommending import top_links_of

    with progress_bar("nodes") as progress:
        columns = top_links_of(opened, top, index, progress, _say)
    _write(columns, out, json)


def _say(words: str) -> None:
    stderr.print(words, soft_wrap=True)


def _write(columns: dict[str, Any], out: Path | None, json: bool) -> None:
    """To a file, as JSON, or the first rows as a table."""
    if out is not None:
        write_table(out, columns)
        _say(f"{len(columns['rank']):,} rows: {out}")
    plain = {name: column.tolist() for name, column in columns.items()} if json or out is None else {}
    rows = list(zip(*plain.values(), strict=True))
    if json:
        print_json([dict(zip(plain, row, strict=True)) for row in rows])
    elif out is None:
        _print_links(list(plain), rows)


def _print_links(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    table = Table(*names, box=None, header_style="bold", pad_edge=False)
    for row in rows[:_SHOWN_LINKS]:
        table.add_row(*(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row))
    stdout.print(table)
    if len(rows) > _SHOWN_LINKS:
        stderr.print(f"{len(rows):,} rows in all; --out FILE or --json has the others")
