"""``h2hgcn datasets``, ``inspect``, ``convert`` and ``models``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2hgcn.cli.console import plain_table, print_json, print_title, starting, stderr, stdout, tell
from h2hgcn.cli.options import READING, DataFolder, Given, Json, with_graph
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.datasets import GraphReport


def datasets(data: DataFolder = None, json: Json = False) -> None:
    """List the named datasets.

    Example: h2hgcn datasets --data ~/data
    """
    from h2hgcn.datasets import DATASETS

    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "tasks": list(dataset.tasks),
            "description": dataset.description,
            "size": dataset.size,
            "here": dataset.is_here(data),
            "generated": dataset.files is None,
            "downloadable": dataset.can_be_downloaded(),
        }
        for name, dataset in DATASETS.items()
    ]
    if json:
        print_json(rows)
        return
    table = plain_table("name", "tasks", "size", "what", "here")
    for row in rows:
        here = "generated" if row["generated"] else "yes" if row["here"] else "to download"
        if not row["here"] and not row["downloadable"]:
            here = "to be put there"
        table.add_row(row["name"], " ".join(row["tasks"]), row["size"], row["description"], here)
    stdout.print(table)
    stdout.print("\nTasks: lp link prediction, nc node classification, gc graph classification.")


@with_graph(*READING)
def inspect(
    path: Annotated[
        str, typer.Argument(metavar="GRAPH", help="A named dataset, a file of edges, or a folder of graphs.")
    ],
    graph: Given,
    data: DataFolder = None,
    member: Annotated[int | None, typer.Option("--graph", help="Which graph of a collection, counted from 0.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw degrees and δ to this file (.png, .svg or .pdf).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is sampled on large graphs.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Measure a graph (size, degrees, cycles, δ-hyperbolicity, labels) and suggest models.

    Examples: h2hgcn inspect disease; h2hgcn inspect my.csv --labels labels.csv --plot shape.png
    """
    from h2hgcn.datasets import inspect_graph
    from h2hgcn.experiments.config import COMMAND_LINE, Layer, choose_graph, open_graph, place_of

    choice = choose_graph([Layer(COMMAND_LINE, {"data": place_of(path) | graph})])
    chosen = _one_graph(path, open_graph(choice, data), member)
    title = path if member is None else f"{path}, graph {member}"
    with stderr.status("measuring"):
        report = inspect_graph(chosen, seed=seed)
    if plot is not None:
        from h2hgcn.datasets.inspect import plot_inspection

        plot_inspection(chosen, report, plot)
    if json:
        print_json({"graph": path, "member": member, **report.to_dict()})
    else:
        _print_report(title, report)
    if plot is not None:
        tell(f"Picture: {plot}")


def _one_graph(name: str, opened: Any, member: int | None) -> Any:
    if hasattr(opened, "edge_index"):
        if member is not None:
            raise DataError(f"--graph is for collections; {name} is one graph")
        return opened
    if member is None:
        raise DataError(f"{name} is a collection of {len(opened)} graphs; choose one with --graph, such as --graph 0")
    if not 0 <= member < len(opened):
        raise DataError(f"--graph {member} is not there: {name} has the graphs 0 to {len(opened) - 1}")
    graph = opened[member]
    graph.y = None  # the class of the graph, not of its nodes
    return graph


def _print_report(name: str, report: "GraphReport") -> None:
    print_title(f"{name}\n")
    table = plain_table(show_header=False)
    for what, value in _rows(report):
        table.add_row(what, value)
    stdout.print(table)
    print_title("\nVerdict")
    for sentence in report.verdict.sentences:
        stdout.print(sentence)
    _print_list("Try first", report.verdict.try_first)
    _print_list("This rests on", report.verdict.rests_on)


def _print_list(title: str, entries: tuple[str, ...]) -> None:
    if entries:
        print_title(f"\n{title}")
    for entry in entries:
        stdout.print(f"- {entry}")


