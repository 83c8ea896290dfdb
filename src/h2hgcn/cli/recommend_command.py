"""``h2hgcn recommend``: the likeliest missing links of a node."""

from typing import Annotated

import typer
from rich.table import Table

from h2hgcn.cli.output import print_json, print_title, stdout
from h2hgcn.cli.run_options import RunPath, open_run


def recommend(
    run: RunPath,
    node: Annotated[str, typer.Option(help="The id of a node.")],
    k: Annotated[int, typer.Option("-k", "--count", help="How many.", min=1)] = 10,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the likeliest missing links of a node: near ones that it is not linked with.

    Example: h2hgcn recommend runs/disease-lp-h2h-gcn-seed0 --node 7 -k 5
    """
    opened = open_run(run, with_data=False)
    rows = opened.recommend(node, k)
    if json:
        print_json([row._asdict() for row in rows])
        return
    print_title(f"likeliest missing links of {node}")
    table = Table("node", "probability", "distance", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        probability = "-" if row.probability is None else f"{row.probability:.4f}"
        table.add_row(str(row.node), probability, f"{row.distance:.4f}")
    stdout.print(table)
