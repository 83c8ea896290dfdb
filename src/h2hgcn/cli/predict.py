"""``h2hgcn predict``, ``h2hgcn recommend`` and ``h2hgcn explain``."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from h2hgcn.cli import console
from h2hgcn.cli import options as flags
from h2hgcn.cli.runs import add_new_nodes, open_other_graph, open_run, warn_of
from h2hgcn.errors import DataError, DataWarning

if TYPE_CHECKING:
    from h2hgcn.training import Run

Columns = dict[str, list[Any]]


@flags.with_flags(new=flags.NEW_NODES, graph=("edges", *(name for name in flags.READING if name != "labels")))
def predict(
    run: flags.RunPath,
    new: flags.Given,
    graph: flags.Given,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Pairs of nodes (lp), nodes (nc) or graphs (gc), by id. Default: all nodes or graphs; with "
            "--new-edges, the new nodes."
        ),
    ] = None,
    graphs: flags.OtherGraphs = None,
    data: flags.DataFolder = None,
    out: flags.Table = None,
    safe_csv: flags.SafeCsv = False,
    force: flags.Force = False,
    no_final: flags.NoFinal = False,
    json: flags.Json = False,
) -> None:
    """Predict links, classes of nodes, or classes of graphs, with probabilities.

    With --new-edges (and --new-features) new nodes join the graph of the run. With --edges (and --features) the model
    is applied to another graph with new nodes, with --graphs to the graphs of a folder.

    Examples: h2hgcn predict runs/disease-lp-h2h-gcn-seed0 pairs.csv --out scores.csv;
    h2hgcn predict runs/my-nc-h2h-gcn-seed0 --new-edges new.csv;
    h2hgcn predict runs/shapes-gc-h2h-gcn-seed0 --graphs new-shapes --out classes.csv
    """
    if out is not None:
        console.check_free(out, force, console.TABLES)
    trained = open_run(run, data, "edges" not in graph and graphs is None, not no_final)
    opened = add_new_nodes(trained, new, graph)
    other = open_other_graph(opened, graph, graphs) if opened is trained else None
    columns = _predictions(opened, file, other)
    warn_of(opened)
    _write(columns, out, json, safe_csv)


def _predictions(run: "Run", file: Path | None, other: Any) -> Columns:
    from h2hgcn.datasets.on_disk import is_graph
    from h2hgcn.training.names import ids_of

    if run.task.predicts is None:
        raise DataError("a run of --task embed has distances, no probabilities; use h2hgcn recommend or h2hgcn embed")
    if run.task.of_collections and is_graph(other):
        if file is not None:
            raise DataError(f"{file}: --edges gives one graph, whose class is predicted; leave the file out")
        return _classes(run, "graph", [other.name], run.predict(other))
    known = ids_of(run.data if other is None else other)
    if run.task.predicts == "pairs":
        if file is None:
            raise DataError("name the pairs: give a file with two nodes in each row, or use h2hgcn recommend")
        pairs = _read_pairs(file, known)
        sources, targets = map(list, zip(*pairs, strict=True)) if pairs else ([], [])
        return {"source": sources, "target": targets, "probability": run.predict(pairs, other).tolist()}
    what = "graph" if run.task.of_collections else "node"
    new = getattr(run, "new_nodes", known[:0])
    chosen = (new if len(new) else known).tolist() if file is None else _read_ids(file, known, what)
    return _classes(run, what, chosen, run.predict(chosen, other))


def _classes(run: "Run", what: str, names: list[Any], probabilities: Any) -> Columns:
    classes = run.classes or []
    columns: Columns = {
        what: names,
        "class": [classes[k] for k in probabilities.argmax(1).tolist()],
        "probability": probabilities.amax(1).tolist(),
    }
    return columns | {f"p({name})": probabilities[:, k].tolist() for k, name in enumerate(classes)}


@flags.with_flags(new=flags.NEW_NODES, graph=("header",))
def recommend(
    run: flags.RunPath,
    new: flags.Given,
    graph: flags.Given,
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
    out: flags.Table = None,
    safe_csv: flags.SafeCsv = False,
    force: flags.Force = False,
    no_final: flags.NoFinal = False,
    json: flags.Json = False,
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
        console.check_free(out, force, console.TABLES)
    if graph and "new_edges" not in new:
        raise DataError("--header and --no-header are about the file of --new-edges, which is not given")
    opened = add_new_nodes(open_run(run, with_data=False, final=not no_final), new, graph)
    warn_of(opened)
    if opened.classes is not None and opened.link_decoder is not None:
        console.note("this run learned classes: its link probabilities are not calibrated; use their order")
    if node is not None and out is None and index is None:
        _print_links(opened, node, k or 10, direction, json)
        return
    from h2hgcn.training.names import ids_of
    from h2hgcn.training.recommending import recommend_links_of, top_links_of

    wanted: Any = None if node is None else [node]
    if nodes is not None and opened.data is not None:
        wanted = _read_ids(nodes, ids_of(opened.data), "node")
    with console.progress_bar("nodes") as progress:
        if top is not None:
            columns = top_links_of(opened, top, index, progress, console.tell)
        else:
            columns = recommend_links_of(opened, wanted, k or 10, index, direction, progress, console.tell)
    _write(columns, out, json, safe_csv)


def _print_links(opened: "Run", node: str, k: int, direction: str | None, json: bool) -> None:
    links = opened.recommend(node, k, direction)
    if json:
        console.print_json([link._asdict() for link in links])
        return
    preposition = {"out": "from", "in": "to", None: "of"}[opened.link_order(direction)[0]]
    console.print_title(f"likeliest missing links {preposition} {node}")
    rows = (
        (str(link.node), "-" if link.probability is None else f"{link.probability:.4f}", f"{link.distance:.4f}")
        for link in links
    )
    console.stdout.print(console.plain_table("node", "probability", "distance", rows=rows))


def explain(
    run: flags.RunPath,
    node: Annotated[str, typer.Option(help="The id of a node.")],
    other: Annotated[str | None, typer.Option("--with", help="The other node of a pair, for a run of links.")] = None,
    k: Annotated[int, typer.Option("-k", "--count", help="Number of edges and of features.", min=1)] = 10,
    epochs: Annotated[int, typer.Option(help="Steps in which the masks are learned.", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="Decides on the start of the masks.", min=0)] = 0,
    out: flags.Table = None,
    safe_csv: flags.SafeCsv = False,
    force: flags.Force = False,
    no_final: flags.NoFinal = False,
    json: flags.Json = False,
) -> None:
    """Explain a prediction: which edges and features of its neighborhood made it.

    change is how much lower the probability is without that edge, or with the mean of that feature at all nodes; mask
    is what GNNExplainer learns, between 0 and 1.

    Examples: h2hgcn explain runs/my-nc-h2h-gcn-seed0 --node n01;
    h2hgcn explain runs/disease-lp-h2h-gcn-seed0 --node 7 --with 2 --out why.csv
    """
    if out is not None:
        console.check_free(out, force, console.TABLES)
    found = open_run(run, final=not no_final).explain(node, other, k=k, epochs=epochs, seed=seed)
    if out is not None:
        console.write_table(out, found.columns(), safe_csv)
        console.tell(f"{len(found.edges) + len(found.features)} rows: {out}")
    if json:
        console.print_json(found.to_dict())
        return
    for text in found.notes:
        console.note(text)
    console.print_title(f"{' - '.join(map(str, found.nodes))}: {found.prediction}, probability {found.probability:.4f}")
    for parts in (found.edges, found.features) if out is None else ():
        if parts:
            console.print_rows({name: [getattr(part, name) for part in parts] for name in parts[0]._fields})


def _write(columns: dict[str, Any], out: Path | None, json: bool, safe_csv: bool) -> None:
    """To a file, as JSON, or the first rows as a table."""
    if out is not None:
        console.write_table(out, columns, safe_csv)
        console.tell(f"{len(next(iter(columns.values()))):,} rows: {out}")
    if json or out is None:
        plain = {name: column if isinstance(column, list) else column.tolist() for name, column in columns.items()}
        if json:
            rows = zip(*plain.values(), strict=True)
            console.print_json([dict(zip(plain, row, strict=True)) for row in rows])
        else:
            console.print_rows(plain)


def _read_pairs(path: Path, known: Any) -> list[tuple[Any, ...]]:
    """Pairs of ``known`` ids."""
    from h2hgcn.datasets.tables import EDGE_COLUMN_NAMES, end_columns

    table = _read(path, known, EDGE_COLUMN_NAMES)
    if len(table.columns) < 2:
        raise DataError(f"{path} has one column; a pair needs two nodes: delimit them by a comma or a tab")
    pairs = _known_ids(table, end_columns(table.columns), known, "node")
    for row, (source, target) in enumerate(pairs):
        if source == target:
            raise DataError(f"{table.where(row)}: the pair is the node {source!r} with itself; leave the row out")
    return pairs


def _read_ids(path: Path, known: Any, what: str) -> list[Any]:
    """Some of the ``known`` ids of nodes or graphs, as ``what`` says."""
    from h2hgcn.datasets.tables import id_column

    table = _read(path, known, frozenset({what}))
    return [one for (one,) in _known_ids(table, (id_column(table.columns),), known, what)]


def _read(path: Path, known: Any, names: frozenset[str]) -> Any:
    from h2hgcn.datasets.nodes import read_node_table
    from h2hgcn.datasets.table_files import TextFormat

    table, notes = read_node_table(path, known, TextFormat(), names)
    if names.isdisjoint(name.lower() for name in table.columns):
        for each in notes:
            warnings.warn(each, DataWarning, stacklevel=2)
    return table


def _known_ids(table: Any, columns: tuple[int, ...], known: Any, what: str) -> list[tuple[Any, ...]]:
    """The ids of each row as the graph has them, matched by their text: 7 matches 7 in a column of text, too."""
    from h2hgcn.datasets.arrays import unknown_nodes

    by_text = {str(node): node for node in known.tolist()}
    written = list(zip(*(table.ids(column).tolist() for column in columns), strict=True))
    unknown = [(row, node) for row, ids in enumerate(written) for node in ids if str(node) not in by_text]
    if unknown:
        row = unknown[0][0]
        header = row == 0 and not table.has_header
        hint = "; if the line is a header, name its columns id, or source and target" if header else ""
        problem = unknown_nodes([node for _, node in unknown], known, what)
        raise DataError(f"{table.where(row)}: {problem}{hint}")
    return [tuple(by_text[str(node)] for node in ids) for ids in written]
