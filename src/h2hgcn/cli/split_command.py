"""``h2hgcn split``: the split of a run in a file."""

from pathlib import Path
from typing import Annotated

import typer

from h2hgcn.cli.graph_options import DataFolder
from h2hgcn.cli.output import stderr
from h2hgcn.cli.output_files import Force, check_table, write_table
from h2hgcn.cli.run_options import RunPath, open_run


def split(
    run: RunPath,
    out: Annotated[Path, typer.Option(help="File to write: .csv or .parquet.")],
    data: DataFolder = None,
    force: Force = False,
) -> None:
    """Write which links, nodes or graphs a run was trained, validated and tested on.

    Of links: source, target, split (train, val or test), label (1, or 0 for a pair without a link). Of nodes or graphs:
    node or graph, label, split; such a file of nodes can be used as --labels, with the same split.

    Example: h2hgcn split runs/disease-lp-h2h-gcn-seed0 --out split.csv
    """
    check_table(out, force)
    columns = open_run(run, data).split_table()
    write_table(out, columns)
    stderr.print(f"{len(columns['split']):,} rows: {out}", soft_wrap=True)
