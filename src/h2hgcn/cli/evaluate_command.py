"""``h2hgcn evaluate``: the metrics of a run, computed anew."""

from typing import Annotated

import typer
from rich.table import Table

from h2hgcn.cli.graph_options import DataFolder
from h2hgcn.cli.output import print_json, stdout
from h2hgcn.cli.run_options import RunPath, open_run


def evaluate(
    run: RunPath, data: DataFolder = None, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Compute a run's metrics anew, on its validation and test data.

    Example: h2hgcn evaluate runs/disease-lp-h2h-gcn-seed0
    """
    opened = open_run(run, data, with_collection=True)
    metrics = {part: opened.evaluate(part) for part in ("val", "test")}
    if json:
        print_json({"run": str(run), "selection": opened.result["selection"], "metrics": metrics})
        return
    table = Table("metric", "validation", "test", box=None, header_style="bold", pad_edge=False)
    for name in metrics["test"]:
        table.add_row(name, f"{metrics['val'][name]:.4f}", f"{metrics['test'][name]:.4f}")
    stdout.print(table)
