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
    table = Table("name", "space", "tasks", "what", "paper", box=None, header_style="bold", pad_edge=False)
    for name, encoder in ENCODERS.items():
        table.add_row(name, encoder.space, " ".join(encoder.tasks), encoder.summary, encoder.paper)
    stdout.print(table)
