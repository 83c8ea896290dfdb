"""``h2hgcn train``: from a graph to a folder with a trained model, embeddings and a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from h2hgcn.cli.graph_options import (
    DataFolder,
    Directed,
    Edges,
    Features,
    Header,
    Labels,
    Source,
    Target,
    Unlinked,
    Weights,
    open_graph,
)
from h2hgcn.cli.output import print_json, print_title, say, stderr, stdout
from h2hgcn.cli.progress import TrainingProgress
from h2hgcn.cli.stopping import StopAfterEpoch
from h2hgcn.errors import DataError

if TYPE_CHECKING:
    from h2hgcn.experiments import Experiment
    from h2hgcn.training import Run


def train(
    task: Annotated[str | None, typer.Option(help="lp, nc or gc: links, classes of nodes, classes of graphs.")] = None,
    dataset: Annotated[str | None, typer.Option(help="A named dataset; see h2hgcn datasets.")] = None,
    edges: Edges = None,
    features: Features = None,
    labels: Labels = None,
    weights: Weights = None,
    directed: Directed = None,
    source: Source = None,
    target: Target = None,
    header: Header = None,
    unlinked: Unlinked = "error",
    data: DataFolder = None,
    model: Annotated[str | None, typer.Option(help="The encoder; see h2hgcn models.")] = None,
    dim: Annotated[int | None, typer.Option(help="Dimension of the embedding space.")] = None,
    layers: Annotated[int | None, typer.Option(help="Number of convolutions.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Largest number of epochs.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    protocol: Annotated[str | None, typer.Option(help="How data are split: clean, legacy, planetoid, ...")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights, batches and dropout.", show_default="0")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other setting, as section.option=value; repeat it.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings, such as a run's config.toml.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run. Default: runs/DATA-TASK-MODEL-seedN.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run that is in the folder.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write curves for TensorBoard.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model. Without any flag: link prediction on the built-in disease tree.

    A run that was stopped or killed goes on when the same command is given again.

    Examples: h2hgcn train --epochs 20; h2hgcn train --task nc --edges my.csv --labels y.csv --set model.dropout=0.5
    """
    from h2hgcn.experiments.config import merged, read_experiment, setting

    flags = {
        "data": _given(
            dataset=dataset, edges=_absolute(edges), features=_absolute(features), labels=_absolute(labels),
            weights=weights, directed=directed, source=source, target=target, header=header,
            unlinked=None if unlinked == "error" else unlinked,
        ),
        "task": _given(name=task, protocol=protocol),
        "model": _given(name=model, dim=dim, num_layers=layers),
        "training": _given(epochs=epochs, lr=lr, device=device),
        **_given(seed=seed),
    }  # fmt: skip
    if _names_data(settings):
        raise DataError("--set data...: use the flags --dataset, --edges and so on")
    experiment = read_experiment(merged(flags, *map(setting, settings or ())), config, _first_task(dataset))
    folder = out or _default_folder(experiment)
    if not json:
        _announce(experiment, folder)
    run = _train(experiment, _open(experiment, data), folder, force, tensorboard)
    if not run.finished:
        say("stopped", "bold yellow", f"after epoch {run.result['epochs']}; the same command goes on from there")
        raise typer.Exit(1)
    if json:
        print_json({"folder": str(folder), **run.result})
    else:
        print_result(run)
        _print_paths(folder)


def _train(experiment: "Experiment", data: Any, folder: Path, force: bool, tensorboard: bool) -> "Run":
    from h2hgcn.training import fit

    with StopAfterEpoch() as stop, TrainingProgress(experiment.settings.epochs) as progress:
        return fit(
            experiment.task, data, experiment.encoder, seed=experiment.seed, settings=experiment.settings,
            folder=folder, force=force, source=experiment.data, tensorboard=tensorboard,
            on_epoch=progress.update, should_stop=stop.wanted,
        )  # fmt: skip


def _open(experiment: "Experiment", root: Path | None) -> Any:
    graph = dict(experiment.data)
    name = graph.pop("dataset", None)
    if name is not None:
        from h2hgcn.datasets import load_dataset

        return load_dataset(name, root)
    return open_graph(graph.pop("edges"), root, **graph)


def _first_task(dataset: str | None) -> str:
    """Graph classification for collections, else link prediction."""
    from h2hgcn.datasets import DATASETS

    tasks = DATASETS[dataset].tasks if dataset in DATASETS else ("lp",)
    return "lp" if "lp" in tasks else tasks[0]


def _names_data(settings: list[str] | None) -> bool:
    return any(text.strip().startswith("data.") for text in settings or ())


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _absolute(path: str | None) -> str | None:
    """A file where it is, since a run may be gone on with from elsewhere; names of attributes stay."""
    return str(Path(path).resolve()) if path is not None and Path(path).exists() else path


def _default_folder(experiment: "Experiment") -> Path:
    name = f"{experiment.data_name}-{experiment.task.name}-{experiment.model_name}-seed{experiment.seed}"
    return Path("runs") / name


def _announce(experiment: "Experiment", folder: Path) -> None:
    known = f", settings {experiment.preset}" if experiment.preset else ""
    protocol = f", {experiment.task.protocol} split"
    stderr.print(
        f"{experiment.model_name} for {experiment.task.name} on {experiment.data_name}{protocol}{known}, to {folder}",
        soft_wrap=True,
    )


def print_result(run: "Run") -> None:
    """The closing table: what was learnt, beside what needs no learning."""
    result = run.result
    selection = result["selection"]
    table = Table("metric", "validation", "test", box=None, header_style="bold", pad_edge=False)
    for name, value in result["metrics"]["test"].items():
        marked = f"{name} (selects)" if name == selection else name
        table.add_row(marked, f"{result['metrics']['val'][name]:.4f}", f"{value:.4f}")
    for name, value in (result["trivial"] or {}).items():
        table.add_row(f"without learning: {name}, {selection}", "", f"{value:.4f}")
    stdout.print()
    print_title(f"{run.config['model']['name']}, {result['parameters']:,} parameters")
    stdout.print(table)
    stopped = "stopped early" if result["stopped_early"] else "all epochs"
    stdout.print(
        f"best epoch {result['best_epoch']} of {result['epochs']} ({stopped}), {result['seconds']:.1f} s of training"
    )


def _print_paths(folder: Path) -> None:
    stdout.print()
    for name, what in (
        ("report.html", "curves, metrics and a picture; open it in a browser"),
        ("embeddings.parquet", "a point for each node"),
        ("model.safetensors", "the selected weights"),
        ("config.toml", "all settings"),
    ):
        stdout.print(f"{folder / name}  {what}", soft_wrap=True)
