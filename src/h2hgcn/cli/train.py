"""``h2hgcn train`` and ``h2hgcn finalize``."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2hgcn.cli.console import (
    StopAfterEpoch,
    TrainingProgress,
    counted,
    epochs_line,
    metrics_table,
    note,
    print_classes,
    print_json,
    print_title,
    starting,
    stdout,
    stop,
    tell,
)
from h2hgcn.cli.memory import kept_memory
from h2hgcn.cli.options import (
    BatchSize,
    Closure,
    DataFolder,
    Device,
    Dim,
    Epochs,
    Fanout,
    Given,
    Json,
    Layers,
    Lr,
    Model,
    Protocol,
    Retrain,
    RunPath,
    Search,
    Settings,
    Task,
    Workers,
    with_graph,
)
from h2hgcn.cli.runs import open_run, print_held_out

if TYPE_CHECKING:
    from h2hgcn.experiments import Experiment
    from h2hgcn.training import Run


def finalize(
    run: RunPath,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the final fit. Default: RUN/final, which other commands prefer.")
    ] = None,
    data: DataFolder = None,
    force: Retrain = False,
    json: Json = False,
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
    from h2hgcn.training.fit import finalize as fit_finally

    progress = TrainingProgress(run.result["best_epoch"])
    final = _with_progress(
        progress,
        lambda stopped: fit_finally(run, folder, force=force, on_epoch=progress.update, should_stop=stopped),
        force,
    )
    if not final.finished:
        stop(f"final fit after epoch {final.result['epochs']}", force)
    if not progress.trained:
        tell(f"finished already, in {folder}; h2hgcn finalize --force trains it again")
    return final


def print_final(final: "Run", run: Path) -> None:
    """What was trained, and the metrics of the run that it comes from."""
    result = final.result
    stdout.print()
    epochs = counted(result["epochs"], "epoch")
    print_title(f"final fit of {run}: all data, {epochs}, {result['seconds']:.1f} s of training")
    print_held_out(final)
    for warning in result.get("doubts", ()):
        note(warning)
    used = final.folder is not None and final.folder == run / "final"
    whose = f"use it for {run}" if used else "take this folder as their RUN"
    stdout.print(f"{final.folder}  predict, recommend, embed and explore {whose}", soft_wrap=True)


def _with_progress(progress: TrainingProgress, work: "Callable[[Callable[[], bool]], Run]", force: bool) -> "Run":
    """Trains with a bar on the terminal, until it is told to stop."""
    try:
        with StopAfterEpoch() as signals, kept_memory(), progress:
            return work(signals.wanted)
    except KeyboardInterrupt:
        stop("at once", force)


@with_graph()
def train(
    graph: Given,
    task: Task = None,
    data: DataFolder = None,
    model: Model = None,
    dim: Dim = None,
    layers: Layers = None,
    epochs: Epochs = None,
    lr: Lr = None,
    batch_size: BatchSize = None,
    fanout: Fanout = None,
    workers: Workers = None,
    closure: Closure = None,
    protocol: Protocol = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights, batches and dropout.", show_default="0")] = None,
    device: Device = None,
    search: Search = "auto",
    settings: Settings = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings, such as a run's config.toml.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run. Default: runs/DATA-TASK-MODEL-seedN.")] = None,
    final: Annotated[
        bool, typer.Option("--final", help="Then train the same settings on all data, as h2hgcn finalize does.")
    ] = False,
    force: Retrain = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write curves for TensorBoard.")] = False,
    json: Json = False,
) -> None:
    """Train a model. Without any flag: link prediction on the built-in disease tree.

    Run the same command again to resume a run that was stopped or killed, or with a larger --epochs to continue one.

    Examples: h2hgcn train --epochs 20;
    h2hgcn train --task nc --edges my.csv --labels y.csv --epochs 20 --set model.dropout=0.5;
    h2hgcn train --graphs shapes --labels shapes-y.csv --epochs 20
    """
    with starting():
        from h2hgcn.experiments.config import open_graph, read_experiment, sections_of
    flags = sections_of(
        graph, settings, seed, search, task=task, closure=closure, protocol=protocol, model=model, dim=dim,
        layers=layers, epochs=epochs, lr=lr, device=device, batch_size=batch_size, fanout=fanout, workers=workers,
    )  # fmt: skip
    experiment = read_experiment(flags, config)
    if final:
        experiment.check_final()
    folder = out or Path("runs") / experiment.name
    opened = open_graph(experiment.graph, data)
    _announce(experiment, config, folder)
    warning = experiment.task.warning(opened) if hasattr(experiment.task, "warning") else None
    if warning is not None:
        note(warning)
    run, resumed_from = _train(experiment, opened, folder, force, tensorboard)
    if run.finished and not json:
        _print_result(run, folder, resumed_from)
    fitted = finalize_run(run, folder / "final", force) if final and run.finished else None
    if json:
        more = {} if fitted is None else {"final": str(folder / "final")}
        print_json({"folder": str(folder), "resumed_from": resumed_from, **more, **run.result})
    elif fitted is not None:
        stdout.print(f"{folder / 'final'}  the final fit on all data; predict and others use it", soft_wrap=True)
    if not run.finished:
        stop(f"after epoch {run.result['epochs']}", force)


def _train(
    experiment: "Experiment", data: Any, folder: Path, force: bool, tensorboard: bool
) -> tuple["Run", int | None]:
    """The run, and the epoch that it resumed from, if it did."""
    from h2hgcn.experiments.search import SearchStopped
    from h2hgcn.experiments.train import run_experiment

    progress = TrainingProgress(experiment.settings.last_epoch)

    def work(stopped: Callable[[], bool]) -> "Run":
        return run_experiment(
            experiment, data, folder, force=force, tensorboard=tensorboard, on_plan=tell, on_epoch=progress.update,
            on_search=progress.search, on_chosen=progress.chosen, should_stop=stopped,
        )  # fmt: skip

    try:
        run = _with_progress(progress, work, force)
    except SearchStopped:
        stop("while choosing settings", force)
    if run.finished and not progress.trained:
        tell(f"finished already, in {folder}; --force trains it again")
    return run, progress.resumed_from


def _announce(experiment: "Experiment", config: Path | None, folder: Path) -> None:
    count = len(experiment.candidates)
    sources = [str(source) for source in (experiment.preset, config) if source]
    known = f", the best of {count} settings" if count > 1 else f", settings {', then '.join(sources)}"
    task = experiment.task
    split = f"{task.protocol} split" if len(task.parts) > 1 else task.protocol
    tell(f"{experiment.model_name} for {task.name} on {experiment.graph.name}, {split}{known}, to {folder}")


def _print_result(run: "Run", folder: Path, resumed_from: int | None) -> None:
    from h2hgcn.training.artifacts import scores_of_baselines

    result = run.result
    stdout.print()
    print_title(f"{run.config['model']['name']}, {result['parameters']:,} parameters")
    selection = result["selection"]
    stdout.print(metrics_table(result["metrics"], selection, scores_of_baselines(result, selection)))
    print_classes(result.get("details", {}))
    stdout.print(epochs_line(result, resumed_from), soft_wrap=True)
    for warning in result.get("doubts", ()):
        note(warning)
    stdout.print()
    for name, what in (
        ("report.html", "curves, metrics and a picture; open it in a browser"),
        ("embeddings.parquet", f"a point for each {'graph' if run.task.of_collections else 'node'}"),
        ("model.safetensors", "the selected weights"),
        ("config.toml", "all settings"),
    ):
        stdout.print(f"{folder / name}  {what}", soft_wrap=True)
