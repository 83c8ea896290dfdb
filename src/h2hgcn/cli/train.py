"""``h2hgcn train`` and ``h2hgcn finalize``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2hgcn.cli.console import (
    StopAfterEpoch,
    TrainingProgress,
    command_to_resume,
    counted,
    epochs_line,
    metrics_table,
    print_classes,
    print_json,
    print_title,
    say,
    starting,
    stderr,
    stdout,
)
from h2hgcn.cli.memory import kept_memory
from h2hgcn.cli.options import (
    Comment,
    DataFolder,
    Delimiter,
    Directed,
    Edges,
    Features,
    Graphs,
    Header,
    Labels,
    RunPath,
    Search,
    Source,
    Target,
    Unlinked,
    Weights,
    given,
    open_run,
)

if TYPE_CHECKING:
    from h2hgcn.experiments import Experiment
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
        with StopAfterEpoch() as stop, kept_memory(), progress:
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
    epochs = counted(result["epochs"], "epoch")
    print_title(f"final fit of {run}: all data, {epochs}, {result['seconds']:.1f} s of training")
    print_held_out(final)
    for warning in result.get("doubts", ()):
        say("note", "bold yellow", warning)
    used = final.folder is not None and final.folder == run / "final"
    whose = f"use it for {run}" if used else "take this folder as their RUN"
    stdout.print(f"{final.folder}  predict, recommend, embed and explore {whose}", soft_wrap=True)


def print_held_out(final: "Run") -> None:
    """The metrics of the run that a final fit comes from, labeled so."""
    from h2hgcn.training.artifacts import scores_of_baselines

    of_run, selection = final.result["of_run"], final.result["selection"]
    if of_run is not None:
        origin = final.config["final"]["run"]
        stdout.print(f"Nothing was held out. Metrics of the run that it comes from, {origin}:", soft_wrap=True)
        stdout.print(metrics_table(of_run["metrics"], selection, scores_of_baselines(of_run, selection)))


def train(
    task: Annotated[
        str | None,
        typer.Option(help="lp, nc, gc or embed: links, classes of nodes or graphs, distances. Default: lp, or gc."),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="A named dataset; see h2hgcn datasets.")] = None,
    edges: Edges = None,
    graphs: Graphs = None,
    features: Features = None,
    labels: Labels = None,
    weights: Weights = None,
    directed: Directed = None,
    source: Source = None,
    target: Target = None,
    header: Header = None,
    delimiter: Delimiter = None,
    comment: Comment = None,
    unlinked: Unlinked = None,
    data: DataFolder = None,
    model: Annotated[str | None, typer.Option(help="The encoder; see h2hgcn models.")] = None,
    dim: Annotated[int | None, typer.Option(help="Dimension of the embedding space.")] = None,
    layers: Annotated[int | None, typer.Option(help="Number of convolutions.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Largest number of epochs.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    batch_size: Annotated[
        str | None, typer.Option(help="Links or nodes of a step, auto or full.", show_default="auto")
    ] = None,
    fanout: Annotated[
        str | None, typer.Option(help="Neighbours sampled at each hop, such as 15,10.", show_default="15,10,5,...")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Threads that prepare batches ahead.", show_default="0")] = None,
    closure: Annotated[
        bool | None, typer.Option("--closure", help="With --task embed: embed the transitive closure of a hierarchy.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="How data are split: clean, legacy, planetoid, given, ...")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights, batches and dropout.", show_default="0")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    search: Search = "auto",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other setting, as section.option=value; repeat it.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings, such as a run's config.toml.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run. Default: runs/DATA-TASK-MODEL-seedN.")] = None,
    final: Annotated[
        bool, typer.Option("--final", help="Then train the same settings on all data, as h2hgcn finalize does.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run that is in the folder.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write curves for TensorBoard.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model. Without any flag: link prediction on the built-in disease tree.

    Run the same command again to resume a run that was stopped or killed, or with a larger --epochs to continue one.

    Examples: h2hgcn train --epochs 20;
    h2hgcn train --task nc --edges my.csv --labels y.csv --epochs 20 --set model.dropout=0.5;
    h2hgcn train --graphs shapes --labels shapes-y.csv --epochs 20
    """
    with starting():
        from h2hgcn.experiments import read_experiment
        from h2hgcn.experiments.config import absolute_paths, open_graph, setting
        from h2hgcn.experiments.train import sections_of
    graph = given(
        dataset=dataset, edges=edges, graphs=graphs, features=features, labels=labels, weights=weights,
        directed=directed, source=source, target=target, header=header, delimiter=delimiter, comment=comment,
        unlinked=unlinked,
    )  # fmt: skip
    flags = sections_of(
        absolute_paths(graph, Path()), map(setting, settings or ()), seed,
        task=task, closure=closure, protocol=protocol, model=model, dim=dim, layers=layers, epochs=epochs, lr=lr,
        device=device, batch_size=batch_size, fanout=fanout, workers=workers,
    )  # fmt: skip
    flags["search"] = search
    experiment = read_experiment(flags, config)
    if final:
        experiment.check_final()
    folder = out or Path("runs") / experiment.name
    opened = open_graph(experiment.graph, data)
    _announce(experiment, config, folder)
    warning = experiment.task.warning(opened) if hasattr(experiment.task, "warning") else None
    if warning is not None:
        say("note", "bold yellow", warning)
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
        say(
            "stopped",
            "bold yellow",
            f"after epoch {run.result['epochs']}; {command_to_resume(force)} resumes from there",
        )
        raise typer.Exit(1)


