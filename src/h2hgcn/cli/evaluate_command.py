"""``h2hgcn evaluate``: the metrics of a run, computed anew."""

from typing import Annotated

import typer

from h2hgcn.cli.graph_options import DataFolder
from h2hgcn.cli.output import print_json, stdout
from h2hgcn.cli.results import metrics_table, print_classes
from h2hgcn.cli.run_options import RunPath, open_run


def evaluate(
    run: RunPath, data: DataFolder = None, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Compute a run's metrics anew, on the parts of its data: validation and test. Of classes, the precision, recall
    and F1 of each on the test part, and the confusion matrix.

    Example: h2hgcn evaluate runs/disease-lp-h2h-gcn-seed0
    """
    opened = open_run(run, data)
    selection = opened.result["selection"]
    metrics = {part: opened.evaluate(part) for part in opened.task.parts}
    details = opened.details()
    if json:
        print_json({"run": str(run), "selection": selection, "metrics": metrics, "details": details})
    else:
        stdout.print(metrics_table(metrics, selection))
        print_classes(details)
