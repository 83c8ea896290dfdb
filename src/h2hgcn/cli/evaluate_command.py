"""``h2hgcn evaluate``: the metrics of a run, computed anew."""

from typing import Annotated

import typer

from h2hgcn.cli.graph_options import DataFolder
from h2hgcn.cli.output import print_json, stdout
from h2hgcn.cli.results import metrics_table
from h2hgcn.cli.run_options import RunPath, open_run


def evaluate(
    run: RunPath,
    graphs: Annotated[
        str | None, typer.Option(help="Where the folder of graphs is that the run was trained on, if it was moved.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Where the labels of these graphs are, if they were moved.")
    ] = None,
    data: DataFolder = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute a run's metrics anew, on the parts of its data: validation and test.

    Example: h2hgcn evaluate runs/disease-lp-h2h-gcn-seed0
    """
    opened = open_run(run, data, graphs=graphs, labels=labels)
    selection = opened.result["selection"]
    metrics = {part: opened.evaluate(part) for part in opened.task.parts}
    if json:
        print_json({"run": str(run), "selection": selection, "metrics": metrics})
    else:
        stdout.print(metrics_table(metrics, selection))
