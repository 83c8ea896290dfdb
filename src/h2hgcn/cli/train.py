"""``h2hgcn train`` and ``h2hgcn finalize``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from h2hgcn.cli import console
from h2hgcn.cli import options as flags
from h2hgcn.cli.memory import kept_memory
from h2hgcn.cli.runs import open_run, print_held_out

if TYPE_CHECKING:
    from h2hgcn.training import Run


def finalize(
    run: flags.RunPath,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the final fit. Default: RUN/final, which other commands prefer.")
    ] = None,
    data: flags.DataFolder = None,
    force: flags.Retrain = False,
    json: flags.Json = False,
) -> None:
    """Train the settings of a finished run again on all edges, labels or graphs, for as many epochs as were best.

    Nothing is held out, so a final fit has no metrics. predict, recommend, embed and explore use it when they are
    given RUN; --no-final makes them use the run itself. Run the same command again to resume.

    Example: h2hgcn finalize runs/disease-lp-h2h-gcn-seed0
    """
    folder = out or run / "final"
    final = _final_fit(open_run(run, data), folder, force)
    result = final.result
    if json:
        console.print_json({"folder": str(final.folder), "run": str(run), **result})
        return
    console.stdout.print()
    epochs = console.counted(result["epochs"], "epoch")
    console.print_title(f"final fit of {run}: all data, {epochs}, {result['seconds']:.1f} s of training")
    print_held_out(final)
    for warning in result.get("doubts", ()):
        console.note(warning)
    whose = f"use it for {run}" if final.folder == run / "final" else "take this folder as their RUN"
    console.stdout.print(f"{final.folder}  predict, recommend, embed and explore {whose}", soft_wrap=True)


def _final_fit(run: "Run", folder: Path, force: bool) -> "Run":
    """The final fit of a run, with progress; ends the program if it is stopped."""
    from h2hgcn.training.fit import finalize as fit_finally

    progress = console.TrainingProgress(run.result["best_epoch"])
    with console.StopAfterEpoch(force) as signals, kept_memory(), progress:
        final = fit_finally(run, folder, force=force, on_epoch=progress.update, should_stop=signals.wanted)
    if not final.finished:
        console.stop(f"final fit after epoch {final.result['epochs']}", force)
    if progress.first_epoch is None:
        console.tell(f"finished already, in {folder}; h2hgcn finalize --force trains it again")
    return final


@flags.with_flags(given=flags.SETTINGS, graph=flags.GRAPH)
def train(
    given: flags.Given,
    graph: flags.Given,
    data: flags.DataFolder = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights, batches and dropout.", show_default="0")] = None,
    search: flags.Search = "auto",
    settings: flags.Settings = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings, such as a run's config.toml.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run. Default: runs/DATA-TASK-MODEL-seedN.")] = None,
    final: Annotated[
        bool, typer.Option("--final", help="Then train the same settings on all data, as h2hgcn finalize does.")
    ] = False,
    force: flags.Retrain = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="The same as --log tensorboard.")] = False,
    log: Annotated[
        list[str] | None, typer.Option(help="Also log curves with tensorboard, wandb or mlflow; repeatable.")
    ] = None,
    json: flags.Json = False,
) -> None:
    """Train a model. Without any flag: link prediction on the built-in disease tree.

    Run the same command again to resume a run that was stopped or killed, or with a larger --epochs to continue one.

    Examples: h2hgcn train --epochs 20;
    h2hgcn train --task nc --edges my.csv --labels y.csv --epochs 20 --set model.dropout=0.5;
    h2hgcn train --graphs shapes --labels shapes-y.csv --epochs 20
    """
    with console.starting():
        from h2hgcn.experiments.config import open_graph, read_experiment, sections_of
        from h2hgcn.experiments.search import SearchStopped
        from h2hgcn.experiments.train import run_experiment
    experiment = read_experiment(sections_of(graph, settings, seed, search, **given), config)
    if final:
        experiment.check_final()
    folder = out or Path("runs") / experiment.name
    opened = open_graph(experiment.graph, data)
    count, task = len(experiment.candidates), experiment.task
    sources = ", then ".join(str(source) for source in (experiment.preset, config) if source)
    known = f", the best of {count} settings" if count > 1 else f", settings {sources}"
    split = f"{task.protocol} split" if len(task.parts) > 1 else task.protocol
    name = experiment.model_name
    console.tell(f"{name} for {task.name} on {experiment.graph.name}, {split}{known}, to {folder}")
    warning = task.warning(opened) if hasattr(task, "warning") else None
    if warning is not None:
        console.note(warning)
    progress = console.TrainingProgress(experiment.settings.last_epoch)
    try:
        with console.StopAfterEpoch(force) as signals, kept_memory(), progress:
            run = run_experiment(
                experiment, opened, folder, force=force, tensorboard=tensorboard, loggers=log or (),
                on_plan=console.tell, on_epoch=progress.update, on_search=progress.search, on_chosen=progress.chosen,
                should_stop=signals.wanted,
            )  # fmt: skip
    except SearchStopped:
        console.stop("while choosing settings", force)
    if run.finished and progress.first_epoch is None:
        console.tell(f"finished already, in {folder}; --force trains it again")
    if run.finished and not json:
        _print_result(run, folder, progress.resumed_from)
    if final and run.finished:
        _final_fit(run, folder / "final", force)
    if json:
        more = {"final": str(folder / "final")} if final and run.finished else {}
        console.print_json({"folder": str(folder), "resumed_from": progress.resumed_from, **more, **run.result})
    elif final and run.finished:
        console.stdout.print(
            f"{folder / 'final'}  the final fit on all data; predict and others use it", soft_wrap=True
        )
    if not run.finished:
        console.stop(f"after epoch {run.result['epochs']}", force)


def _print_result(run: "Run", folder: Path, resumed_from: int | None) -> None:
    from h2hgcn.training.artifacts import scores_of_baselines

    result, stdout = run.result, console.stdout
    stdout.print()
    console.print_title(f"{run.config['model']['name']}, {result['parameters']:,} parameters")
    selection = result["selection"]
    stdout.print(console.metrics_table(result["metrics"], selection, scores_of_baselines(result, selection)))
    console.print_classes(result.get("details", {}))
    stopped = "stopped early" if result["stopped_early"] else "all epochs"
    epochs = f"best epoch {result['best_epoch']} of {result['epochs']} ({stopped})"
    resumed = f", resumed from epoch {resumed_from}" if resumed_from else ""
    stdout.print(f"{epochs}, {result['seconds']:.1f} s of training{resumed}", soft_wrap=True)
    for warning in result.get("doubts", ()):
        console.note(warning)
    stdout.print()
    for name, what in (
        ("report.html", "curves, metrics and a picture; open it in a browser"),
        ("embeddings.parquet", f"a point for each {'graph' if run.task.of_collections else 'node'}"),
        ("model.safetensors", "the selected weights"),
        ("config.toml", "all settings"),
    ):
        stdout.print(f"{folder / name}  {what}", soft_wrap=True)