def _train(
    experiment: "Experiment", data: Any, folder: Path, force: bool, tensorboard: bool
) -> tuple["Run", int | None]:
    """The run, and the epoch that it resumed from, if it did."""
    from h2hgcn.experiments.search import SearchStopped
    from h2hgcn.experiments.train import run_experiment

    progress = TrainingProgress(experiment.settings.last_epoch)
    try:
        with StopAfterEpoch() as stop, kept_memory(), progress:
            run = run_experiment(
                experiment, data, folder, force=force, tensorboard=tensorboard,
                on_plan=_say_plan, on_epoch=progress.update, on_search=progress.search,
                on_chosen=progress.chosen, should_stop=stop.wanted,
            )  # fmt: skip
    except SearchStopped:
        say("stopped", "bold yellow", f"while choosing settings; {command_to_resume(force)} resumes")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        say("stopped", "bold yellow", f"at once; {command_to_resume(force)} resumes from the last checkpoint")
        raise typer.Exit(1) from None
    if run.finished and not progress.trained:
        stderr.print(f"finished already, in {folder}; --force trains it again", soft_wrap=True)
    return run, progress.resumed_from


def _say_plan(plan: str) -> None:
    stderr.print(plan, soft_wrap=True)


def _announce(experiment: "Experiment", config: Path | None, folder: Path) -> None:
    count = len(experiment.candidates)
    sources = [str(source) for source in (experiment.preset, config) if source]
    known = f", the best of {count} settings" if count > 1 else f", settings {', then '.join(sources)}"
    stderr.print(
        f"{experiment.model_name} for {experiment.task.name} on {experiment.graph.name}, {_split(experiment.task)}"
        f"{known}, to {folder}",
        soft_wrap=True,
    )


def _split(task: Any) -> str:
    return f"{task.protocol} split" if len(task.parts) > 1 else task.protocol


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
        say("note", "bold yellow", warning)
    stdout.print()
    for name, what in (
        ("report.html", "curves, metrics and a picture; open it in a browser"),
        ("embeddings.parquet", f"a point for each {'graph' if run.task.of_collections else 'node'}"),
        ("model.safetensors", "the selected weights"),
        ("config.toml", "all settings"),
    ):
        stdout.print(f"{folder / name}  {what}", soft_wrap=True)
