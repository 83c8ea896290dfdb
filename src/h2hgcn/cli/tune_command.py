"""``h2hgcn tune``: settings chosen on validation data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column, Table

from h2hgcn.cli.cell_runs import run_cells
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
    given,
)
from h2hgcn.cli.output import print_json, print_title, say, starting, stderr, stdout

if TYPE_CHECKING:
    from h2hgcn.experiments.cells import Outcome
    from h2hgcn.experiments.tuning import Study, TrialResult, Tuning

# Trials that the closing table shows.
_SHOWN = 5


def tune(
    task: Annotated[str | None, typer.Option(help="lp, nc or gc. Default: lp, or gc.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model; see h2hgcn models.")] = None,
    dataset: Annotated[str | None, typer.Option(help="A named dataset; see h2hgcn datasets.")] = None,
    edges: Edges = None,
    features: Features = None,
    labels: Labels = None,
    weights: Weights = None,
    directed: Directed = None,
    source: Source = None,
    target: Target = None,
    header: Header = None,
    unlinked: Unlinked = None,
    data: DataFolder = None,
    trials: Annotated[int, typer.Option(min=1, help="Settings to try, all in all.")] = 30,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each setting; their mean counts.")] = 1,
    seed: Annotated[int | None, typer.Option(help="The first seed, of the runs and of the search.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Largest number of epochs.")] = None,
    dim: Annotated[
        int | None, typer.Option(help="Dimension of the embedding space, which is then not searched.")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="How data are split: clean, legacy, planetoid, ...")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting that is not searched, as section.option=value.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings to start from.")] = None,
    space: Annotated[Path | None, typer.Option(help="A TOML file of what is searched. Default: our own.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the study. Default: runs/tune-DATA-TASK-MODEL.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes, of one thread each. Default: one a core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print all trials as JSON.")] = False,
) -> None:
    """Choose settings by the validation metric. Test data are never looked at.

    The first trial has the settings that h2hgcn train has; Optuna proposes the others. The best go to best.toml, for
    h2hgcn train --config. A study that was stopped or killed goes on when the same command is given again, and with
    more --trials it is continued.

    Example: h2hgcn tune --trials 2 --epochs 5 --jobs 1
    """
    with starting():
        from h2hgcn.experiments.config import read_experiment
        from h2hgcn.experiments.graph_choice import open_graph
        from h2hgcn.experiments.sections import absolute_paths, merged, setting
        from h2hgcn.experiments.spaces import search_space
        from h2hgcn.experiments.tuning import Tuning, open_study
    graph = given(
        dataset=dataset, edges=edges, features=features, labels=labels, weights=weights, directed=directed,
        source=source, target=target, header=header, unlinked=unlinked,
    )  # fmt: skip
    said = {
        "data": absolute_paths(graph, Path()),
        "task": given(name=task, protocol=protocol),
        "model": given(name=model, dim=dim),
        "training": given(epochs=epochs),
        **given(seed=seed),
    }
    flags = merged(said, *map(setting, settings or ()))
    base = read_experiment(flags, config)
    searched = {
        (section, option): values
        for (section, option), values in search_space(base.task.name, base.model_name, space).items()
        if option not in flags.get(section, {})
    }
    name = f"tune-{base.graph.name}-{base.task.name}-{base.model_name}"
    tuning = Tuning(flags, searched, out or Path("runs") / name, seeds, config, data)
    with open_study(tuning) as study:
        # what is strange about the data is said once, here
        metric = base.task.bind(open_graph(base.graph, data)).selection_metric
        stderr.print(
            f"{base.model_name} for {base.task.name} on {base.graph.name}, {base.task.protocol} split, {trials} trials "
            f"of {seeds} run{'s' * (seeds > 1)} each, to {tuning.folder}",
            soft_wrap=True,
        )
        complete = _run(study, trials, seeds, jobs)
        results = study.results
        best = _write_best(tuning, results, metric)
    if json:
        print_json([_as_json(result) for result in results])
    else:
        _print(results, metric, best)
    if not complete:
        say("stopped", "bold yellow", f"{len(results)} of {trials} trials; the same command goes on")
        raise typer.Exit(1)


def _run(study: "Study", trials: int, seeds: int, jobs: int | None) -> bool:
    """Whether all trials came to an end."""

    def finished(number: int, outcome: "Outcome") -> str:
        result = study.finish(number, outcome)
        return "" if result is None else f"trial {result.number}: {_score(result)}"

    missing = trials - len(study.results)
    if missing > 0:
        run_cells(study.cells(trials), missing * seeds, jobs, finished)
    return len(study.results) >= trials


def _write_best(tuning: "Tuning", results: "list[TrialResult]", metric: str) -> Path | None:
    from h2hgcn.experiments.tuning import write_settings

    if not results or results[0].score is None:
        return None
    path = tuning.folder / "best.toml"
    seeds = f"seed {tuning.seeds[0]}" if tuning.num_seeds == 1 else f"seeds {tuning.seeds[0]} to {tuning.seeds[-1]}"
    how = (
        f"chosen by h2hgcn tune: validation {metric} {results[0].score:.4f}, the best of {len(results)} trials, {seeds}"
    )
    write_settings(path, tuning, results[0], how)
    return path


def _print(results: "list[TrialResult]", metric: str, best: Path | None) -> None:
    shown = Table(Column("trial", no_wrap=True), Column(f"validation {metric}", no_wrap=True), "settings", box=None)
    shown.header_style, shown.pad_edge = "bold", False
    for result in results[:_SHOWN]:
        shown.add_row(str(result.number), _score(result), _words(result))
    stdout.print()
    print_title(f"the best of {len(results)} trials (trial 0: the settings before)")
    stdout.print(shown)
    if best is not None:
        stdout.print(f"\n{best}  the settings of the first; train with --config {best}", soft_wrap=True)


def _words(result: "TrialResult") -> str:
    pairs = ((name, value) for options in result.settings.values() for name, value in options.items())
    return ", ".join(f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}" for name, value in pairs)


def _score(result: "TrialResult") -> str:
    return "diverged" if result.score is None else f"{result.score:.4f}"


def _as_json(result: "TrialResult") -> dict[str, Any]:
    return {"trial": result.number, "validation": result.score, "settings": result.settings}