def _rows(report: "GraphReport") -> list[tuple[str, str]]:
    size, degrees, tree, shape = report.size, report.degrees, report.tree_likeness, report.hyperbolicity
    rows = [
        ("nodes", f"{size.nodes:,}"),
        ("edges", f"{size.edges:,}{' (directed, read both ways)' if report.directed else ''}"),
        ("self-loops", f"{size.self_loops:,}"),
        ("components", f"{size.components:,}, the largest with {_percent(size.largest_component_share)} of the nodes"),
        ("isolated nodes", f"{size.isolated_nodes:,}"),
        ("degree", f"mean {_number(degrees.mean)}, median {_number(degrees.median)}, largest {_number(degrees.max)}"),
        ("hubs", f"1 % of the nodes hold {_percent(degrees.top_share)} of the edge ends"),
        (
            "cycles",
            f"{tree.independent_cycles:,} independent; {_percent(tree.forest_share)} of the edges make a forest",
        ),
        ("bridges", f"{tree.bridges:,} of the edges lie on no cycle"),
        ("held-out links", _held_out(report)),
        ("δ-hyperbolicity", _delta(report)),
        ("diameter", f"{'' if shape.diameter_exact else 'at least '}{shape.diameter}"),
    ]
    if report.homophily is not None:
        homophily = report.homophily
        share, adjusted = _percent(homophily.homophily), _number(homophily.adjusted)
        rows.append(("labels", f"{homophily.classes} classes on {homophily.labelled_nodes:,} nodes"))
        rows.append(("homophily", f"{share} of the edges join equal labels; adjusted for chance {adjusted}"))
    return rows


def _delta(report: "GraphReport") -> str:
    shape = report.hyperbolicity
    largest = f"{shape.delta:g}" if shape.exact else f"at least {shape.delta:g} (sampled)"
    if shape.mean is None:
        return largest
    error = "" if not shape.mean_error else f" ± {shape.mean_error:.2g}"
    return f"{largest}; mean {shape.mean:.3g}{error} over {shape.quadruples:,} quadruples"


def _held_out(report: "GraphReport") -> str:
    held_out = report.held_out
    if held_out is None:
        return "-"
    return f"{held_out.unanswerable:,} of {held_out.links:,} test links would end at a node with no other edge"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}".replace("%", " %")


@with_graph(*READING)
def convert(
    graph: Given,
    edges: Annotated[Path, typer.Option(help="Edges: CSV, TSV or Parquet.")],
    out: Annotated[Path, typer.Option(help="The folder to write; an older folder of h2hgcn convert is replaced.")],
) -> None:
    """Convert a graph of any size, once, to a folder that train and others map into memory as --edges FOLDER.

    Example: h2hgcn convert --edges my.csv --features x.csv --out my-graph
    """
    with starting():
        from h2hgcn.datasets import convert_graph, load_graph
        from h2hgcn.datasets.loading import options_of
    folder = convert_graph(edges, out, **options_of(**graph))
    loaded = load_graph(folder)
    count = loaded.edge_index.shape[1] // (1 if graph.get("directed") else 2)
    stdout.print(f"{folder}: {loaded.num_nodes:,} nodes, {count:,} edges, {loaded.x.shape[1]} features", soft_wrap=True)
    for note in loaded.notes:
        stdout.print(f"note: {note}", soft_wrap=True)


def models(json: Json = False) -> None:
    """List the encoders.

    Example: h2hgcn models --json
    """
    from h2hgcn.models import ENCODERS

    if json:
        print_json(
            [
                {
                    "name": name,
                    "space": encoder.space,
                    "tasks": list(encoder.tasks),
                    "description": encoder.summary,
                    "paper": encoder.paper,
                }
                for name, encoder in ENCODERS.items()
            ]
        )
        return
    table = plain_table("name", "space", "tasks", "what", "paper")
    for name, encoder in ENCODERS.items():
        table.add_row(name, encoder.space, " ".join(encoder.tasks), encoder.summary, encoder.paper)
    stdout.print(table)
