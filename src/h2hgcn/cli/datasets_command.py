"""``h2hgcn datasets``: what there is, and what is here."""

from typing import Annotated, Any

import typer
from rich.table import Table

from h2hgcn.cli.graph_options import DataFolder
from h2hgcn.cli.output import print_json, stdout


def datasets(
    data: DataFolder = None, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
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
    table = Table("name", "tasks", "size", "what", "here", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        here = "generated" if row["generated"] else "yes" if row["here"] else "to download"
        if not row["here"] and not row["downloadable"]:
            here = "to be put there"
        table.add_row(row["name"], " ".join(row["tasks"]), row["size"], row["description"], here)
    stdout.print(table)
    stdout.print("\nTasks: lp link prediction, nc node classification, gc graph classification.")
