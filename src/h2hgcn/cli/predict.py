"""``h2hgcn predict`` and ``h2hgcn recommend``."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from h2hgcn.cli.console import (
    check_table,
    note,
    plain_table,
    print_json,
    print_rows,
    print_title,
    progress_bar,
    stdout,
    tell,
    write_table,
)
from h2hgcn.cli.options import (
    READING,
    DataFolder,
    Force,
    Given,
    Json,
    NewEdges,
    NewFeatures,
    NoFinal,
    OtherGraphs,
    RunPath,
    Table,
    with_graph,
)
from h2hgcn.cli.runs import add_new_nodes, open_other_graph, open_run, warn_of
from h2hgcn.errors import DataError, DataWarning

if TYPE_CHECKING:
    from h2hgcn.training import Run

Columns = dict[str, list[Any]]


@with_graph("edges", *(name for name in READING if name != "labels"))
def predict(
    run: RunPath,
    graph: Given,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Pairs of nodes (lp), nodes (nc) or graphs (gc), by id. Default: all nodes or graphs; with "
            "--new-edges, the new nodes."
        ),
    ] = None,
    new_edges: NewEdges = None,
    new_features: NewFeatures = None,
    graphs: OtherGraphs = None,
    data: DataFolder = None,
    out: Table = None,
    force: Force = False,
    no_final: NoFinal = False,
    json: Json = False,
) -> None:
    """Predict links, classes of nodes, or classes of graphs, with probabilities.

    With --new-edges (and --new-features) new nodes join the graph of the run. With --edges (and --features) the model
    is applied to another graph with new nodes, with --graphs to the graphs of a folder.

    Examples: h2hgcn predict runs/disease-lp-h2h-gcn-seed0 pairs.csv --out scores.csv;
    h2hgcn predict runs/my-nc-h2h-gcn-seed0 --new-edges new.csv;
    h2hgcn predict runs/shapes-gc-h2h-gcn-seed0 --graphs new-shapes --out classes.csv
    """
    if out is not None:
        check_table(out, force)
    trained = open_run(run, data, "edges" not in graph and graphs is None, not no_final)
    opened = add_new_nodes(trained, new_edges, new_features, graph)
    other = open_other_graph(opened, graph, graphs) if opened is trained else None
    columns = _PREDICT[opened.task.name](opened, file, other)
    warn_of(opened)
    _write(columns, out, json)


def _links(run: "Run", file: Path | None, other: Any) -> Columns:
    if file is None:
        raise DataError("name the pairs: give a file with two nodes in each row, or use h2hgcn recommend")
    sources, targets = _read_pairs(file, _node_ids(run, other))
    probabilities = run.predict(list(zip(sources, targets, strict=True)), other)
    return {"source": sources, "target": targets, "probability": probabilities.tolist()}


def _nodes(run: "Run", file: Path | None, other: Any) -> Columns:
    known = _node_ids(run, other)
    new = getattr(run, "new_nodes", known[:0])
    nodes = (new if len(new) else known).tolist() if file is None else _read_ids(file, known, "node")
    return _classes(run, "node", nodes, run.predict(nodes, other))


def _graphs(run: "Run", file: Path | None, other: Any) -> Columns:
    from h2hgcn.datasets.on_disk import is_graph
    from h2hgcn.training.names import ids_of

    if is_graph(other):
        if file is not None:
            raise DataError(f"{file}: --edges gives one graph, whose class is predicted; leave the file out")
        return _classes(run, "graph", [other.name], run.predict(other))
    collection = run.data if other is None else other
    known = ids_of(collection)
    chosen = known.tolist() if file is None else _read_ids(file, known, "graph")
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


@with_graph("header")
def recommend(
    run: RunPath,
    graph: Given,
    node: Annotated[str | None, typer.Option(help="The id of a node.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="A file of node ids.")] = None,
    all_nodes: Annotated[bool, typer.Option("--all", help="All nodes.")] = False,
    top: Annotated[
        int | None, typer.Option(metavar="K", help="The K likeliest links of the whole graph.", min=1)
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", "--count", help="Number of links per node.", min=1, show_default="10")
    ] = None,
    direction: Annotated[
        Literal["out", "in"] | None,
        typer.Option(help="In a directed graph, links from the node or to it.", show_default="out"),
    ] = None,
    index: Annotated[
        Literal["exact", "hnsw", "ivf"] | None,
        typer.Option(help="hnsw and ivf need the extra scale and are kept in RUN.", show_default="by the graph's size"),
    ] = None,
    new_edges: NewEdges = None,
    new_features: NewFeatures = None,
    out: Table = None,
    force: Force = False,
    no_final: NoFinal = False,
    json: Json = False,
) -> None:
    """List the likeliest missing links of a node, of a file of nodes, of all nodes, or of the whole graph.

    In a directed graph these are links from the node, the likeliest first; --direction in lists links to it. --top
    ranks all pairs of nodes that are not linked. A node with fewer missing links gets fewer rows. With --new-edges
    (and --new-features) new nodes join the graph of the run.

    Examples: h2hgcn recommend runs/disease-lp-h2h-gcn-seed0 --node 7 -k 5;
    h2hgcn recommend runs/disease-lp-h2h-gcn-seed0 --all --out links.parquet;
    h2hgcn recommend runs/disease-lp-h2h-gcn-seed0 --top 1000 --out top.csv;
    h2hgcn recommend runs/my-nc-h2h-gcn-seed0 --node new1 --new-edges new.csv
    """
    if (node is not None) + (nodes is not None) + all_nodes + (top is not None) != 1:
        raise DataError("choose one of --node ID, --nodes FILE, --all and --top K")
    if top is not None and direction is not None:
        raise DataError("--direction: only with --node, --nodes or --all; --top ranks links from all nodes to all")
    if top is not None and k is not None:
        raise DataError("--top is the number of links of the whole graph, -k of each node; give one of them")
    if out is not None:
        check_table(out, force)
    if graph and new_edges is None:
        raise DataError("--header and --no-header are about the file of --new-edges, which is not given")
    opened = add_new_nodes(open_run(run, with_data=False, final=not no_final), new_edges, new_features, graph)
    warn_of(opened)
    if opened.classes is not None and opened.link_decoder is not None:
        note("this run learned classes: its link probabilities are not calibrated; use their order")
    if node is not None and out is None and index is None:
        _print_links(opened, node, k or 10, direction, json)
        return
    from h2hgcn.training.names import NodeNames
    from h2hgcn.training.recommending import recommend_links_of, top_links_of

    wanted: Any = None if node is None else [node]
    if nodes is not None and opened.data is not None:
        wanted = _read_ids(nodes, NodeNames(opened.data).ids, "node")
    with progress_bar("nodes") as progress:
        if top is not None:
            columns = top_links_of(opened, top, index, progress, tell)
        else:
            columns = recommend_links_of(opened, wanted, k or 10, index, direction, progress, tell)
    _write(columns, out, json)


def _print_links(opened: "Run", node: str, k: int, direction: str | None, json: bool) -> None:
    rows = opened.recommend(node, k, direction)
    if json:
        print_json([row._asdict() for row in rows])
        return
    preposition = {"out": "from", "in": "to", None: "of"}[opened.link_order(direction)[0]]
    print_title(f"likeliest missing links {preposition} {node}")
    table = plain_table("node", "probability", "distance")
    for row in rows:
        probability = "-" if row.probability is None else f"{row.probability:.4f}"
        table.add_row(str(row.node), probability, f"{row.distance:.4f}")
    stdout.print(table)


def _write(columns: dict[str, Any], out: Path | None, json: bool) -> None:
    """To a file, as JSON, or the first rows as a table."""
    if out is not None:
        write_table(out, columns)
        tell(f"{len(next(iter(columns.values()))):,} rows: {out}")
    if json or out is None:
        plain = {name: column if isinstance(column, list) else column.tolist() for name, column in columns.items()}
        if json:
            print_json([dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)])
        else:
            print_rows(plain)


def _read_pairs(path: Path, known: Any) -> list[list[Any]]:
    """The sources and the targets of pairs of ``known`` ids, as two lists."""
    from h2hgcn.datasets.tables import EDGE_COLUMN_NAMES, end_columns

    table = _read(path, known, EDGE_COLUMN_NAMES)
    if len(table.columns) < 2:
        raise DataError(f"{path} has one column; a pair needs two nodes: delimit them by a comma or a tab")
    sources, targets = _known_ids(table, end_columns(table.columns), known, "node")
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source == target:
            raise DataError(f"{table.where(row)}: the pair is the node {source!r} with itself; leave the row out")
    return [sources, targets]


def _read_ids(path: Path, known: Any, what: str) -> list[Any]:
    """Some of the ``known`` ids of nodes or graphs, as ``what`` says."""
    from h2hgcn.datasets.tables import id_column

    table = _read(path, known, frozenset({what}))
    return _known_ids(table, (id_column(table.columns),), known, what)[0]


def _read(path: Path, known: Any, names: frozenset[str]) -> Any:
    from h2hgcn.datasets.nodes import read_node_table
    from h2hgcn.datasets.table_files import TextFormat

    table, notes = read_node_table(path, known, TextFormat(), names)
    if names.isdisjoint(name.lower() for name in table.columns):
        for each in notes:
            warnings.warn(each, DataWarning, stacklevel=2)
    return table


def _known_ids(table: Any, columns: tuple[int, ...], known: Any, what: str) -> list[list[Any]]:
    """Ids as the graph has them, matched by their text: 7 matches 7 in a column of text, too."""
    from h2hgcn.datasets.arrays import unknown_nodes

    by_text = {str(node): node for node in known.tolist()}
    written = [table.ids(column).tolist() for column in columns]
    unknown = [
        (row, node) for row, ids in enumerate(zip(*written, strict=True)) for node in ids if str(node) not in by_text
    ]
    if unknown:
        row = unknown[0][0]
        header = row == 0 and not table.has_header
        hint = "; if the line is a header, name its columns id, or source and target" if header else ""
        problem = unknown_nodes([node for _, node in unknown], known, what)
        raise DataError(f"{table.where(row)}: {problem}{hint}")
    return [[by_text[str(node)] for node in ids] for ids in written]
