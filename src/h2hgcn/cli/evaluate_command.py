"""``h2hgcn evaluate``: the metrics of a run, computed again."""

from typing import Annotated

import typer

from h2hgcn.cli.finalize_command import print_held_out
from h2hgcn.cli.graph_options import DataFolder
from h2hgcn.cli.output import print_json, stdout
from h2hgcn.cli.results import metrics_table, print_classes
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
    """Compute a run's metrics again, on the parts of its data: validation and test. Of classes, the precision, recall
    and F1 of each on the test part, and the confusion matrix.

    These are of the run itself, also if it has a final fit. Nothing was held out of a final fit, RUN/final: it has the
    metrics of the run that it comes from.

    Example: h2hgcn evaluate runs/disease-lp-h2h-gcn-seed0
    """
    opened = open_run(run, data, graphs=graphs, labels=labels)
    selection = opened.result["selection"]
    if not opened.task.parts:
        if json:
            print_json({"run": str(run), "selection": selection, "metrics": {}, "of_run": opened.result["of_run"]})
        else:
            print_held_out(opened)
        return
    metrics = {part: opened.evaluate(part) for part in opened.task.parts}
    details = opened.details()
    if json:
        print_json({"run": str(run), "selection": selection, "metrics": metrics, "details": details})
    else:
        stdout.print(metrics_table(metrics, selection))
        print_classes(details)
