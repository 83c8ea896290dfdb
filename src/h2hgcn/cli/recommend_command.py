"""``h2hgcn recommend``: the likeliest missing links of a node, of some, of all, or of the whole graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from h2hgcn.cli.id_files import read_ids
from h2hgcn.cli.output import print_json, print_title, progress_bar, stderr, stdout
from h2hgcn.cli.output_files import Force, check_table, write_table
from h2hgcn.cli.run_options import NewEdges, NewFeatures, NoFinal, RunPath, add_new_nodes, open_run, warn_of
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.training.run import Run

_SHOWN_ROWS = 20


def recommend(
    run: RunPath,
    node: Annotated[str | None, typer.Option(help="The id of a node.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="A file of node ids.")] = None,
    all_nodes: Annotated[bool, typer.Option("--all", help="All nodes.")] = False,
    new_edges: NewEdges = None,
    new_features: NewFeatures = None,
    top: Annotated[
        int | None, typer.Option(metavar="K", help="The K likeliest links of the whole graph.", min=1)
    ] = None,
    k: Annotated[int, typer.Option("-k", "--count", help="How many of each node.", min=1)] = 10,
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
    if out is not None:
        check_table(out, force)
    opened = add_new_nodes(open_run(run, with_data=False, final=not no_final), new_edges, new_features)
    warn_of(opened)
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
        _print(list(plain), rows)


def _print(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    table = Table(*names, box=None, header_style="bold", pad_edge=False)
    for row in rows[:_SHOWN_ROWS]:
        table.add_row(*(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row))
    stdout.print(table)
    if len(rows) > _SHOWN_ROWS:
        stderr.print(f"{len(rows):,} rows in all; --out FILE or --json has the others")
