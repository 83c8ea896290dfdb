"""``h2hgcn models``: the encoders there are."""

from typing import Annotated

import typer
from rich.table import Table

from h2hgcn.cli.output import print_json, stdout


def models(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the encoders.

    Example: h2hgcn models --json
    """
    from h2hgcn.models import ENCODERS

    rows = [
        {
            "name": name,
            "space": encoder.space,
            "tasks": list(encoder.tasks),
            "description": encoder.summary,
            "paper": encoder.paper,
        }
        for name, encoder in ENCODERS.items()
    ]
    if json:
        print_json(rows)
        return
    table = Table("name", "space", "tasks", "what", "paper", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(row["name"], row["space"], " ".join(row["tasks"]), row["description"], row["paper"])
    stdout.print(table)
