"""``h2hgcn finalize``: the settings of a run, trained again on all of its data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from h2hgcn.cli.graph_options import DataFolder
from h2hgcn.cli.output import print_json, print_title, say, stderr, stdout
from h2hgcn.cli.progress import TrainingProgress
from h2hgcn.cli.results import metrics_table
from h2hgcn.cli.run_options import RunPath, open_run
from h2hgcn.cli.stopping import StopAfterEpoch, command_to_resume

if TYPE_CHECKING:
    from h2hgcn.training import Run


def finalize(
    run: RunPath,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the final fit. Default: RUN/final, which other commands prefer.")
    ] = None,
    data: DataFolder = None,
    force: Annotated[bool, typer.Option("--force", help="Train again what is in the folder.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train the settings of a finished run again on all edges, labels or graphs, for as many epochs as were best.

    Nothing is held out, so a final fit has no metrics. predict, recommend, embed and explore use it when they are
    given RUN; --no-final makes them use the run itself. Run the same command again to resume.

    Example: h2hgcn finalize runs/disease-lp-h2h-gcn-seed0
    """
    opened = open_run(run, data)
    final = finalize_run(opened, out or run / "final", force)
    if json:
        print_json({"folder": str(final.folder), "run": str(run), **final.result})
    else:
        print_final(final, run)


def finalize_run(run: "Run", folder: Path, force: bool = False) -> "Run":
    """The final fit of a run, with progress; ends the program if it is stopped."""
    from h2hgcn.training.final import finalize as fit_finally

    progress = TrainingProgress(run.result["best_epoch"])
    try:
        with StopAfterEpoch() as stop, progress:
            final = fit_finally(run, folder, force=force, on_epoch=progress.update, should_stop=stop.wanted)
    except KeyboardInterrupt:
        say("stopped", "bold yellow", f"at once; {command_to_resume(force)} resumes from the last checkpoint")
        raise typer.Exit(1) from None
    if not final.finished:
        epoch = final.result["epochs"]
        say("stopped", "bold yellow", f"final fit after epoch {epoch}; {command_to_resume(force)} resumes from there")
        raise typer.Exit(1)
    if not progress.trained:
        stderr.print(f"finished already, in {folder}; h2hgcn finalize --force trains it again", soft_wrap=True)
    return final


def print_final(final: "Run", run: Path) -> None:
    """What was trained, and the metrics of the run that it comes from."""
    result = final.result
    stdout.print()
    print_title(f"final fit of {run}: all data, {result['epochs']} epochs, {result['seconds']:.1f} s of training")
    print_held_out(final)
    for warning in result.get("doubts", ()):
        say("note", "bold yellow", warning)
    stdout.print(f"{final.folder}  predict, recommend, embed and explore use it for {run}", soft_wrap=True)


def print_held_out(final: "Run") -> None:
    """The metrics of the run that a final fit comes from, labeled so."""
    from h2hgcn.training.artifacts import scores_of_baselines

    of_run, selection = final.result["of_run"], final.result["selection"]
    if of_run is not None:
        origin = final.config["final"]["run"]
        stdout.print(f"Nothing was held out. Metrics of the run that it comes from, {origin}:", soft_wrap=True)
        stdout.print(metrics_table(of_run["metrics"], selection, scores_of_baselines(of_run, selection)))
