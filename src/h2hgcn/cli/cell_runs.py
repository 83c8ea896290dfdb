"""Many runs side by side, with a bar, and what Ctrl-C does to them."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from h2hgcn.cli.output import say, stderr
from h2hgcn.cli.stopping import StopAfterEpoch, command_to_resume

if TYPE_CHECKING:
    from h2hgcn.experiments.cells import Cell, Outcome


def run_cells(
    cells: "Iterable[Cell]",
    total: int,
    jobs: int | None,
    finished: "Callable[[int, Outcome], str]",
    force: bool = False,
) -> int:
    """How many cells came to an end; of each its number and outcome are told to ``finished``, which says it in words.

    ``jobs`` processes, one a core by default. The first Ctrl-C lets epochs end and begins nothing new; the second ends
    all at once. ``force`` says whether finished cells are trained again.
    """
    from h2hgcn.experiments.pool import cell_pool

    columns = (
        TextColumn("runs"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}"),
    )
    progress = Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal)
    bar = progress.add_task("", total=total, words="")
    processes = max(min(jobs or os.cpu_count() or 1, total), 1)
    done = 0
    try:
        with StopAfterEpoch() as stop, cell_pool(processes) as pool, progress:
            for number, outcome in pool.outcomes(cells, stop.wanted):
                if outcome.status != "stopped":
                    progress.update(bar, advance=1, words=finished(number, outcome))
                    done += 1
    except KeyboardInterrupt:
        say("stopped", "bold yellow", f"at once; {command_to_resume(force)} resumes from the last checkpoints")
        raise typer.Exit(1) from None
    return done
