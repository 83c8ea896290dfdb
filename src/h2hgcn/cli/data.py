"""``h2hgcn datasets``, ``inspect``, ``convert`` and ``models``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2hgcn.cli import console
from h2hgcn.cli import options as flags
from h2hgcn.cli.console import stdout
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.datasets import GraphReport


def datasets(data: flags.DataFolder = None, json: flags.Json = False) -> None:
    """List the named datasets.

    Example: h2hgcn datasets --data ~/data
    """
    from h2hgcn.datasets import DATASETS

    if json:
        console.print_json(
            [
                {
                    "name": name, "tasks": list(each.tasks), "description": each.description, "size": each.size,
                    "here": each.is_here(data), "generated": each.files is None,
                    "downloadable": each.can_be_downloaded(),
                }
                for name, each in DATASETS.items()
            ]
        )  # fmt: skip
        return
    rows = []
    for name, each in DATASETS.items():
        here = "generated" if each.files is None else "yes"
        if not each.is_here(data):
            here = "to download" if each.can_be_downloaded() else "to be put there"
        rows.append((name, " ".join(each.tasks), each.size, each.description, here))
    stdout.print(console.plain_table("name", "tasks", "size", "what", "here", rows=rows))
    stdout.print("\nTasks: lp link prediction, nc node classification, gc graph classification.")


@flags.with_flags(graph=flags.READING)
def inspect(
    path: Annotated[
        str, typer.Argument(metavar="GRAPH", help="A named dataset, a file of edges, or a folder of graphs.")
    ],
    graph: flags.Given,
    data: flags.DataFolder = None,
    member: Annotated[
        str | None, typer.Option("--graph", help="Which graph of a collection: its name, or its place from 0.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw degrees and δ to this file (.png, .svg or .pdf).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is sampled on large graphs.", min=0)] = 0,
    json: flags.Json = False,
) -> None:
    """Measure a graph (size, degrees, cycles, δ-hyperbolicity, labels) and suggest models.

    Examples: h2hgcn inspect disease; h2hgcn inspect my.csv --labels labels.csv --plot shape.png
    """
    from h2hgcn.datasets import inspect_graph
    from h2hgcn.datasets.inspect import plot_inspection
    from h2hgcn.experiments.config import COMMAND_LINE, Layer, choose_graph, open_graph, place_of

    choice = choose_graph([Layer(COMMAND_LINE, {"data": place_of(path) | graph})])
    chosen = _one_graph(path, open_graph(choice, data), member)
    with console.stderr.status("measuring"):
        report = inspect_graph(chosen, seed=seed)
    if plot is not None:
        plot_inspection(chosen, report, plot)
    if json:
        console.print_json({"graph": path, "member": member, **report.to_dict()})
    else:
        verdict = report.verdict
        console.print_title(f"{path if member is None else f'{path}, graph {member}'}\n")
        stdout.print(console.plain_table(show_header=False, rows=_rows(report)))
        console.print_title("\nVerdict")
        for sentence in verdict.sentences:
            stdout.print(sentence)
        for title, entries in (("Try first", verdict.try_first), ("This rests on", verdict.rests_on)):
            if entries:
                console.print_title(f"\n{title}")
            for entry in entries:
                stdout.print(f"- {entry}")
    if plot is not None:
        console.tell(f"Picture: {plot}")


def _one_graph(name: str, opened: Any, member: str | None) -> Any:
    if hasattr(opened, "edge_index"):
        if member is not None:
            raise DataError(f"--graph is for collections; {name} is one graph")
        return opened
    if member is None:
        raise DataError(f"{name} is a collection of {len(opened)} graphs; choose one with --graph, such as --graph 0")
    ids = getattr(opened, "graph_ids", None)
    names = [str(each) for each in (range(len(opened)) if ids is None else ids)]
    if member not in names and not (member.isdecimal() and int(member) < len(opened)):
        raise DataError(f"--graph {member} is not there: {name} has {len(opened)} graphs, {names[0]} to {names[-1]}")
    graph = opened[names.index(member) if member in names else int(member)]
    graph.y = None  # the class of the graph, not of its nodes
    return graph


def _rows(report: "GraphReport") -> Iterator[tuple[str, str]]:
    size, degrees, tree, shape = report.size, report.degrees, report.tree_likeness, report.hyperbolicity
    held_out, labels = report.held_out, report.homophily
    largest, exact = _percent(size.largest_component_share), "" if shape.diameter_exact else "at least "
    yield "nodes", f"{size.nodes:,}"
    yield "edges", f"{size.edges:,}{' (directed, read both ways)' if report.directed else ''}"
    yield "self-loops", f"{size.self_loops:,}"
    yield "components", f"{size.components:,}, the largest with {largest} of the nodes"
    yield "isolated nodes", f"{size.isolated_nodes:,}"
    mean, median, most = map(_number, (degrees.mean, degrees.median, degrees.max))
    yield "degree", f"mean {mean}, median {median}, largest {most}"
    hubs = "1 % of the nodes hold" if size.nodes > 100 else "the node of the largest degree holds"
    yield "hubs", f"{hubs} {_percent(degrees.top_share)} of the edge ends"
    forest = _percent(tree.forest_share)
    yield "cycles", f"{tree.independent_cycles:,} independent; {forest} of the edges make a forest"
    yield "bridges", f"{tree.bridges:,} of the edges lie on no cycle"
    if held_out is None:
        yield "held-out links", "-"
    else:
        lost = f"{held_out.unanswerable:,} of {held_out.links:,} test links"
        yield "held-out links", f"{lost} would end at a node with no other edge"
    delta = f"{shape.delta:g}" if shape.exact else f"at least {shape.delta:g} (sampled)"
    if shape.mean is not None:
        error = f" ± {shape.mean_error:.2g}" if shape.mean_error else ""
        delta += f"; mean {shape.mean:.3g}{error} over {shape.quadruples:,} quadruples"
    yield "δ-hyperbolicity", delta
    yield "diameter", f"{exact}{shape.diameter}"
    if labels is not None:
        share, adjusted = _percent(labels.homophily), _number(labels.adjusted)
        yield "labels", f"{labels.classes} classes on {labels.labelled_nodes:,} nodes"
        yield "homophily", f"{share} of the edges join equal labels; adjusted for chance {adjusted}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if isinstance(value, float) else f"{value:,}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


@flags.with_flags(graph=flags.READING)
def convert(
    graph: flags.Given,
    edges: Annotated[Path, typer.Option(help="Edges: CSV, TSV or Parquet.")],
    out: Annotated[Path, typer.Option(help="The folder to write; an older folder of h2hgcn convert is replaced.")],
) -> None:
    """Convert a graph of any size, once, to a folder that train and others map into memory as --edges FOLDER.

    Example: h2hgcn convert --edges my.csv --features x.csv --out my-graph
    """
    with console.starting():
        from h2hgcn.datasets import convert_graph, load_graph
        from h2hgcn.datasets.loading import options_of
    folder = convert_graph(edges, out, **options_of(**graph))
    loaded = load_graph(folder)
    count = loaded.edge_index.shape[1] // (1 if graph.get("directed") else 2)
    stdout.print(f"{folder}: {loaded.num_nodes:,} nodes, {count:,} edges, {loaded.x.shape[1]} features", soft_wrap=True)
    for note in loaded.notes:
        stdout.print(f"note: {note}", soft_wrap=True)


def models(json: flags.Json = False) -> None:
    """List the encoders.

    Example: h2hgcn models --json
    """
    from h2hgcn.models import ENCODERS

    if json:
        console.print_json(
            [
                {
                    "name": name, "space": encoder.space, "tasks": list(encoder.tasks),
                    "description": encoder.summary, "paper": encoder.paper,
                }
                for name, encoder in ENCODERS.items()
            ]
        )  # fmt: skip
        return
    rows = ((name, one.space, " ".join(one.tasks), one.summary, one.paper) for name, one in ENCODERS.items())
    stdout.print(console.plain_table("name", "space", "tasks", "what", "paper", rows=rows))
